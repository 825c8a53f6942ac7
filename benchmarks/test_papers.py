#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Test papers.py by programs that print lines as the real ones do on a GPU, with made-up numbers. Needs no GPU and no PETSc."""
import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import papers
from fakes import FakesTest

sys.path.insert(0, str(Path(papers.__file__).resolve().parent / "results"))
import table

FAKE = f"""#!{sys.executable}
import sys, zlib
def say(line): print(line, flush=True)
def number(*words): return 10 + zlib.crc32(" ".join(map(str, words)).encode()) % 1000 / 10
words, program = sys.argv[1:], sys.argv[0].rsplit("/", 1)[1]
def option(name, default): return words[words.index(name) + 1] if name in words else default
names, k = [name.split("=")[0] for name in option("-generate", "a").split(",")], int(option("-k", "0"))
say("# Gallop commit abc123\\n# PETSc Release Version 3.26.1\\n# machine: a GPU, 1 multiprocessors, 1 MiB")
say("# driver 580.1, CUDA 13.0, cuSPARSE 12.6.3\\n# read bandwidth 4000 GB/s")
if program == "evchybparts":
    say("# STREAM: copy 3000 GB/s, triad 3100 GB/s")
    say("# latencies: L1 40, L2 200, memory 600 cycles")
    say("# matrix\\tm\\tnnz\\tstored\\twhat\\twarm_us\\tcold_us\\terr\\twarm_min\\twarm_max\\tcold_min\\tcold_max")
    for name in names:
        for what, t in (("full", 12), ("inorder", 11), ("pastL1", 12), ("constX", 7), ("constA", 6), ("constAX", 2)):
            say("\\t".join([name, "1000", "8000", "8100", what] + [str(t)] * 2 + ["1e-16" if t > 10 else "-"] + [str(t)] * 4))
    sys.exit()
if program == "hbp2d":
    say("# " + "\\t".join("matrix nnz blocks segments way groups reorder_us setup_us reorder/hash setup/hash deviation".split()
                         + "spmv_us combine_us product_us product/hash L2 err".split()))
    for name in names:
        for way, reorder, deviation in (("hash", "2.0", "0.5"), ("sort2D", "8.0", "0.4"), ("DP2D", "9.0", "0.4"), ("plain2D", "-", "3.5")):
            over = str(float(reorder) / 2) if reorder != "-" else "-"
            say("\\t".join([name, "8000", "10", "900", way, "30", reorder, "50", over, "1.0", deviation, "20", "5", "25", "1.0", "warm", "1e-16"]))
        say("\\t".join([name, "8000", "-", "-", "raw_csr_alg1", "-", "-", "-", "-", "-", "-", "-", "-", "30", "1.2", "warm", "1e-16"]))
    say("geometric mean of 1\\t-\\t-\\t-\\tsort2D\\t-\\t-\\t-\\t4.00\\t1.00\\t-\\t-\\t-\\t-\\t1.00\\t-\\t-")
    sys.exit()
if "-setup" in words:
    columns = "matrix nnz product_us convert_ms build_us refresh_us build/product refresh/product what"
    columns += " build_min build_max refresh_min refresh_max peak_B/nnz"
elif "-first" in words:
    columns = "matrix nnz copy_ms first_ms first/copy resident_us newvalues_ms what"
else:
    columns = "matrix m n nnz what k setup_ms warm_us cold_us GF_warm eff B/nnz err warm_min warm_max cold_min cold_max"
say("# " + columns.replace(" ", "\\t"))
types = option("-types", "aijcusparse,evchyb").split(",") + (["raw_csr_alg1", "raw_csr_alg2"] if "-raw" in words else [])
types += ["csc_warp"] * ("-csc_warp" in words)
case = 0
for name in names:
    say(f"# {{name}} has rows of 8.0 entries, variation 0.250, the longest 16")
    for what in types:
        case += 1
        if case <= int(option("-skip", "0")):
            continue
        if "-announce" in words:
            say(f"# begins\\t{{case}}\\t{{name}}\\t{{what}}\\t{{max(k, 1)}}")
        fixed = {{"matrix": name, "m": 1000, "n": 1000, "nnz": 8000, "what": what, "k": max(k, 1), "err": "1e-16", "copy_ms": 2.0,
                 "first_ms": 2.1 if what.startswith("raw_") else 1.9}}
        say("\\t".join(str(fixed.get(column, number(name, what, column))) for column in columns.split()))
        if what == "evchyb" and name == "a_parent":
            say(f"# {{name}} {{what}}: 12 products were the parent type's")
        if any(word.startswith("-view") for word in words):
            say("  EVC-HYB: I_split 992, NNZ_ELL 8000 (98.00 %), NNZ_vCSR 160 (2.00 %), NNZ added 2.00 %, empty rows 0")
            say("  EVC-HYB: code balance 6.39 bytes/flop when each entry of x is loaded once (alpha 0.149), "
                "9.17 when it is loaded for every nonzero (alpha 1)")
            say("  TiledSpMM: 4 panels, 8 stages with 400 rows of B, each used 2.20 times (rho)")
            say(f"  TiledSpMM: 40 segments, {{len(name) % 2}} rows have several; 1.00 of the entries for the cached kernel, "
                "0.00 for the transposed one, 0.00 for tensor cores")
            say("  TiledSpMM: 0.619 flops a byte with 16 columns at once, 0.412 where each load of B misses, 0.353 with Gamma 1, 0.0893 without tiles")
if "-announce" in words:
    say("# done")
"""

FAKE_MPIEXEC = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
log = words[words.index("-log_view") + 1][1:].split(":")[0]
open(log, "w").write("Stage Name,Event Name,Rank,Count,Time\\nMain,MatMult,0,10,0.5\\n"
                     + "Main,EVCHYBMult,0,10,0.4\\n" * ("-mat_type evchyb" in " ".join(words) and "-unused" not in words) + "Main,SNESSolve,0,1,1.5\\n")
print("Linear solve converged due to CONVERGED_RTOL iterations 42")
"""

FAKE_NCU = f"""#!{sys.executable}
import sys
print("==PROF== Connected")
print('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"')
words = sys.argv[1:]
for launch in range(3 if "short" in words else 5 if "-once" in words and "SpMV_EVCHYB_adaptive" in " ".join(words) else 2):
    for metric in words[words.index("--metrics") + 1].split(","):
        number = "25" if "hit" in metric or "pct" in metric else "1,000" if "duration" in metric else "100" if "sectors" in metric else f"1{{launch}}0,000"
        print(f'"{{launch}}","a kernel","{{metric}}","unit","{{"n/a" if "half" in words and "L1" in metric.upper() else number}}"')
"""


class PapersTest(FakesTest):

    def setUp(self):
        super().setUp()
        for name, text in (("gallopbench", FAKE), ("evchybparts", FAKE), ("hbp2d", FAKE), ("mpiexec", FAKE_MPIEXEC), ("ncu", FAKE_NCU), ("ex14", "")):
            self.fake(name, text)

    def paper(self, name, *words, gpus="2"):
        arguments = ["papers.py", name, "--programs", str(self.folder), "--output", str(self.folder / "out"), "--timeout", "60", *words]
        quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
        with mock.patch.object(sys, "argv", arguments), mock.patch.dict(os.environ, {"GALLOP_GPUS": gpus}), quiet[0], quiet[1]:
            status = papers.main()
        return status, json.loads((self.folder / "out" / f"{name}.json").read_text())

    def names(self, document, kind):
        return [each["id"] for each in document[kind]]

    def test_evchyb(self):
        status, document = self.paper("evchyb", "--quick", "--library", "lib.so", "--ex14", str(self.folder / "ex14"), "--mpiexec",
                                      str(self.folder / "mpiexec"), "--ncu", str(self.folder / "ncu"))
        self.assertEqual(status, 0)
        self.assertEqual(self.names(document, "tables"), ["table3", "figure6", "table4", "figure10", "figure12", "figure16", "table2"])
        self.assertEqual([row[1] for row in document["tables"][6]["rows"]], [3000, 3100, 4000])
        self.assertEqual(self.names(document, "figures"),
                         ["figure3", "figure4", "figure5", "figure6", "figure7", "figure8", "figure10", "figure11", "figure12", "figure13", "figure14", "figure15", "figure16"])
        self.assertEqual(document["tables"][0]["rows"][0][4:10], [992, 8000, 98, 160, 2, 2])
        options = document["measurements"]["products"]["options"]
        self.assertEqual(options[options.index("-paper_mat_evchyb_max_ell") + 1], "128")  # by itself the format chooses 256 for some
        caches = document["tables"][1]["rows"][0]
        self.assertEqual(caches[2:], [110, 3.2, 3.2, 25, 25, 25, 385, 385])  # 40 cycles of a fourth, and 200 and 600 of the rest
        table4 = document["tables"][2]
        self.assertEqual(table4["rows"][0][0], "rate (GFLOP/s)")
        self.assertAlmostEqual(table4["rows"][0][1] / table4["rows"][0][2], 12 / 11)
        self.assertEqual(table4["rows"][1], ["memory (GB/s)", 110, 120])  # of the second launch and the third
        self.assertIn("x through L1 is 1.09 times as fast", table4["note"])
        parts = document["tables"][4]["rows"][0]
        self.assertEqual(parts[5:8], [5, 4, 2])  # T_A, T_X, T_Y
        balance = document["tables"][3]["rows"][0]
        self.assertEqual(balance[5], 0.11)  # MB of the second launch
        self.assertAlmostEqual(balance[6], (110000 - 12 * 8160) / (8 * 8000))  # alpha, of double numbers and indices of 4 bytes
        self.assertAlmostEqual(balance[7], 118000 / (2 * 8000 + 3 * 1000))
        self.assertEqual([missing["what"] for missing in document["missing"]], ["Figure 9", "Figure 16: the Bratu problem on 4 ranks"])
        ways = ["aijcusparse", "evchyb", "evchyb permuted", "evchyb packed"]
        self.assertEqual([row[:2] for row in document["tables"][5]["rows"]], [[number, way] for number in (1, 2) for way in ways])

    def test_launches_that_were_not_counted(self):
        status, document = self.paper("evchyb", "a", "short", "half", "--ncu", str(self.folder / "ncu"))
        self.assertEqual(status, 0)
        missing = [f"{each['what']}: {each['why']}" for each in document["missing"]]
        for name, counted in (("short", 3), ("half", 0)):
            self.assertTrue(any(f"-once -generate {name}: " in each and each.endswith(f"counted all of {counted} launches, not of 5") for each in missing), missing)
        self.assertEqual([row[0] for row in document["tables"][1]["rows"]], ["a"])

    def test_types_that_did_not_compute(self):
        status, document = self.paper("evchyb", "a_parent", "--library", "lib.so", "--ex14", str(self.folder / "ex14"), "--mpiexec",
                                      f"{self.folder / 'mpiexec'} -unused", "--ncu", str(self.folder / "ncu"), gpus="1")
        self.assertEqual(status, 1)
        missing = [f"{each['what']}: {each['why']}" for each in document["missing"]]
        self.assertIn("Figure 16: the Bratu problem: evchyb on 1 ranks: its products were not the format's", missing)
        self.assertIn("products: products of the type itself: a_parent evchyb: 12 products were the parent type's", missing)

    def test_csroverlap(self):
        status, document = self.paper("csroverlap", "--quick")
        self.assertEqual(status, 0)
        self.assertEqual(self.names(document, "tables"), ["table2", "figure8", "figure9", "sweep"])
        self.assertEqual([row[1] for row in document["tables"][3]["rows"]][:1], [8000])
        self.assertEqual(self.names(document, "figures"), ["table2", "figure8", "figure9"])
        row = dict(zip(document["tables"][2]["columns"], document["tables"][2]["rows"][0]))
        later = row["a later product (ms)"]
        self.assertAlmostEqual(row["speedup by equation 2"], (2.1 - 1.9) / later + 1)
        self.assertAlmostEqual(row["equation 2 of their sum"], (2.0 + row["cuSPARSE's product alone (ms)"] - 1.9) / later + 1)
        self.assertEqual(row["aijcusparse's first product (ms)"], 1.9)
        self.assertEqual(row["ours with the build (ms)"], 1.9)
        self.assertNotIn("-mat_csroverlap_build_in_assembly", document["measurements"]["built"]["options"])

    def test_csroverlap_tune_forces_vector_size(self):
        spec = importlib.util.spec_from_file_location("tune", Path(papers.__file__).resolve().parent / "csroverlap-tune.py")
        tune = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tune)
        words = tune.command("gallopbench", 1000, [4], ["-mat_csroverlap_max_batch_size", "512", "-min_ms", "10"])
        for size in tune.SIZES:
            given = {name: words[words.index(f"-v{size}_mat_csroverlap_{name}") + 1]
                     for name in ("switch_points", "rows_in_registers", "uneven", "max_batch_size")}
            mean_from = [0.0] + [float(point) for point in given.pop("switch_points").split(",")]
            self.assertEqual([1 << k for k, point in enumerate(mean_from) if point <= 4][-1], size)
            self.assertEqual(given, {"rows_in_registers": "0", "uneven": "0", "max_batch_size": "512"})
        self.assertIn("-min_ms", words)

    def test_fastload(self):
        status, document = self.paper("fastload", "a", "bb")
        self.assertEqual(status, 0)
        self.assertEqual(self.names(document, "tables"), ["table1", "figure10", "figure9"])
        self.assertEqual([row[0] for row in document["tables"][2]["rows"]], ["no sums in a line", "segment sums", "and one sum for lines of one row"])
        self.assertEqual(self.names(document, "figures"), ["figure7", "figure8", "figure10", "figure11", "figure9"])
        self.assertEqual(document["tables"][0]["rows"][0][1], 2)
        self.assertEqual([each["name"] for each in document["figures"][0]["series"]], ["over best cuSPARSE", "over CSC-based SpMV"])

    def test_hbp(self):
        status, document = self.paper("hbp", "a", "bb", "--ncu", str(self.folder / "ncu"))
        self.assertEqual(status, 0)
        self.assertEqual(self.names(document, "figures"), ["figure6", "figure7", "figure8", "figure9-plain2D", "figure9-hash"])
        self.assertEqual(self.names(document, "tables"), ["blocks", "shared", "figures", "table2"])
        self.assertEqual(document["tables"][3]["rows"], [["a", 25, 25, 105, 105], ["bb", 25, 25, 105, 105]])
        self.assertEqual(document["tables"][2]["rows"][0][:7], ["a", 8000, 3.5, 0.5, 2, 4, 4.5])
        name, csr, plain, hashed, *speedups = document["tables"][1]["rows"][0]
        self.assertEqual((name, speedups), ("a", [1, 1.2, 1]))
        self.assertAlmostEqual(csr, 16 / 30)
        self.assertAlmostEqual(plain, 16 / 25)
        self.assertAlmostEqual(hashed, 16 / 25)
        self.assertEqual([row[0] for row in document["tables"][0]["rows"]], ["x through L1 and L2", "x of a block in shared memory", "no tickets",
                                                                             "atomic operations, no combine part"])
        self.assertEqual(set(document["measurements"]), {"ways", "shared", "given", "atomic", "busy"})
        (self.folder / "ncu").unlink()
        again = self.paper("hbp", "--resume", "a", "bb", "c", "--ncu", str(self.folder / "ncu"))[1]
        self.assertEqual(again["tables"][3]["rows"], document["tables"][3]["rows"])  # what was counted stays, and of c nothing is

    def test_tiledspmm(self):
        status, document = self.paper("tiledspmm", "a", "bb")
        self.assertEqual(status, 0)
        self.assertEqual(self.names(document, "figures"), ["figure8", "figure9", "figure10", "figure12", "figure13", "figure11", "figure14"])
        self.assertEqual(self.names(document, "tables"), ["table2", "model"])

    def test_pages(self):
        """Each paper has a page, which says what was not measured and has the pictures that are drawn for it; evchyb-gpus is on evchyb's."""
        folder = Path(papers.__file__).parent.parent / "docs" / "development"
        overview = (folder / "papers.md").read_text()
        for name in papers.PAPERS:
            file = f"papers-{name.replace('-gpus', '')}.md"
            page = (folder / file).read_text()
            self.assertIn("\n## Not measured, or other than in the paper\n", page)
            self.assertEqual(set(table.DRAWN_OF[name]), set(re.findall(rf"\(papers-{name}-(\w+)\.svg\)", page)))
            self.assertIn(f"({file})", overview)

    def on_four(self, gpu):
        """A document of evchyb-gpus, of a machine with four GPUs of this kind."""
        (self.folder / "gallopbench").write_text(FAKE.replace("a GPU, 1 multiprocessors", f"{gpu}, 1 multiprocessors"))
        status, document = self.paper("evchyb-gpus", "--library", "lib.so", "--ex14", str(self.folder / "ex14"), "--mpiexec", str(self.folder / "mpiexec"), gpus="4")
        self.assertEqual(status, 0)
        return document

    def test_evchyb_on_several_gpus(self):
        document = self.on_four("NVIDIA H100 80GB HBM3")
        self.assertEqual((self.names(document, "tables"), self.names(document, "figures"), document["missing"]), (["figure16"], ["figure16"], []))
        ways = ["aijcusparse", "evchyb", "evchyb permuted", "evchyb packed"]
        self.assertEqual([row[:2] for row in document["tables"][0]["rows"]], [[number, way] for number in (1, 2, 4) for way in ways])

    def test_what_was_kept_of_several_gpus(self):
        results, kept, spliced = Path(table.__file__).parent, self.folder / "results", {}
        kept.mkdir()
        for path in results.glob("*-paper.json"):
            shutil.copy(path, kept)
        for path in kept.glob("evchyb-gpus-*"):
            path.unlink()

        def splice(page, marker, rows):
            spliced[page.name, marker] = rows

        with mock.patch.object(table, "HERE", kept):
            table.update_papers(splice)
            self.assertNotIn(("papers-evchyb.md", "evchyb-gpus-figure16"), spliced)
            before = dict(spliced)
            self.assertIn(("papers-evchyb.md", "evchyb-figure3"), before)
            for gpu in ("NVIDIA H200", "NVIDIA H100 80GB HBM3"):
                self.on_four(gpu)
                table.keep([self.folder / "out" / "evchyb-gpus.json"])
            self.assertEqual(sorted(path.name for path in kept.glob("evchyb-gpus-*")), ["evchyb-gpus-h100-paper.json", "evchyb-gpus-h200-paper.json"])
            table.update_papers(splice)
        rows = spliced.pop(("papers-evchyb.md", "evchyb-gpus-figure16"))
        self.assertEqual(spliced, before)
        self.assertEqual(rows.count("| 4 | evchyb packed | 42 | 0.5 | 1.5 |"), 2)
        self.assertEqual([line for line in rows if line.startswith("Measured")], ["Measured on NVIDIA H100 80GB HBM3, commit abc123.", "Measured on NVIDIA H200, commit abc123."])

    def test_single_precision_is_kept_beside_double(self):
        kept = self.folder / "results"
        kept.mkdir()
        document = self.paper("csroverlap", "a")[1]
        with mock.patch.object(table, "HERE", kept):
            for scalar_bytes in (8, 4, 8):
                document.update(gpu=True, machine="NVIDIA H200, 132 multiprocessors", scalar_bytes=scalar_bytes)
                (self.folder / "measured.json").write_text(json.dumps(document))
                table.keep([self.folder / "measured.json"])
            self.assertEqual(sorted(path.name for path in kept.iterdir()), ["csroverlap-h200-paper.json", "csroverlap-single-h200-paper.json"])
            self.assertEqual([path.name for path in table.paper_files("csroverlap")], ["csroverlap-h200-paper.json"])
            self.assertIn("Measured on NVIDIA H200, commit", table.paper_rows("csroverlap-single", "figure8")[-1])
            for other in ({"paper": "hbp", "scalar_bytes": 4}, {"index_bytes": 8}):
                (self.folder / "measured.json").write_text(json.dumps({**document, **other}))
                with self.assertRaises(SystemExit):
                    table.keep([self.folder / "measured.json"])
            self.assertEqual(len(list(kept.iterdir())), 2)

    def test_numbers_of_all_kinds(self):
        kept, run = self.folder / "results", Path(table.__file__).parent / "numbers-single-h200.tsv"
        kept.mkdir()
        for name in ("numbers-complex-int64-h100.tsv", "numbers-complex-nvidia-geforce-rtx-4090.tsv", "numbers-single-h200.tsv"):
            shutil.copy(run, kept / name)
        with mock.patch.object(table, "HERE", kept):
            rows = table.numbers()
        titles = ["single precision, H200", "complex numbers, NVIDIA-GEFORCE-RTX-4090", "complex numbers, 64-bit indices, H100"]
        self.assertEqual(rows[0], "| matrix | nonzeros (millions) | " + " | ".join(f"{title} (µs) | speedup" for title in titles) + " |")
        self.assertEqual(len({len(row.split(" | ")) for row in rows[2:-2]}), 1)

    def test_short_names_of_gpus(self):
        names = {"NVIDIA H100 80GB HBM3": "h100", "NVIDIA H200": "h200", "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA GH200 480GB": "gh200", "NVIDIA GeForce RTX 4090": "nvidia-geforce-rtx-4090"}
        self.assertEqual({name: table.card(name) for name in names}, names)

    def test_host_is_not_kept(self):
        document = self.paper("evchyb-gpus")[1]
        document["gpu"] = False
        (self.folder / "host.json").write_text(json.dumps(document))
        with self.assertRaises(SystemExit) as stopped:
            table.keep([self.folder / "host.json"])
        self.assertIn("is of a machine without a GPU", str(stopped.exception))

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib")
    def test_lines_over_the_best(self):
        import report
        series = [{"name": name, "names": [], "x": [1, 2], "y": y} for name, y in (("a", [2.0, 6.0]), ("b", [3.0, 5.0]))]
        picture = report.draw_points({"kind": "lines", "series": series, "over_best": 1.3})
        self.assertEqual([list(line.get_ydata()) for line in picture.axes[0].lines], [[1, 1.2], [1.5, 1]])
        report.plt.close(picture)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib")
    def test_report(self):
        import report
        numbers = "matrix m n nnz what k setup_ms warm_us cold_us GF_warm eff B/nnz err".split()
        run = {"gpu": True, "machine": "a GPU", "read_bandwidth_GBs": 4000, "options": ["-raw"], "columns": numbers, "cases": [
            {**dict(zip(numbers, (name, 10, 10, 50, what, 1, 1.0, time, time, 1.0, 0.5, 12.0, 1e-16))), "status": "ok"}
            for name in ("a", "b") for what, time in (("raw_csr_alg1", 2.0), ("evchyb", 1.0))]}
        run["cases"].append({"matrix": "<c>", "what": "hbp", "status": "timeout", "reason": "no end"})
        (self.folder / "run.json").write_text(json.dumps(run))
        files, figures = [str(self.folder / "run.json")], 3
        for name in papers.PAPERS:
            figures += len(self.paper(name, "a", "bb")[1]["figures"])
            files.append(str(self.folder / "out" / f"{name}.json"))
        words = ["report.py", *files, "--output", str(self.folder / "report")]
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report.main(), 0)
        text = (self.folder / "report" / "report.html").read_text()
        self.assertEqual(text.count('src="data:image/png;base64,'), figures)
        self.assertEqual(text.count("src="), figures)  # nothing comes from elsewhere
        self.assertIn("&lt;c&gt;", text)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib")
    def test_report_of_what_is_uncommon(self):
        import report
        case = {"matrix": "a", "m": 10, "n": 10, "nnz": 50, "k": 1, "warm_us": 2.0, "cold_us": 2.0, "status": "ok"}
        whats = ["aijcusparse", "aij", "aijhbp", "aijhbp@b"] + [f"evchyb@{k}" for k in range(8)]
        run = {"gpu": True, "machine": "a GPU", "read_bandwidth_GBs": 4000, "options": [], "columns": ["matrix", "what", "cold_us"],
               "scalar_bytes": 4, "index_bytes": 4, "cases": [{**case, "what": what} for what in whats]}
        run["cases"][1]["warm_us"] = 0.5  # of the host, and no baseline here
        self.assertEqual(report.times_of(run)[1]["best cuSPARSE"], {"a": 2.0})
        self.assertEqual(set(report.times_of(run)[1]), {"best cuSPARSE"} | set(whats[1:]))
        axes = report.roofline_of(run, 1).axes[0]
        self.assertEqual(len(axes.collections), len(whats))
        self.assertAlmostEqual(axes.collections[0].get_offsets()[0][0], 100 / (8 * 50 + 4 * 11 + 4 * 20))
        files = []
        for build in ("one", "two"):  # of the same name
            (self.folder / build).mkdir()
            files.append(str(self.folder / build / "quick.json"))
            Path(files[-1]).write_text(json.dumps(run))
        empty = report.draw_bars({"x": ["a"], "series": [{"name": "none", "y": [None]}, {"name": "one", "y": [1.0]}], "logy": True})
        report.plt.close(empty)
        report.plt.close(report.draw_ranks({"x": [], "series": [{"name": "none", "y": []}], "logy": True}))
        with mock.patch.object(sys, "argv", ["report.py", *files, "--output", str(self.folder / "report")]), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report.main(), 0)
        text = (self.folder / "report" / "report.html").read_text()
        self.assertEqual(len(list((self.folder / "report").glob("*.png"))), text.count("<figure>"))

    def stopped(self, name, after, *words):
        """A run that is interrupted when so many matrices were measured."""
        measure, count = papers.bench.measure, [0]

        def stop(program, matrix, *more, **names):
            if not matrix.startswith("star5_8"):  # what asks for the machine
                count[0] += 1
                if count[0] > after:
                    raise KeyboardInterrupt
            return measure(program, matrix, *more, **names)

        with mock.patch.object(papers.bench, "measure", stop), self.assertRaises(KeyboardInterrupt):
            self.paper(name, *words)
        return json.loads((self.folder / "out" / f"{name}.json").read_text())

    def change(self, program, *changes):
        text = (self.folder / program).read_text()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.folder / program).write_text(text)

    def cases(self, document, name):
        found = {}
        for case in document["measurements"][name]["cases"]:
            found.setdefault(case["matrix"], []).append(case)
        return found

    def test_resume(self):
        first = self.stopped("fastload", 3, "a", "b")  # of products both, of setup one
        self.assertFalse(first["complete"])
        self.assertEqual([list(self.cases(first, name)) for name in ("products", "setup")], [["a", "b"], ["a"]])
        self.change("gallopbench", ("abc123", "def456"), ("return 10 +", "return 500 +"))
        again = self.stopped("fastload", 0, "--resume", "b", "a")
        self.assertEqual(again["measurements"], {**first["measurements"], "products": again["measurements"]["products"]})
        self.assertEqual(self.cases(again, "products"), self.cases(first, "products"))
        status, last = self.paper("fastload", "--resume", "b", "a")
        self.assertEqual((status, last["complete"], last["commit"]), (0, True, "abc123, def456"))
        self.assertEqual(self.cases(last, "products"), self.cases(first, "products"))
        self.assertEqual([last["measurements"][name]["commit"] for name in ("products", "setup")], ["abc123", "abc123, def456"])
        self.assertEqual(list(self.cases(last, "setup")), ["b", "a"])
        self.assertEqual(self.cases(last, "setup")["a"], self.cases(first, "setup")["a"])
        self.assertGreater(self.cases(last, "setup")["b"][0]["build_us"], 500)
        lines = (self.folder / "out" / "fastload-setup.lines").read_text()
        self.assertIn("\nb\t", lines)
        other = self.paper("fastload", "--resume", "a=c", "b")[1]  # another matrix of the same name
        self.assertGreater(self.cases(other, "products")["a"][0]["cold_us"], 500)
        self.assertEqual(self.cases(other, "products")["b"], self.cases(first, "products")["b"])
        anew = self.paper("fastload", "a", "b")[1]
        self.assertEqual({measurement["commit"] for measurement in anew["measurements"].values()}, {"def456"})
        self.change("gallopbench", ("CUDA 13.0", "CUDA 13.1"))
        with self.assertRaises(SystemExit):
            self.paper("fastload", "--resume", "a", "b")

    def test_pieces(self):
        whole = self.paper("fastload", "a", "b")[1]
        pieces = [self.paper("fastload", "--minutes", "1e-9", "a", "b")]
        while pieces[-1][0] == papers.TIME_UP and len(pieces) < 30:
            pieces.append(self.paper("fastload", "--minutes", "1e-9", "--resume", "a", "b"))
        status, last = pieces[-1]
        self.assertFalse(pieces[0][1]["complete"])
        self.assertGreater(len(pieces), 3)
        self.assertEqual((status, last["complete"]), (0, True))
        self.assertEqual(list(last["measurements"]), list(whole["measurements"]))
        for name in whole["measurements"]:
            self.assertEqual(list(self.cases(last, name)), ["a", "b"])
            lines = (self.folder / "out" / f"fastload-{name}.lines").read_text().splitlines()
            self.assertLessEqual({"a", "b"}, {line.split("\t")[0] for line in lines})

    def test_resume_with_a_program_that_broke(self):
        first = self.paper("hbp", "a", "b")[1]
        (self.folder / "hbp2d").write_text(f"#!{sys.executable}\nimport sys; sys.exit('[0]PETSC ERROR: The GPU has no room')")
        status, document = self.paper("hbp", "--resume", "a", "b", "c")
        self.assertEqual(status, 1)
        ways = self.cases(document, "ways")
        self.assertEqual({name: ways[name] for name in "ab"}, self.cases(first, "ways"))
        self.assertEqual(ways["c"][0]["status"], "failed")

    def test_what_is_too_late_leaves_nothing_running(self):
        begin = time.monotonic()
        with self.assertRaises(subprocess.TimeoutExpired):
            papers.finish(["sh", "-c", f"sleep 60 & echo $! >{self.folder}/pid; wait"], 2)
        self.assertLess(time.monotonic() - begin, 30)
        pid = (self.folder / "pid").read_text().strip()

        def runs():
            try:
                return "\nState:\tZ" not in Path("/proc", pid, "status").read_text()
            except OSError:
                return False

        while runs() and time.monotonic() - begin < 30:
            time.sleep(0.1)
        self.assertFalse(runs())

    def test_program_that_is_missing(self):
        (self.folder / "hbp2d").write_text(f"#!{sys.executable}\nimport sys; sys.exit('[0]PETSC ERROR: The GPU has no room')")
        status, document = self.paper("hbp", "a")
        self.assertEqual(status, 1)
        self.assertEqual(document["measurements"]["ways"]["cases"][0]["status"], "failed")
        self.assertIn("Figure 6: standard deviation of the entries of a row within warps", [missing["what"] for missing in document["missing"]])


if __name__ == "__main__":
    unittest.main()
