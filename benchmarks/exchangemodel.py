#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A model of the time of a product with the 7-point stencil on several GPUs, whose ghost values go from GPU to GPU.

usage: exchangemodel.py [--grid 200,400] [--gpus 1,2,4,...] [--host-time us] [--latency us]

The points, a cube, are cut into boxes, one per GPU, of the least surface. A product takes

  max(host, max(diagonal, exchange) + offdiagonal)

  host         what the host takes to launch it, measured
  diagonal     rows of the box by the measured times of star7_64 and star7_200, evchyb with packed storage, on one H200
  exchange     a latency, and the bytes that leave the box over the link's rate in one direction: faces within a host over one link, those to other hosts over the network
  offdiagonal  what two and four H100s took beyond their part of the product, measured (docs/mpi.md): a gap, the wait, the off-diagonal block's launch; and for each ghost value 40 bytes (value, column, ghost value, row and its number) over the measured rate at which the H200 reads memory

Links have the rates that vendors give, latencies are assumed. The slowest box is that in the middle.
"""
import argparse
import sys
from pathlib import Path

MEASURED = Path(__file__).resolve().parent / "results" / "evchyb-h200.tsv"
HOST_US = 19  # per product with CUDA IPC, docs/mpi.md
GHOST_BYTES = 40

# GB/s in one direction, by the vendors: NVLink of H100 and H200 900 in both, PCIe 5.0 with 16 lanes 128 in both, one adapter of InfiniBand NDR per GPU 400 Gbit/s
RATES = {"NVLink": 450, "PCIe 5.0": 64, "InfiniBand": 50}
LATENCY_US = {"NVLink": 5, "PCIe 5.0": 10, "InfiniBand": 20}  # assumed
LAUNCH_US = 7  # of 6 to 8, by make bench-scaling

SYSTEMS = [("8 GPUs per host, NVLink", "NVLink", 8), ("8 GPUs per host, PCIe", "PCIe 5.0", 8), ("1 GPU per host", None, 1)]


def measured(path=MEASURED):
    """Microseconds per row, those of no row, and bytes per microsecond that the GPU reads."""
    times, bandwidth = {}, None
    for line in path.read_text().splitlines():
        words = line.split("\t")
        if line.startswith("# read bandwidth"):
            bandwidth = float(line.split()[3]) * 1e3
        elif words[0] in ("star7_64", "star7_200") and words[4] == "evchyb@p":
            times[int(words[1])] = float(words[7])
    (few, less), (many, more) = sorted(times.items())
    per_row = (more - less) / (many - few)
    return per_row, less - few * per_row, bandwidth


def boxes(n):
    """n boxes, in three directions, with the least surface of a box of a cube."""
    cuts = [(a, b, n // a // b) for a in range(1, n + 1) if n % a == 0 for b in range(1, n // a + 1) if n // a % b == 0]
    return min((c for c in cuts if c[0] >= c[1] >= c[2]), key=sum)


def neighbors(within, hosts):
    """In one direction, of the box with the most on other hosts: neighbors on its host and on others."""
    both = min(within * hosts - 1, 2)
    others = 0 if hosts == 1 else both if within == 1 else 1
    return both - others, others


def product(grid, gpus, link, per_host, host=HOST_US, latency=LATENCY_US):
    """Microseconds, and the largest part of them."""
    per_row, none, bandwidth = measured()
    within, hosts = boxes(min(gpus, per_host)), boxes(max(gpus // per_host, 1))
    edge = [-(-grid // (w * h)) for w, h in zip(within, hosts)]
    values = {True: 0, False: 0}  # on the same host, on others
    for k in range(3):
        face = edge[(k + 1) % 3] * edge[(k + 2) % 3]
        near, far = neighbors(within[k], hosts[k])
        values[True] += near * face
        values[False] += far * face
    diagonal = none + per_row * edge[0] * edge[1] * edge[2]
    exchange = max((latency[way] + 8 * n / (RATES[way] * 1e3) for way, n in ((link, values[True]), ("InfiniBand", values[False])) if n), default=0)
    ghosts = values[True] + values[False]
    offdiagonal = LAUNCH_US + ghosts * GHOST_BYTES / bandwidth if ghosts else 0
    gpu = max(diagonal, exchange) + offdiagonal
    return max(host, gpu), "host" if host > gpu else "exchange" if exchange > diagonal else "product"


def table(grids, gpus, host=HOST_US, latency=LATENCY_US):
    lines = ["| grid | GPUs | " + " | ".join(name for name, _, _ in SYSTEMS) + " |", "|--:|--:|" + "--:|" * len(SYSTEMS)]
    for grid in grids:
        for n in gpus:
            cells = []
            for _, link, per_host in SYSTEMS:
                us, part = product(grid, n, link, per_host, host, latency)
                cells.append(f"{us:,.0f} {part}")
            lines.append(f"| {grid}^3 | {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", default="200,400", help="points in each direction")
    parser.add_argument("--gpus", default="1,2,4,8,16,32,64", help="powers of 2")
    parser.add_argument("--host-time", type=float, default=HOST_US, help="microseconds")
    parser.add_argument("--latency", type=float, help="of all links, in microseconds")
    arguments = parser.parse_args()
    gpus = [int(n) for n in arguments.gpus.split(",")]
    for n in gpus:
        if n < 1 or n & (n - 1):
            parser.error(f"--gpus: {n} is no power of 2")
    latency = LATENCY_US if arguments.latency is None else dict.fromkeys(LATENCY_US, arguments.latency)
    print(table([int(n) for n in arguments.grid.split(",")], gpus, arguments.host_time, latency))
    return 0


if __name__ == "__main__":
    sys.exit(main())
