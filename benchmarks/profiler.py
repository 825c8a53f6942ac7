# SPDX-License-Identifier: BSD-2-Clause
"""What Nsight Compute, ncu, counts of the kernels of a program."""
import contextlib
import csv
import shutil
import subprocess
from pathlib import Path

from lab import finish

BUSY, MOVED, READ, NS = "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum", "dram__bytes_read.sum", "gpu__time_duration.sum"
L1, L2 = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld", "lts__t_sectors_srcunit_tex_op_read"
SECTOR = 32  # bytes


class Profiler:
    """Counts for a paper; where that can't be, what is missing there is said once."""

    def __init__(self, lab, missing, instead=""):
        self.lab, self.missing = lab, missing
        self.ncu = lab.chosen.ncu or shutil.which("ncu") or next((str(path) for path in Path("/usr/local/cuda/bin").glob("ncu")), None)
        if not self.ncu:
            self.lacks(f"there is no profiler, ncu; --ncu names one{instead}")

    def lacks(self, why):
        self.lab.lacks(self.missing, why)
        self.ncu = None

    def launches(self, metrics, options, command, number=0):
        """Of each launch that options select what metrics count, in order; none where not all of them are counted, or there are not so many, which is said."""
        if not self.ncu:
            return []
        try:
            done = finish([self.ncu, "--csv", "--print-units", "base", "--clock-control", "none", "--metrics", ",".join(metrics)] + options + command, self.lab.chosen.timeout)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.lacks(f"{self.ncu}: {error}")
            return []
        found = {}
        for row in csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')):
            if row.get("Metric Name") in metrics:
                with contextlib.suppress(ValueError):  # n/a
                    found.setdefault(int(row["ID"]), {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        if not found:
            said = [line for line in done.stdout.splitlines() if "ERR_" in line or "rror" in line]
            self.lacks(f"{self.ncu} counted nothing: {(said or ['no message'])[0].strip()}")
            return []
        whole, number = [found[launch] for launch in sorted(found) if len(found[launch]) == len(metrics)], number or len(found)
        if len(whole) != number:
            self.lab.lacks(f"{self.missing}: {' '.join(command[1:])}", f"{self.ncu} counted all of {len(whole)} launches, not of {number}")
            return []
        return whole


def rate(launch, bytes_):
    """GB/s."""
    return bytes_ / launch[NS]


def hits(launch, level):
    """The part of a cache's sectors that it has."""
    return launch[f"{level}_lookup_hit.sum"] / launch[f"{level}.sum"] if launch[f"{level}.sum"] else 0.0


def latency(launch, cycles):
    """Cycles of a load in the mean (the paper's C_X and C_A), by those of L1, L2 and memory."""
    near, middle, far = cycles
    one, two = hits(launch, L1), hits(launch, L2)
    return near * one + (1 - one) * (middle * two + far * (1 - two))


def together(launches):
    """How busy the memory is (percent) and what it moves (GB/s) in launches that follow each other."""
    time = sum(launch[NS] for launch in launches)
    return sum(launch[BUSY] * launch[NS] for launch in launches) / time, sum(launch[MOVED] for launch in launches) / time
