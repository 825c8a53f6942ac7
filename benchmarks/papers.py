#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measure on this machine what the tables and figures of the formats' papers show.

usage: papers.py PAPER --programs FOLDER [--output FOLDER] [--quick] [--resume] [--minutes N] [--timeout SECONDS] [--library FILE]
                 [--ex14 FILE] [--mpiexec COMMAND] [--ncu FILE] [MATRIX ...]

PAPER is evchyb, csroverlap, fastload, hbp or tiledspmm; evchyb-gpus for evchyb's Figure 16 alone, on up to four GPUs. The programs are those of make bench-program, bench-hbp2d and
bench-evchybparts. MATRIX, names of generated matrices or files (.mtx, .mtx.gz, .bin), are taken instead of the list that stands
for the paper's: matrices of the same kind and size, named after them with _like. --quick takes a few small ones. --resume takes
what an earlier run, which was stopped, measured into the same folder with the same versions of all but Gallop, and measures the rest;
csroverlap's Table 2 and evchyb's Figure 16 always. --minutes ends a run when the matrix, or the table of all, that is measured after them has been, with exit status 75.

FOLDER (papers) gets PAPER.json, with all that was measured, the tables and what the figures show, PAPER-TABLE.tsv, and the
programs' lines. report.py draws the figures. Numbers are in the precision of the programs; CSROVERLAP's and Tiled SpMM's papers have
single. What cannot be measured here is said, and why. The exit status is 1 when a case failed or gave a wrong result.
"""
import argparse
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import bench
from cases import Cases, gflops, mean, product_us, viewed
from lab import Lab, TimeUp, events, finish, ratio
from profiler import BUSY, L1, L2, MOVED, NS, READ, SECTOR, Profiler, hits, latency, rate, together

TITLES = {
    "evchyb": "A hybrid format for better performance of sparse matrix-vector multiplication on a GPU",
    "evchyb-gpus": "A hybrid format for better performance of sparse matrix-vector multiplication on a GPU",
    "csroverlap": "Leveraging memory copy overlap for efficient sparse matrix-vector multiplication on GPUs",
    "fastload": "FastLoad: speeding up data loading of both sparse matrix and vector for SpMV on GPUs",
    "hbp": "A nonlinear hash-based optimization method for SpMV on GPUs",
    "tiledspmm": "Optimizing tiled sparse matrix multiplication with performance modeling on GPUs"
}
# for a quick look, and of the kinds and sizes of the papers' own
MATRICES = {
    "evchyb-gpus": ([], []),  # Figure 16 has none
    "evchyb": ([
        "pdb1HYS_like=points36417_3_66_128_165_.4526", "cop20k_A_like=points121192_1_0_42_81_.015_100k", "Circuit_like=circuit170998_5.6",
        "torso1_like=longrows116158_.024_2700_9",
        "webbase-1M_like=web1M_3.1_1.6_.6", "Economics_like=random206500_6"
    ], [
        "pdb1HYS_like=points36417_3_66_128_165_.4526", "pwtk_like=band217918_26", "TSOPF_like=longrows38120_.8_528_8", "rma10_like=band46835_25",
        "audikw_1_like=points943695_3_12_128_262_.1055", "cage14_like=cage1505785_9_26_41_.03", "shipsec1_like=band140874_27", "webbase-1M_like=web1M_3.1_1.6_.6",
        "raefsky3_like=elast27b3_19", "cop20k_A_like=points121192_1_0_42_81_.015_100k", "Circuit_like=circuit170998_5.6", "torso1_like=longrows116158_.024_2700_9",
        "Stanford_like=web281903_8.2", "att-pre2_like=circuit659033_9", "Economics_like=random206500_6", "ibm-dc1_like=circuit116835_4_2_114k",
        "indochina_like=web7414866_20_1.7_.8", "web-Google_like=web916428_5.6_1.7_.1", "Stanford_Berkeley_like=web683446_11",
        "RM07R_like=elast27b3_50"
    ]),
    "csroverlap": ([
        "aug2d_like=random29008_2.65", "ch7-9-b3_like=uniform105840_4", "epb3_like=star5_291", "nemeth19_like=band9506_43",
        "nemeth23_like=band9506_79", "Hamrle3_like=circuit1447360_3.8"
    ], [
        "ncvxqp1_like=random12111_6.1", "aug2d_like=random29008_2.65", "case9_like=random14454_10.2", "delaunay_n16_like=random65536_6",
        "ch7-9-b3_like=uniform105840_4", "tandem_dual_like=random94069_4.9", "epb3_like=star5_291", "ch8-8-b3_like=uniform117600_4",
        "cage11_like=random39082_14.3", "Si5H12_like=star7_27_6", "nemeth19_like=band9506_43", "tube1_like=band21498_20", "kim1_like=band38415_12",
        "2D_54019_like=band54019_9", "nemeth21_like=band9506_61", "nemeth22_like=band9506_71", "nemeth23_like=band9506_79",
        "Hamrle3_like=circuit1447360_3.8", "pre2_like=circuit659033_9", "pkustk14_like=elast27b3_37"
    ]),
    "fastload": (["star5_100", "random20k_6", "kron12", "band9506_43", "web100k_5", "elast27b3_16", "star7_60",
                  "circuit116k=circuit116800_4_2_114k"], [
                      "star5_30", "random1k_5", "star5_100", "random20k_6", "kron10", "kron12", "kron14", "kron16", "kron18", "band2000_20",
                      "band9506_43", "band9506_79", "web10k_4", "web100k_5", "web1M_3.1", "elast27b3_8", "elast27b3_16", "elast27b3_56", "star7_20",
                      "star7_60", "star7_200", "box27_30", "box27_140", "circuit116k=circuit116800_4_2_114k", "circuit682k_5_8_390k", "uniform100k_8",
                      "uniform1M_16", "dense1024", "dense4096", "star5_1500", "lp100k_300k_4", "longrows116158_.024_2700_9"
                  ]),
    "hbp": ([
        "ASIC_320k_like=circuit321k_5_4_100k", "barrier2-3_like=random113k_18", "nxp1_like=circuit414k_6_4_50k", "rajat24_like=circuit358k_5_4_100k",
        "kron16"
    ], [
        "ASIC_320k_like=circuit321k_5_4_100k", "ASIC_680k_like=circuit682k_5_8_390k", "barrier2-3_like=random113k_18", "kron18", "kron19", "kron20",
        "kron21=kron21_44", "mip1_like=longrows66463_.05_2000_55", "nxp1_like=circuit414k_6_4_50k", "ohne2_like=points181343_1_8_60_300_.025",
        "rajat21_like=circuit411k_4_4_100k", "rajat24_like=circuit358k_5_4_100k", "rajat29_like=circuit643k_5_4_300k",
        "rajat30_like=circuit643994_4.6_2_788k_512_1700"
    ]),
    "tiledspmm": (["star7_60", "box27_30", "elast27b3_16", "kron14", "web100k_5", "uniform100k_8", "longrows20k_.02_2700_9"], [
        "web1M_3.1", "star7_200", "box27_100", "elast27b3_56", "kron18", "kron19", "uniform1M_16", "dense4096", "star5_1500",
        "tsopf_like=longrows38120_.8_528_8", "torso_like=longrows116158_.024_2700_9", "highorder_60=star7_60_6", "circuit682k_5_8_390k",
        "circuit1447360_3.8", "lp300k_1M_4", "web7M_20_1.7_.8", "band9506_79"
    ]),
}

# ---- EVC-HYB ---------------------------------------------------------------------------------------------------------

ONCE = ["full", "inorder", "pastL1", "constX", "constA"]  # what evchybparts -once launches
PLAIN = ["-mat_evchyb_storage", "plain", "-mat_evchyb_order", "none"]  # the paper's; by itself the format packs large matrices, and orders some
# a solve without reordering: everything is permuted once
PERMUTED = [
    "-ksp_type", "preonly", "-pc_type", "gallopreorder", "-reorder_ksp_type", "cg", "-reorder_pc_type", "jacobi", "-reorder_ksp_converged_reason"
]


def evchyb(lab):
    products = lab.bench("products", ["aijcusparse", "evchyb", "evchyb@paper", "evchyb+inorder", "evchyb+inorder@paper"],
                         PLAIN + ["-paper_mat_evchyb_storage", "plain", "-paper_mat_evchyb_order", "none", "-paper_mat_evchyb_window", "0", "-paper_mat_evchyb_first_column", "1",
                                  "-paper_mat_evchyb_max_ell", "128", "-view", "::ascii_info"])
    names = products.order
    rows = []
    for name in names:
        case = products.get(name, "evchyb@paper")
        if case:
            split, ell, ellshare, csr, csrshare, added = viewed(
                case, r"I_split (\d+), NNZ_ELL (\d+) \(([\d.]+) %\), NNZ_vCSR (\d+) \(([\d.]+) %\), NNZ added ([\d.]+) %")
            rows.append([name, case["m"], case["nnz"], case["nnz"] / case["m"], split, ell, ellshare, csr, csrshare, added, products.best(name)[1]])
    lab.table("table3", "Table 3: matrix statistics", [
        "name", "NROW", "NNZ", "N_nzr", "I_split", "NNZ_ELL", "% NNZ_ELL", "NNZ_vCSR", "% NNZ_vCSR", "% NNZ added", "fastest " +
        ("cuSPARSE" if lab.gpu else "of PETSc")
    ], rows, "Rows are sorted and split as in the paper, -mat_evchyb_window 0 -mat_evchyb_first_column 1 -mat_evchyb_max_ell 128. cuSPARSE has no HYB any more.")
    parts = Cases([], lab.gpu)
    if lab.gpu:
        parts = lab.program("parts", "evchybparts")
    else:
        lab.lacks("Figures 3 and 4 with results left in the order of the rows; Figures 12, 13, 14", "the kernels with constant A and X are for a GPU")
    reordered = {name: products.speedup(name, "evchyb") for name in names}
    left = {name: products.best(name)[0] / parts.time(name, "inorder") for name in names if products.best(name)[0] and parts.time(name, "inorder")}
    permuted = {name: products.speedup(name, "evchyb+inorder") for name in names}
    lab.bars("figure3", f"Figure 3: speedup over {lab.against}", names,
             {"with reordering": reordered, **({"without reordering": left} if left else {}), "rows and columns permuted once": permuted,
              "the paper's setting": {name: products.speedup(name, "evchyb@paper") for name in names},
              "the paper's setting, permuted once": {name: products.speedup(name, "evchyb+inorder@paper") for name in names}},
             ylabel="speedup", line=1)
    loss = {}
    for label, cases, without, complete in (("results left in the order of the rows", parts, "inorder", "full"),
                                            ("rows and columns permuted once", products, "evchyb+inorder", "evchyb"),
                                            ("the paper's setting, permuted once", products, "evchyb+inorder@paper", "evchyb@paper")):
        loss[label] = {
            name: (case["nnz"] / case["m"], 100 * (1 - 1 / gain)) for name, gain in ratio(cases, without, complete).items()
            for case in [cases.get(name, without)]
        }
    lab.points("figure4", "Figure 4: what reordering the results costs", loss, xlabel="entries per row (NNZ / NROW)",
               ylabel="degradation of the speed (%)", logx=True, line=0)
    rates = {lab.against: {name: gflops(products.get(name, "evchyb"), products.best(name)[0]) for name in names if products.best(name)[0] and products.get(name, "evchyb")}}
    for title, cases, what in (("EVC-HYB", products, "evchyb"), ("EVC-HYB, results left in the order of the rows", parts, "inorder")):
        rates[title] = {name: gflops(cases.get(name, what), cases.time(name, what)) for name in names if cases.get(name, what)}
    lab.bars("figure5", "Figure 5: rates", names, {title: each for title, each in rates.items() if each}, ylabel="GFLOP/s")
    lab.lacks("Figure 9", "cuSPARSE has no HYB any more")
    counted = counters(lab) if lab.gpu else {}
    caches(lab, products, parts, counted)
    past_l1(lab, parts, counted)
    balance(lab, products, counted)
    if parts.order:
        times(lab, parts)
    random_matrices(lab)
    bratu(lab)
    stream = lab.measurements.get("parts", {})
    if stream.get("stream_copy_GBs"):
        lab.table("table2", "Table 2: bandwidth by STREAM", ["", "GB/s"],
                  [["copy", stream["stream_copy_GBs"]], ["triad", stream["stream_triad_GBs"]], ["reading alone, b of P_max", lab.machine["read_bandwidth_GBs"]]],
                  "Arrays of 512 MB in double precision, by kernels of evchybparts; bytes as STREAM counts them, each array once.")
    else:
        lab.lacks("Table 2", "its kernels are for a GPU")


def balance(lab, products, counted):
    """Section 3.2: bytes per flop, from a profiler where there is one, else between the bounds that the view tells."""
    bandwidth, rows, measured = lab.machine["read_bandwidth_GBs"], [], {name: launches["inorder"][READ] for name, launches in counted.items()}
    scalar, entry = lab.machine["scalar_bytes"], lab.machine["scalar_bytes"] + 4  # a column has 4 bytes whatever indices have
    if not lab.gpu:
        lab.lacks("Figure 10: alpha and code balance from the bytes that were moved; Figures 6 to 8", "they are counted on a GPU; the bounds below need no counting")
    performance, low, high, real = {}, {}, {}, {}
    for name in products.order:
        case = products.get(name, "evchyb")
        if not case:
            continue
        least, alpha, most = viewed(case, r"code balance ([\d.]+) bytes/flop .*\(alpha ([\d.]+)\), ([\d.]+) when")
        if not least:  # the matrix is packed, or has no format
            continue
        stored, per_row = sum(viewed(case, r"NNZ_ELL (\d+) \([\d.]+ %\), NNZ_vCSR (\d+)")), case["nnz"] / case["m"]
        flops = 2 * case["nnz"] + 3 * case["m"]
        performance[name], low[name], high[name] = flops / product_us(case) * 1e-3, bandwidth / most, bandwidth / least
        own, code = None, None
        if measured.get(name):  # y is not read; stores stay in L2 as long as there is room, so they are not taken from the profiler
            own = (measured[name] - entry * stored) / (scalar * case["nnz"])
            code = (measured[name] + scalar * case["m"]) / flops
            real[name] = bandwidth / code
        megabytes = measured[name] * 1e-6 if measured.get(name) else None
        rows.append([name, per_row, least, alpha, most, megabytes, own, code, performance[name], low[name], high[name], real.get(name)])
    lab.table("figure10", "Figures 10 and 11: code balance B, alpha, and the most achievable performance P_max = b / B", [
        "name", "N_nzr", "B, x loaded once", "alpha then", "B, alpha 1", "read (MB)", "alpha", "B", "P_meas (GFLOP/s)", "P_max, alpha 1",
        "P_max, x loaded once", "P_max"
    ], rows, f"b is the read bandwidth, {bandwidth} GB/s, where the paper has STREAM's copy. With flops counted as there, 2 NNZ + 3 N. The bounds have y "
              "read and stored, as the paper; what is measured is y = A x, which stores it.")
    if real:
        lab.bars("figure10", "Figure 10: code balance and alpha", products.order,
                 {"code balance (bytes/flop)": {row[0]: row[7] for row in rows}, "alpha": {row[0]: row[6] for row in rows}}, ylabel="")
    lab.bars("figure11", "Figure 11: measured and most achievable performance", products.order,
             {"measured": performance, **({"P_max": real} if real else {"P_max, x loaded once": high, "P_max, x loaded for each entry": low})},
             ylabel="GFLOP/s")


def counters(lab):
    """What ncu counts of the kernel, by matrix: launches as evchybparts -once has them."""
    profiler = Profiler(lab, "Figure 10: alpha and code balance from the bytes that were moved; Figures 6 to 8", ". The bounds below need none")
    metrics = [READ, NS] + [f"{level}{what}.sum" for level in (L1, L2) for what in ("", "_lookup_hit")]

    def ask(matrix):
        return dict(zip(ONCE, profiler.launches(metrics, ["--kernel-name", "regex:SpMV_EVCHYB_adaptive"], [lab.path("evchybparts"), "-once"] + bench.named(matrix), len(ONCE))))

    return lab.answers("counters", "Figures 6 to 10", metrics, lab.matrices, ask)


def caches(lab, products, parts, counted):
    """Section 3.2: how fast each level of memory gives what the kernel reads, and how often caches have it; with A or x constant, of the other alone."""
    cycles = lab.measurements.get("parts", {}).get("latencies")
    rate_of = {name: gflops(parts.get(name, "inorder"), parts.time(name, "inorder")) for name in counted if parts.get(name, "inorder")}
    throughput, shares, mean_cycles, rows = {"memory": {}, "L2": {}, "L1": {}}, {"x, L1": {}, "x, L2": {}, "A, L2": {}}, {"C_X": {}, "C_A": {}}, []
    for name, launches in counted.items():
        whole, a, x = launches["inorder"], launches["constX"], launches["constA"]
        moved = {"memory": whole[READ], "L2": SECTOR * whole[f"{L2}.sum"], "L1": SECTOR * whole[f"{L1}.sum"]}
        for level, bytes_ in moved.items():
            throughput[level][name] = rate(whole, bytes_)
        found = {"x, L1": hits(x, L1), "x, L2": hits(x, L2), "A, L2": hits(a, L2)}
        for part, value in found.items():
            shares[part][name] = 100 * value
        loads = [latency(x, cycles), latency(a, cycles)] if cycles else [None, None]
        for part, value in zip(mean_cycles, loads):
            mean_cycles[part][name] = (value, rate_of.get(name))
        rows.append([name, rate_of.get(name)] + [throughput[level][name] for level in moved] + [shares[part][name] for part in found] + loads)
    if not rows:
        return
    lab.bars("figure6", "Figure 6: throughput of memory, L2 and L1", products.order, throughput, ylabel="GB/s", logy=True)
    lab.bars("figure7", "Figure 7: hit rates", products.order, shares, ylabel="percent of sectors")
    if cycles:
        lab.points("figure8", "Figure 8: rates and cycles of a load in the mean", mean_cycles, xlabel="cycles", ylabel="GFLOP/s")
    else:
        lab.lacks("Figure 8", "evchybparts told no latencies")
    lab.table("figure6", "Figures 6, 7 and 8: levels of memory", [
        "name", "GFLOP/s", "memory (GB/s)", "L2 (GB/s)", "L1 (GB/s)", "x: hits in L1 (%)", "x: in L2 (%)", "A: in L2 (%)", "C_X (cycles)", "C_A (cycles)"
    ], rows, "Results stay in the order of the stored rows. What L1 and L2 give is reading alone; hits of x are of the kernel with A constant, those of A of that with x constant. " +
              (f"A load takes {cycles[0]:.0f} cycles from L1, {cycles[1]:.0f} from L2 and {cycles[2]:.0f} from memory, measured; caches are empty before a launch." if cycles else ""))


def past_l1(lab, parts, counted):
    """Table 4: web-Google with x through the texture cache, which is L1 today, and past it; of another list of matrices the first."""
    name = "web-Google_like" if "web-Google_like" in counted else next(iter(counted), None)
    if not name:
        return lab.lacks("Table 4", "nothing was counted")
    ways, rows = {"inorder": "x through L1", "pastL1": "x past L1"}, []
    launches = [counted[name][way] for way in ways]
    rows.append(["rate (GFLOP/s)"] + [gflops(parts.get(name, way), parts.time(name, way)) if parts.get(name, way) else None for way in ways])
    for what, value in (("memory (GB/s)", lambda launch: rate(launch, launch[READ])), ("L2 (GB/s)", lambda launch: rate(launch, SECTOR * launch[f"{L2}.sum"])),
                        ("L1 (GB/s)", lambda launch: rate(launch, SECTOR * launch[f"{L1}.sum"])), ("hits in L1 (%)", lambda launch: 100 * hits(launch, L1)),
                        ("hits in L2 (%)", lambda launch: 100 * hits(launch, L2))):
        rows.append([what] + [value(launch) for launch in launches])
    gains = list(ratio(parts, "inorder", "pastL1").values())
    over = f"Of {len(gains)} matrices x through L1 is {mean(gains):.2f} times as fast in the geometric mean, {min(gains):.2f} to {max(gains):.2f}." if gains else ""
    lab.table("table4", f"Table 4: {name} with x through L1 and past it", [name, *ways.values()], rows, f"Of all that the kernel reads, results in the order of the stored rows. {over}".strip())


def times(lab, parts):
    """Section 3.3."""
    rows, ratios, shares, rates = [], {}, {"T_A": {}, "T_X": {}, "T_Y": {}}, {"complete": {}, "constant X": {}, "constant A": {}}
    for name in parts.order:
        spmv, x, a, both = (parts.time(name, what) for what in ("inorder", "constX", "constA", "constAX"))
        if None in (spmv, x, a, both):
            continue
        t_a, t_x = max(x - both, 0.0), max(a - both, 0.0)
        total, case = t_a + t_x + both, parts.get(name, "inorder")
        ratios[name] = total / spmv
        for part, value in (("T_A", t_a), ("T_X", t_x), ("T_Y", both)):
            shares[part][name] = 100 * value / total
        for part, value in (("complete", spmv), ("constant X", x), ("constant A", a)):
            rates[part][name] = gflops(case, value)
        rows.append([name, spmv, x, a, both, t_a, t_x, both, total / spmv])
    lab.table("figure12", "Figures 12 and 13: times of the parts in µs",
              ["name", "T_SpMV", "constant X", "constant A", "both constant", "T_A", "T_X", "T_Y", "T_total / T_SpMV"], rows)
    lab.bars("figure12", "Figure 12: T_total / T_SpMV", parts.order, {"T_total / T_SpMV": ratios}, ylabel="", line=1)
    lab.bars("figure13", "Figure 13: shares of T_A, T_X and T_Y", parts.order, shares, ylabel="percent of T_total", stacked=True)
    lab.bars("figure14", "Figure 14: rates with a part of the data constant", parts.order, rates, ylabel="GFLOP/s")


def random_matrices(lab):
    """Section 3.4: rows of 1 to 0.05 N entries."""
    sizes = [5000, 10000, 15000] if lab.quick else [5000, 15000, 25000, 35000, 45000, 55000, 65000]
    if not lab.gpu and not lab.quick:
        sizes = sizes[:3]
        lab.lacks("Figure 15 beyond N = 25000", "on the host larger ones are left out")
    random = lab.bench("random", ["aijcusparse", "evchyb"], matrices=[f"N{n}=uneven{n}_{n // 20}" for n in sizes])
    series = {"evchyb": "evchyb", lab.against: None}
    lab.points(
        "figure15", "Figure 15: random matrices of N rows with 1 to 0.05 N entries", {
            label: {
                name: (random.get(name, "evchyb")["nnz"] / 1e6,
                       gflops(random.get(name, "evchyb"),
                              random.time(name, what) if what else random.best(name)[0]))
                for name in random.order if random.get(name, "evchyb") and random.best(name)[0]
            } for label, what in series.items()
        }, kind="lines", xlabel="nonzeros (millions)", ylabel="GFLOP/s")


def bratu(lab):
    """Section 3.4: PETSc's SNES example 14 on several ranks, one GPU each."""
    title = "Figure 16: the Bratu problem"
    if not (lab.chosen.ex14 and Path(lab.chosen.ex14).exists() and lab.chosen.library):
        return lab.lacks(title, "make papers PAPERS=evchyb-gpus runs it alone; --ex14 and --library name PETSc's example and libgallop.so")
    side = (100 if lab.quick else 200) if lab.gpu else (24 if lab.quick else 64)
    places = lab.gpus if lab.gpu else len(os.sched_getaffinity(0))
    ranks = [number for number in (1, 2, 4) if number <= places]
    if ranks[-1] < 4:
        lab.lacks(
            f"{title} on 4 ranks",
            f"there {'is' if places == 1 else 'are'} {places} {'GPU' if lab.gpu else 'core'}{'' if places == 1 else 's'}; up to {ranks[-1]} ranks ran"
        )
    ways = [("aijcusparse" if lab.gpu else "aij", []), ("evchyb", PLAIN), ("evchyb permuted", PLAIN + PERMUTED), ("evchyb packed", ["-mat_evchyb_storage", "packed"])]
    rows = []
    for number in ranks:
        for way, options in lab.steps(f"Figure 16, {number} rank{'s' if number > 1 else ''}", "runs", ways):
            mat_type = way.split()[0]  # by -mat_type: ex14 itself sets the DM's type, to aij
            log = lab.folder.resolve() / f"bratu-{way.replace(' ', '-')}-{number}.csv"
            log.unlink(missing_ok=True)
            command = (shlex.split(lab.chosen.mpiexec) + ["-n", str(number), lab.chosen.ex14] +
                       [word for axis in "xyz" for word in (f"-da_grid_{axis}", str(side))] + [
                           "-ksp_type", "cg", "-pc_type", "jacobi", "-mat_gallop_build", "first", "-mat_type", mat_type, "-snes_converged_reason", "-ksp_converged_reason",
                           "-log_view", f":{log}:ascii_csv"
                       ] + (["-dm_vec_type", "cuda", "-log_view_gpu_time"] if lab.gpu else []) +
                       (["-dll_append", lab.chosen.library] if mat_type == "evchyb" else []) + options)
            try:
                done = finish(command, 2 * lab.chosen.timeout)
            except (OSError, subprocess.TimeoutExpired) as error:
                lab.bad += 1
                lab.lacks(f"{title}: {way} on {number} ranks", str(error))
                continue
            if done.returncode or "DIVERGED" in done.stdout or not log.exists():
                lab.bad += 1
                lab.lacks(f"{title}: {way} on {number} ranks",
                          "did not converge" if "DIVERGED" in done.stdout else bench.reason(done.returncode, done.stdout))
                continue
            seconds = events(log)
            if mat_type == "evchyb" and not seconds("EVCHYBMult"):
                lab.bad += 1
                lab.lacks(f"{title}: {way} on {number} ranks", "its products were not the format's")
                continue
            inner, outer = (re.findall(rf"Linear {which}solve converged due to \w+ iterations (\d+)", done.stdout) for which in ("reorder_ ", ""))
            linear = sum(map(int, inner or outer))
            rows.append([number, way, linear, seconds("MatMult"), seconds("SNESSolve")])
    if rows:
        lab.table("figure16", f"Figure 16: the Bratu problem on {side}^3 points, CG with Jacobi",
                  ["ranks", "type", "linear iterations", "MatMult (s)", "SNESSolve (s)"], rows,
                  "One GPU each rank." if lab.gpu else "On the host, without a GPU.")
        names = [f"{part}, {number} rank{'s' if number > 1 else ''}" for number in ranks for part in ("MatMult", "SNESSolve")]
        lab.bars(
            "figure16", f"Figure 16: the Bratu problem on {side}^3 points", names, {
                way: {
                    f"{part}, {number} rank{'s' if number > 1 else ''}": row[place] for number in ranks
                    for part, place in (("MatMult", 3), ("SNESSolve", 4)) for row in rows if row[:2] == [number, way]
                } for way, _ in ways
            }, ylabel="seconds")


# ---- CSR-Overlap -----------------------------------------------------------------------------------------------------


def csroverlap(lab):
    if lab.gpu:
        tune(lab)
    else:
        lab.lacks("Table 2, Figure 9 and section 5.4", "vector sizes and copies to a GPU need one")
    lab.lacks("Figure 8 with LightSpMV and merge-based SpMV", "no library of CUDA has them any more")
    products = lab.bench("products", ["aijcusparse", "csroverlap"])
    rate = {}
    for what in ["csroverlap"] + (["raw_csr_alg1", "raw_csr_alg2"] if lab.gpu else ["aij"]):
        rate[what] = {
            name: 2e-3 * (case["nnz"] + case["m"]) / product_us(case) for name in products.order for case in [products.get(name, what)] if case
        }
    lab.bars("figure8", "Figure 8: CSR-Partial-Overlap", products.order, rate, ylabel="GFLOP/s, 2 (N_nz + m) / t")
    speedups = [products.speedup(name, "csroverlap") for name in products.order]
    lab.table(
        "figure8", "Figure 8: rates in GFLOP/s, 2 (N_nz + m) / t", ["name", "N_nz", "N_nz / m"] + list(rate) + ["speedup"],
        [[name, case["nnz"], case["nnz"] / case["m"]] + [each.get(name) for each in rate.values()] + [products.speedup(name, "csroverlap")]
         for name in products.order for case in [products.get(name, "csroverlap")] if case],
        f"Geometric mean of the speedup over {lab.against}: {mean(speedups) or float('nan'):.2f}. No library of CUDA has LightSpMV or merge-based SpMV any more; "
        "the paper's cuSPARSE is that of CUDA 11.7."
    )
    if not lab.gpu:
        return
    first = lab.bench("first", ["aijcusparse", "csroverlap"], ["-first", "-mat_csroverlap_build_in_assembly", "-mat_csroverlap_pinned", "always"])
    built = lab.bench("built", ["csroverlap"], ["-first", "-mat_csroverlap_pinned", "always"], raw=False)  # in the first product
    rows, gain, added = [], {}, {}
    for name in first.order:
        case, partial, best = first.get(name, "csroverlap"), products.time(name, "csroverlap"), products.best(name)[0]
        raw = [other["first_ms"] for (matrix, what, _), other in first.by.items() if matrix == name and what.startswith("raw_")]
        parent = first.get(name, "aijcusparse")
        if case and partial and best and raw:
            added[name] = (1e3 * (case["copy_ms"] - case["first_ms"]) + best) / partial + 1
            gain[name] = 1e3 * (min(raw) - case["first_ms"]) / partial + 1
            rows.append([name, case["first_ms"], partial / 1e3, min(raw), gain[name], case["copy_ms"], best / 1e3, added[name], parent and parent["first_ms"],
                         (built.get(name, "csroverlap") or {}).get("first_ms")])
    lab.table("figure9", "Figure 9: CSR-Full-Overlap",
              ["name", "first product (ms)", "a later product (ms)", "cuSPARSE's copies and product (ms)", "speedup by equation 2", "one copy (ms)",
               "cuSPARSE's product alone (ms)", "equation 2 of their sum", "aijcusparse's first product (ms)", "ours with the build (ms)"], rows,
              (f"Mean {statistics.mean(gain.values()):.2f}, of the sum {statistics.mean(added.values()):.2f}. " if gain else "") +
              "cuSPARSE's columns and values are copied from pinned memory, one after the other, and its fastest product follows, timed as a whole; the sum is of one copy of as many bytes and "
              "of a product in a row of products. aijcusparse copies from pageable memory and has cuSPARSE look at the matrix. The build: the partition, and a copy to pinned memory." +
              (" Below 1: the first product takes longer." if gain and min(gain.values()) < 1 else ""))
    sweep(lab)
    lab.bars("figure9", "Figure 9: speedup of CSR-Full-Overlap by equation 2", first.order,
             {"copies and product as they run": gain, "a copy and a product added": added}, ylabel="speedup", line=1)


def sweep(lab):
    """Section 5.4: first products by the size of big batches."""
    sizes = {f"b{power}": 1 << power for power in ((16, 20) if lab.quick else (18, 20, 22, 24, 26))}
    options = [word for prefix, size in sizes.items() for word in (f"-{prefix}_mat_csroverlap_big_batch_size", str(size))] + ["-two_mat_csroverlap_big_batch_num", "2"]
    first = lab.bench("sweep", ["csroverlap"] + [f"csroverlap@{prefix}" for prefix in ["two", *sizes]],
                      ["-first", "-mat_csroverlap_build_in_assembly", "-mat_csroverlap_pinned", "always"] + options, raw=False)

    def milliseconds(name, what):
        return (first.get(name, what) or {}).get("first_ms")

    rows = [[name, first.get(name, "csroverlap")["nnz"], milliseconds(name, "csroverlap")] + [milliseconds(name, f"csroverlap@{prefix}") for prefix in ["two", *sizes]]
            for name in first.order if first.get(name, "csroverlap")]
    lab.table("sweep", "Section 5.4: the first product in ms by the entries of a big batch", ["name", "N_nz", "as chosen", "two of one size"] + [str(size) for size in sizes.values()], rows,
              "As chosen: up to four, each seven eighths of what is left. Two of one size: the paper's number, of values alone. A batch with more entries than the matrix is the only one. All columns come first.")


def tune(lab):
    """Table 2: csroverlap-tune.py finds vector sizes."""
    lab.look_at_clock()
    output = lab.folder / "csroverlap-tune.txt"
    command = [
        sys.executable,
        str(Path(__file__).resolve().parent / "csroverlap-tune.py"), "--program",
        lab.path("gallopbench"), "--output",
        str(output)
    ]
    command += ["--entries", "2000000", "--lengths", "2,4,8,16,32,64,128,256"] if lab.quick else []
    try:
        with lab.progress("Table 2"):
            done = finish(command + ["--"] + lab.short, 4 * lab.chosen.timeout)
    except subprocess.TimeoutExpired:
        lab.bad += 1
        return lab.lacks("Table 2", f"csroverlap-tune.py did not end in {4 * lab.chosen.timeout:g} s")
    if done.returncode:
        lab.bad += 1
        return lab.lacks("Table 2", done.stdout.strip() or f"exit status {done.returncode}")
    lines = [line for line in output.read_text().splitlines() if not line.startswith("#")]
    sizes = [int(word) for word in lines[0].split()[1:-1]]
    measured = [[float(word) for word in line.split()] for line in lines[1:] if not line.startswith("-")]
    points = [float(word) for word in lines[-1].split()[1].split(",")]
    edges = [0.0] + points
    lab.table("table2", "Table 2: the best vector_size for each mean length of rows", ["N_nz / m from", "to", "vector_size"],
              [[low, high if high < 1e8 else None, size]
               for low, high, size in zip(edges, points + [math.inf], sizes) if low < 1e8 and low < high])
    lab.figure("table2", "Table 2: times of random matrices by vector_size", "lines",
               [{"name": f"vector_size {size}", "names": [], "x": [row[0] for row in measured], "y": [row[1 + k] for row in measured]}
                for k, size in enumerate(sizes)], xlabel="entries per row", ylabel="time over that of the best vector_size", logx=True, over_best=1.3)


# ---- FastLoad --------------------------------------------------------------------------------------------------------


def fastload(lab):
    heights = {"no limit": 0, **{f"height {height}": height for height in (1, 2, 4, 8, 16, 32)}}
    variants = {name: f"p{height}" for name, height in heights.items()} | {f"{name}, x sorted": f"s{height}" for name, height in heights.items()}
    options = [
        word for prefix in variants.values()
        for word in (f"-{prefix}_mat_fastload_block_height", prefix[1:], f"-{prefix}_mat_fastload_group_steps", "0", f"-{prefix}_mat_fastload_sorted_x", str(int(prefix[0] == "s")))
    ]
    products = lab.bench("products", ["aijcusparse", "fastload"] + [f"fastload@{prefix}" for prefix in variants.values()],
                         options + (["-csc_warp"] if lab.gpu else []))
    rows = []
    for variant, what in {**{variant: f"fastload@{prefix}" for variant, prefix in variants.items()}, "the defaults": "fastload"}.items():
        speedups = [value for value in (products.speedup(name, what) for name in products.order) if value]
        if speedups:
            rows.append([variant, len(speedups), 100 * sum(value > 1 for value in speedups) / len(speedups), mean(speedups)])
    lab.table(
        "table1", "Table I: heights of blocks", ["variant", "matrices", f"ratio: faster than {lab.against} (%)", "speedup, geometric mean"], rows,
        "With the paper's steps of all columns, -mat_fastload_group_steps 0, but for the defaults; x sorted: by -mat_fastload_sorted_x 1 in the product's time. No library of CUDA has TileSpMV or CSR5.")
    speedups = {f"over {lab.against}": {name: products.speedup(name, "fastload") for name in products.order}}
    if lab.gpu:
        speedups["over CSC-based SpMV"] = ratio(products, "fastload", "csc_warp")
    else:
        lab.lacks("Figures 7 and 8 over CSC-based SpMV", "its kernel is for a GPU")
    facts = {name: products.get(name, "fastload") for name in products.order if products.get(name, "fastload")}
    lab.points("figure7", "Figure 7: speedup by the number of nonzeros",
               {label: {name: (case["nnz"], values.get(name)) for name, case in facts.items()} for label, values in speedups.items()},
               xlabel="nonzeros", ylabel="speedup of fastload", logx=True, logy=True, line=1)
    lab.points("figure8", "Figure 8: speedup by the variation of the lengths of rows",
               {label: {name: (max(case["row_variation"], 0.01), values.get(name)) for name, case in facts.items()}
                for label, values in speedups.items()},
               xlabel="variation: standard deviation over mean (0.01 and less at 0.01)", ylabel="speedup of fastload", logx=True, logy=True, line=1)
    lab.lacks("Table I and Figures 7, 8, 10 and 11 with CSR5, TileSpMV and merge path", "no library of CUDA has them")
    lab.lacks("Figures 1, 4 and 5", "they are of a collection's groups, and of an ideal that is not built")
    setup = lab.bench("setup", ["aijcusparse", "fastload"], ["-setup"], raw=False)
    builds = {name: setup.get(name, "fastload") for name in setup.order if setup.get(name, "fastload")}
    lab.points(
        "figure10", "Figure 10: cost of preprocessing", {
            **{what: {name: (case["nnz"], case["build_us"] if case["build_us"] > 0 else None) for name in builds for case in [setup.get(name, what)] if case}
               for what in ("fastload", "aijcusparse")}, "a product": {name: (case["nnz"], case["product_us"]) for name, case in builds.items()}
        }, xlabel="nonzeros", ylabel="µs", logx=True, logy=True)
    lab.table("figure10", "Figures 10 and 11: preprocessing and peak memory",
              ["name", "nonzeros", "build (µs)", "build / product", "refresh (µs)", "aijcusparse's build (µs)", "peak memory, bytes per nonzero", "of aijcusparse"], [[
                  name, case["nnz"], case["build_us"], case["build/product"], case["refresh_us"], (setup.get(name, "aijcusparse") or {}).get("build_us"), case["peak_B/nnz"],
                  (setup.get(name, "aijcusparse") or {}).get("peak_B/nnz")
              ] for name, case in builds.items()], "Peak memory: the most that was in use until the first product had finished, without vectors; empty below 16 MiB, which cannot be measured.")
    if lab.gpu:
        lab.bars("figure11", "Figure 11: peak memory", list(builds), {
            what: {name: case.get("peak_B/nnz") for name in builds for case in [setup.get(name, what) or {}]} for what in ("fastload", "aijcusparse")
        }, ylabel="bytes per nonzero")
    else:
        lab.lacks("Figure 11: peak memory", "it is that of a GPU")
    ablation(lab)


def ablation(lab):
    """Figure 9: without one sum for a line of one row, and without sums of segments too."""
    kinds = {"none": "no sums in a line", "segments": "segment sums", "all": "and one sum for lines of one row"}
    products = lab.bench("sums", [f"fastload@{kind}" for kind in kinds], [word for kind in kinds for word in (f"-{kind}_mat_fastload_sums", kind)], raw=False)
    lab.bars("figure9", "Figure 9: what sums gain", products.order, {title: ratio(products, f"fastload@{kind}", "fastload@none") for kind, title in kinds.items()},
             ylabel="speedup over no sums", line=1)
    rows = [[title, *(over(values) for over in (len, min, mean, max))]
            for kind, title in kinds.items() for values in [list(ratio(products, f"fastload@{kind}", "fastload@none").values())] if values]
    lab.table("figure9", "Figure 9: what sums gain", ["", "matrices", "minimum", "geometric mean", "maximum"], rows, "Speed over that with -mat_fastload_sums none.")


# ---- HBP -------------------------------------------------------------------------------------------------------------


def hbp(lab):
    if not lab.gpu:
        products = lab.bench("products", ["aijcusparse", "hbp"],
                             ["-view", "::ascii_info_detail", "-mat_hbp_block_rows", "512", "-mat_hbp_block_cols", "4096"])
        deviations = {
            name: viewed(products.get(name, "hbp"), r"within warps: ([\d.e+-]+), in order of rows: ([\d.e+-]+)") for name in products.order
            if products.get(name, "hbp")
        }
        lab.bars("figure6", "Figure 6: standard deviation of the entries of a row within warps", products.order, {
            "in order of rows": {name: pair[1] for name, pair in deviations.items()}, "by hash": {name: pair[0] for name, pair in deviations.items()}
        }, ylabel="standard deviation")
        lab.table("figure6", "Figure 6: standard deviation of the entries of a row within warps", ["name", "in order of rows", "by hash"],
                  [[name, pair[1], pair[0]] for name, pair in deviations.items()])
        return lab.lacks("Figures 7 to 10, Table II and other products of the same blocks", "orders, parts and products are timed and counted on a GPU")
    ways = lab.program("ways", "hbp2d")
    names = ways.order
    shared = lab.program("shared", "hbp2d", ["-shared_x"])  # x of a block in shared memory, as the paper has it always
    given = lab.program("given", "hbp2d", ["-fixed", "100"])  # nobody takes parts by tickets
    atomic = lab.program("atomic", "hbp2d", ["-atomic"])  # no combine part, as the authors tried (section V)

    def column(way, key, cases=ways):
        return {name: case[key] for name in names for case in [cases.get(name, way)] if case and isinstance(case.get(key), (int, float))}

    lab.bars("figure6", "Figure 6: standard deviation of the entries of a row within warps", names,
             {"in order of rows": column("plain2D", "deviation"), "by hash": column("hash", "deviation")}, ylabel="standard deviation", logy=True)
    lab.bars("figure7", "Figure 7: time to reorder, over that of the hash", names, {way: column(way, "reorder/hash") for way in ("sort2D", "DP2D")},
             ylabel="times the hash's", line=1)
    rate = {way: {name: 2e-3 * ways.get(name, way)["nnz"] / time for name, time in column(way, "product_us").items()} for way in ("hash", "plain2D")}
    raw = {}  # times and names of the fastest of cuSPARSE's
    for (name, what, _), case in ways.by.items():
        if what.startswith("raw_"):
            raw[name] = min(raw.get(name, (math.inf, "")), (case["product_us"], what))
    csr = {name: 2e-3 * ways.get(name, "hash")["nnz"] / time for name, (time, _) in raw.items() if ways.get(name, "hash")}
    without = {name: 2e-3 * given.get(name, "plain2D")["nnz"] / time for name, time in column("plain2D", "product_us", given).items()}
    lab.bars("figure8", "Figures 8 and 10: products", names, {"CSR (best cuSPARSE)": csr, "2D without tickets": without, "2D": rate["plain2D"], "HBP": rate["hash"]},
             ylabel="GFLOP/s")
    rows, own, best = [], column("hash", "product_us"), column("plain2D", "product_us")
    for title, cases in (("x through L1 and L2", ways), ("x of a block in shared memory", shared), ("no tickets", given), ("atomic operations, no combine part", atomic)):
        hashed, plain = column("hash", "product_us", cases), column("plain2D", "product_us", cases)
        over = [plain[name] / hashed[name] for name in hashed if name in plain]
        if over:
            rows.append([title, len(over), mean(over), max(over), mean([own[name] / hashed[name] for name in hashed if name in own]),
                         mean([best[name] / plain[name] for name in plain if name in best])])
    lab.table("blocks", "HBP over the same blocks in order of rows", ["", "matrices", "hash over rows, geometric mean", "largest", "hash, over x through L1 and L2 with tickets", "order of rows, over that"],
              rows, "The paper has 5.49 and 2.68 over plain 2D, whose schedule it does not tell. Products with their combine part, but for the last line.")
    hashed, plain, rows = column("hash", "product_us", shared), column("plain2D", "product_us", shared), []
    for name in [name for name in names if name in hashed and name in plain and name in raw and name in own]:
        flops, times = 2e-3 * shared.get(name, "hash")["nnz"], (raw[name][0], plain[name], hashed[name])
        rows.append([name, *(flops / time for time in times), *(time / hashed[name] for time in (plain[name], raw[name][0], own[name]))])
    lab.table("shared", "Figures 8 and 10 with x of a block in shared memory, as in the paper",
              ["name", "CSR (GFLOP/s)", "2D (GFLOP/s)", "HBP (GFLOP/s)", "speedup over 2D", "speedup over CSR", "speedup over HBP with x through L1 and L2"], rows)
    for way, title in (("plain2D", "2D"), ("hash", "HBP")):
        lab.bars(f"figure9-{way}", f"Figure 9: the parts of products, {title}", names, {
            part: {name: 1e3 * time / ways.get(name, way)["nnz"] for name, time in column(way, key).items()}
            for part, key in (("SpMV", "spmv_us"), ("combine", "combine_us"))
        }, ylabel="ns per nonzero", stacked=True)
    rows = []
    for name in names:
        case = ways.get(name, "hash")
        if case:
            rows.append([name, case["nnz"]] + [
                column(way, key).get(name) for way, key in (("plain2D", "deviation"), ("hash", "deviation"), ("hash", "reorder_us"),
                                                            ("sort2D", "reorder/hash"), ("DP2D", "reorder/hash"), ("hash", "spmv_us"),
                                                            ("hash", "combine_us"), ("plain2D", "spmv_us"), ("plain2D", "combine_us"))
            ] + [csr.get(name), rate["plain2D"].get(name), rate["hash"].get(name)])
    lab.table(
        "figures", "Figures 6 to 10", [
            "name", "nonzeros", "deviation in order of rows", "by hash", "hash: reorder (µs)", "sort2D / hash", "DP2D / hash", "HBP: SpMV (µs)",
            "combine (µs)", "2D: SpMV (µs)", "combine (µs)", "CSR (GFLOP/s)", "2D (GFLOP/s)", "HBP (GFLOP/s)"
        ], rows,
        "Geometric means: " +
        ", ".join(f"{way} / hash {mean(column(way, 'reorder/hash').values()) or float('nan'):.2f}" for way in ("sort2D", "DP2D")) + ". "
        "Blocks are the paper's, 512 by 4096. Figures 8 and 10 are the same measurement on two machines in the paper.")
    busy(lab, {name: what for name, (_, what) in raw.items()})


def busy(lab, fastest):
    """Table II: of the product by hash, both parts, and of the fastest of cuSPARSE's."""
    profiler, metrics = Profiler(lab, "Table II"), [BUSY, MOVED, NS]

    def ask(matrix):
        name = bench.label(matrix)
        launches = [profiler.launches(metrics, ["--profile-from-start", "off"], [lab.path("hbp2d"), "-once", way] + bench.named(matrix)) for way in ((fastest[name], "hash") if name in fastest else ())]
        return [fastest[name], *map(together, launches)] if launches and all(launches) else None

    answers = lab.answers("busy", "Table II", metrics, lab.matrices, ask, lambda name, answer: answer[0] == fastest.get(name))
    rows = [[name, csr_busy, hbp_busy, csr, own] for name, (_, (csr_busy, csr), (hbp_busy, own)) in answers.items()]
    if rows:
        lab.table("table2", "Table II: how busy the memory is, and what it moves", ["name", "CSR: busy (%)", "HBP: busy (%)", "CSR (GB/s)", "HBP (GB/s)"], rows,
                  "CSR is the fastest of cuSPARSE; of HBP both parts. Caches are empty before each launch.")


# ---- Tiled SpMM ------------------------------------------------------------------------------------------------------


def under_bounds(lab, bandwidth, k, kernel, names, model, cut, uneven, given, balanced, chosen, library):
    """Figures 8, 9, 10, 12 and 13. By name: model and cut, flops a byte (effective, where each load of B misses, Gamma 1); rates of the paper's kernel before and after load balancing, as chosen, and of cuSPARSE."""
    bounds = {"where each load of B misses": 1, "where none does that L2 could have (effective)": 0, "Gamma 1 (algorithmic)": 2}
    rates = f"GFLOP/s with {k} columns"
    for figure, place, title in (("figure8", 2, "Figure 8: rates, sorted by the algorithmic bound"),
                                 ("figure9", 1, "Figure 9: rates before load balancing, sorted by the bound where each load of B misses")):
        order = sorted(model, key=lambda name: model[name][place])
        lab.figure(figure, title, "ranks",
                   [{"name": f"bound, {what}", "y": [bandwidth * model[name][at] for name in order], "curve": True}
                    for what, at in bounds.items()] + [{"name": kernel, "y": [given.get(name) for name in order]}],
                   x=order, ylabel=rates, logy=True)
    lab.points(
        "figure10", "Figure 10: roofline", {
            "rows are cut": {name: (model[name][1], given.get(name)) for name in model if name in uneven},
            "rows are whole": {name: (model[name][1], given.get(name)) for name in model if name not in uneven}
        }, kind="roofline", roofs=[{"name": f"read bandwidth, {bandwidth} GB/s", "rate": bandwidth}], xlabel="flops a byte where each load of B misses",
        ylabel=f"{rates}, {kernel}")
    if cut:
        order = sorted(cut, key=lambda name: cut[name][1])
        lab.figure("figure12", "Figure 12: rates after load balancing", "ranks",
                   [{"name": "bound where each load of B misses (equation 6 where rows are cut)", "y": [bandwidth * cut[name][1] for name in order], "curve": True}, {
                       "name": "rows cut where it is chosen", "y": [balanced.get(name) for name in order]
                   }, {"name": "rows whole", "y": [given.get(name) for name in order]}], x=order, ylabel=f"{rates}, {kernel}",
                   logy=True)
    lab.bars("figure13", f"Figure 13: beside {lab.against}", names, {lab.against: library, "TiledSpMM": chosen}, ylabel=rates, logy=True)


def tiledspmm(lab):
    k = 32
    staged = ["mat_tiledspmm_kernel", "staged"] if lab.gpu else []
    whole = ["mat_tiledspmm_utilization", "0", "mat_tiledspmm_imbalance", "1e30"]
    variants = {"given": staged + whole + ["mat_tiledspmm_reorder", "never"], "ordered": staged + whole + ["mat_tiledspmm_reorder", "always"], "whole": whole}
    variants["cut"] = staged + ["mat_tiledspmm_reorder", "never"]
    variants["narrow"] = variants["cut"] + ["mat_tiledspmm_columns", "8"]
    if not lab.gpu:
        for name in ("whole", "cut", "narrow"):  # by itself the host cuts no rows, and R is its own
            del variants[name]
    permuted = "evchyb+sorted@given"  # C is left in the order that rows are sorted in
    options = ["-k", str(k)] + [f"-{name}_{word}" if word.startswith("mat_") else word for name, words in variants.items() for word in words]
    if not lab.gpu:  # where the host leaves products to MATAIJ by itself
        options += [word for prefix in ["", *(f"{name}_" for name in variants)] for word in (f"-{prefix}mat_tiledspmm_least", "1")]
    ours = ["evchyb"] + [f"evchyb@{name}" for name in variants] + [permuted]
    products = lab.bench("products", ["aijcusparse"] + ours, options + ["-view", "::ascii_info"])
    counted = lab.views("model", ["evchyb@given"] + (["evchyb@cut"] if lab.gpu else []), options, "::ascii_info_detail")
    bandwidth, names = lab.machine["read_bandwidth_GBs"], products.order

    def intensities(what):
        found = {
            name: viewed(counted.get(name, what) or {}, r"([\d.e+-]+) flops a byte with \d+ columns at once, ([\d.e+-]+) where each load of B misses, ([\d.e+-]+) with Gamma 1, ([\d.e+-]+) without tiles")
            for name in names
        }
        return {name: values for name, values in found.items() if values[0]}

    model, cut = intensities("evchyb@given"), intensities("evchyb@cut")  # equations 3 and 6
    if not model:
        lab.lacks("Figures 8, 9, 10 and 12", "no view told the model's flops a byte")
    rate = {what: {name: gflops(products.get(name, what), k=k) for name in names if products.get(name, what)} for what in ours}
    library = {
        name: gflops(products.get(name, "evchyb"),
                     products.best(name)[0], k) for name in names if products.best(name)[0] and products.get(name, "evchyb")
    }
    kernel = "the paper's kernel" if lab.gpu else "the host's"
    uneven = {
        name for name in names
        if products.get(name, "evchyb@cut") and (viewed(products.get(name, "evchyb@cut"), r"segments, (\d+) rows have several")[0] or 0) > 0
    }
    under_bounds(lab, bandwidth, k, kernel, names, model, cut, uneven, rate["evchyb@given"], rate.get("evchyb@cut"), rate["evchyb"], library)
    if lab.gpu:
        balanced = {f"{kernel}, cut over whole": ratio(products, "evchyb@cut", "evchyb@given"), "chosen kernels, cut over whole": ratio(products, "evchyb", "evchyb@whole")}
        lab.bars("figure11", "Figure 11: speedup by load balancing where rows are cut", sorted(uneven), balanced, ylabel="speedup", line=1, logy=True)
    else:
        lab.lacks("Figures 11 and 12; Table 2's rows that are cut or with R = 8", "rows are cut on a GPU only")
    rows = []
    for title, what in ((f"{kernel}, rows whole", "evchyb@given"), (f"{kernel}, rows cut", "evchyb@cut"), (f"{kernel}, rows cut, R = 8", "evchyb@narrow"),
                        ("chosen kernels, rows whole", "evchyb@whole"), ("as the format chooses", "evchyb")):
        values = [value for value in (products.speedup(name, what) for name in names) if value]
        if values:
            rows.append([title, len(values), min(values), statistics.mean(values), max(values), mean(values)])
    lab.table("table2", f"Table 2: speedup over {lab.against}, {k} columns", ["", "matrices", "minimum", "average", "maximum", "geometric mean"],
              rows, "Column by column in memory, as PETSc has dense matrices." + ("" if lab.gpu else " -mat_tiledspmm_least 1: by itself the host leaves products to MATAIJ."))
    gained, rho = ratio(products, "evchyb@ordered", "evchyb@given"), {}
    for name in names:
        before, after = (viewed(products.get(name, what) or {}, r"each used ([\d.]+) times")[0] for what in ("evchyb@given", "evchyb@ordered"))
        if before and after:
            rho[name] = after / before
    left = ratio(products, permuted, "evchyb@given")
    lab.bars("figure14", "Figure 14: reordering of rows", names, {"speedup": gained, "C left permuted": left, "rho after / before": rho}, ylabel="", line=1)
    lab.table("model", "Model and measurements", [
        "name", "flops a byte, effective", "all misses", "Gamma 1", "without tiles", "equation 6", "equation 6, all misses", f"GFLOP/s, {kernel}", "rows cut", "GFLOP/s, chosen", f"GFLOP/s, {lab.against}", "speedup",
        "speedup by order of rows", "C left permuted"
    ], [[
        name, *model[name], *(cut[name][:2] if name in cut and name in uneven else (None, None)), rate["evchyb@given"].get(name),
        rate["evchyb@cut"].get(name) if lab.gpu else None, rate["evchyb"].get(name),
        library.get(name),
        products.speedup(name, "evchyb"),
        gained.get(name),
        left.get(name)
    ] for name in model])


TIME_UP = 75  # the exit status of EX_TEMPFAIL
PAPERS = {"evchyb": evchyb, "evchyb-gpus": bratu, "csroverlap": csroverlap, "fastload": fastload, "hbp": hbp, "tiledspmm": tiledspmm}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--output", default="papers")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--library")
    parser.add_argument("--ex14")
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--ncu")
    parser.add_argument("matrices", nargs="*")
    chosen = parser.parse_intermixed_args()
    chosen.matrices = chosen.matrices or MATRICES[chosen.paper][0 if chosen.quick else 1]
    lab = Lab(chosen, TITLES[chosen.paper])
    lab.say(f"{chosen.paper}: {lab.title}\n{lab.machine['machine']}" + ("" if lab.gpu else ", no GPU: products on one core of the host"))
    try:
        PAPERS[chosen.paper](lab)
        lab.complete = True
    except TimeUp:
        lab.say(f"{chosen.minutes:g} minutes are over: --resume goes on")
        return TIME_UP
    finally:  # what was measured before something went wrong
        lab.write()
    lab.say(f"{len(lab.tables)} tables, {len(lab.figures)} figures, {len(lab.missing)} things not measured, {lab.bad} bad cases: {lab.path_of_all}")
    return 1 if lab.bad else 0


if __name__ == "__main__":
    sys.exit(main())
