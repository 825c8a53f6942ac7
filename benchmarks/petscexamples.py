# SPDX-License-Identifier: BSD-2-Clause
"""PETSc's installed examples as they are: which solves.py times, how one is run, and what it says in its output and in its log."""
import collections
import contextlib
import csv
import ctypes
import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench import reason
from cases import OTHERS
from lab import finish

SHORT, REPEATS = 20.0, 3  # seconds a run may take that is done several times, and how often
OWN_TIME = ("-log_view_gpu_time", )  # an event waits for what it started on the GPU; this slows the solve, so it has a run of its own

DMDA2, DMDA3 = "-da_grid_x {0} -da_grid_y {0}", "-da_grid_x {0} -da_grid_y {0} -da_grid_z {0}"
BOX = "-dm_plex_dim 3 -dm_plex_simplex 0 -dm_plex_box_faces {0},{0},{0}"
GAMG = "-ksp_type cg -pc_type gamg -mg_levels_pc_type jacobi"
LINEAR, NONLINEAR = ("KSPSetUp", "PCSetUp", "KSPSolve"), ("SNESSolve", )  # KSPSolve has no set-up in it, the others have
KSP = "-ksp_converged_reason -ksp_view"
SNES = "-snes_converged_reason -ksp_converged_reason -snes_view"
TAO_NLS = "-tao_type nls -tao_nls_ksp_type cg -tao_nls_pc_type jacobi -tao_converged_reason -tao_nls_ksp_converged_reason"


@dataclass(frozen=True)
class Example:
    """A program below PETSc's examples, its options, and sizes for quick and full on a GPU and for the host: {0}, {1} in the options are their words."""
    program: str
    options: str
    quick: str
    full: str
    host: str
    mat: str = "-dm_mat_type"  # what names the type
    first: tuple = LINEAR  # events whose sum is the first solve with its set-up
    stages: tuple = ()  # log stages that have them; all, if empty
    later: tuple = ()  # stage and event of a solve after the first, where the program has one
    residual: str = ""  # what the program prints before it
    ranks: tuple = (1, )
    alone: bool = False  # not on several ranks, whatever is asked for


EXAMPLES = {
    "ksp ex45, CG, multigrid": Example(
        "ksp/ksp/tutorials/ex45", f"{DMDA3} {KSP} -ksp_type cg -pc_type mg -pc_mg_levels {{1}} -pc_mg_galerkin both -mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi "
        "-ksp_rtol 1e-8", "81 4", "161 5", "33 3", residual="Residual norm ", ranks=(1, 2)),
    "ksp ex45, CG, GAMG": Example("ksp/ksp/tutorials/ex45", f"{DMDA3} {KSP} {GAMG} -ksp_rtol 1e-8", "80", "128", "24", residual="Residual norm "),
    "ksp bench_kspsolve, CG, Jacobi": Example(  # the product before the solve copies the matrix and builds the format
        "ksp/ksp/tutorials/bench_kspsolve", f"-n {{0}} {KSP} -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8", "80", "140", "24", mat="-mat_type",
        first=("MatMult in Step1  - Vecs and Mat", ) + LINEAR, stages=("Step1  - Vecs and Mat", "Step2  - KSPSolve"), later=("Step2  - KSPSolve", "KSPSolve"), ranks=(1, 2)),
    "ksp bench_kspsolve, CG, GAMG": Example(
        "ksp/ksp/tutorials/bench_kspsolve", f"-n {{0}} {KSP} {GAMG} -ksp_rtol 1e-8", "64", "100", "20", mat="-mat_type",
        first=("MatMult in Step1  - Vecs and Mat", ) + LINEAR, stages=("Step1  - Vecs and Mat", "Step2  - KSPSolve")),
    "ksp ex56, elasticity, GAMG": Example(  # the third solve has new values and the preconditioner of the second
        "ksp/ksp/tutorials/ex56", f"-ne {{0}} {KSP} {GAMG} -ksp_rtol 1e-8 -use_mat_nearnullspace -two_solves -log_stages", "31", "50", "9", mat="-mat_type",
        stages=("Setup", "Solve"), later=("3rd Solve", "KSPSolve"), residual=r"\|b-Ax\|/\|b\|=", alone=True),  # it leaves the second of two ranks without rows
    "snes ex14, Bratu, CG, Jacobi": Example(
        "snes/tutorials/ex14", f"{DMDA3} {SNES} -ksp_type cg -pc_type jacobi", "100", "200", "24", mat="-mat_type", first=NONLINEAR, residual="fnorm ", ranks=(1, 2)),
    "snes ex14, Bratu, CG, GAMG": Example("snes/tutorials/ex14", f"{DMDA3} {SNES} {GAMG}", "64", "128", "24", mat="-mat_type", first=NONLINEAR, residual="fnorm "),
    "snes ex19, driven cavity, FGMRES, multigrid": Example(  # by finite differences with a coloring
        "snes/tutorials/ex19", f"-da_refine {{0}} {SNES} -ksp_type fgmres -pc_type mg -mg_levels_pc_type jacobi", "6", "8", "4", first=NONLINEAR),
    "snes ex13, Poisson, Q2 on DMPlex, GAMG": Example(
        "snes/tutorials/ex13", f"{BOX} {SNES} {GAMG} -potential_petscspace_degree 2 -ksp_rtol 1e-8", "16", "24", "8", first=NONLINEAR),
    "snes ex56, elasticity, Q2 on DMPlex, GAMG": Example(
        "snes/tutorials/ex56", f"{BOX} {SNES} {GAMG} -dm_plex_box_lower 0,0,0 -dm_plex_box_upper 1,1,1 -petscspace_degree 2 -max_conv_its 1 -snes_max_it 2 -snes_rtol 1e-10 "
        "-snes_lag_jacobian -2 -ksp_rtol 1e-8", "10", "18", "4", first=NONLINEAR, stages=("Solve 0", )),
    "ts ex15, heat, 5 implicit steps, CG, Jacobi": Example(
        "ts/tutorials/ex15", f"{DMDA2} -ts_max_steps 5 -ksp_type cg -pc_type jacobi -ksp_converged_reason -ts_view", "500", "1200", "64", mat="-mat_type", first=("TSStep", )),
    "tao minsurf2, Newton, CG, Jacobi": Example(  # it views its solver by itself
        "tao/unconstrained/tutorials/minsurf2", f"{DMDA2} {TAO_NLS}", "250", "800", "50", mat="-mat_type", first=("TaoSolve", ), residual="Function/Gradient:="),
}

# where the time of the first solve goes: columns, and the events whose times they are; the events of one column are not inside each other
PARTS = {
    "setup_ms": "(KSP|PC)SetUp",
    "products_ms": "MatMult(Add|Transpose|TrAdd)?",
    "vectors_ms": "Vec(?!Scatter|Assembly|Normalize|View|Load|CUDA|Ops|Set[A-Z]|ReduceBegin|ReduceEnd).*",
    "assembly_ms": "SNES(Function|Jacobian)Eval|TaoTerm(Obj|Grad|Hess).*",
}


class Log:
    """The events of a program, from -log_view's CSV: seconds by stage and event, the most of all ranks."""

    def __init__(self, path):
        seconds = collections.defaultdict(list)
        with open(path, newline="") as file:
            for row in csv.reader(file):
                if len(row) > 4 and row[2].isdigit() and row[1] != "summary":
                    seconds[row[0], row[1]].append(float(row[4]))
        self.seconds = {key: max(times) for key, times in seconds.items()}

    def ms(self, pattern, stages=()):
        """Milliseconds of the events that fit, in these stages or all; None where there are none."""
        times = [value for (stage, event), value in self.seconds.items() if re.fullmatch(pattern, event) and stage in (stages or (stage, ))]
        return 1e3 * sum(times) if any(times) else None

    def first(self, events, stages):
        """Milliseconds of a sum of events, an "event in stage" only of that; None without the last of them, the solve."""
        times = [self.ms(event, (stage, ) if stage else stages) for event, _, stage in (each.partition(" in ") for each in events)]
        return sum(filter(None, times)) if times[-1] else None


def take_types(options):
    """Takes -types and what follows it, which is an option of repeatsolve's, out of the options; None where it is not there."""
    if "-types" not in options:
        return None
    place = options.index("-types")
    types = options[place + 1].split(",")
    del options[place:place + 2]
    return types


def is_ours(mat_type):
    return not OTHERS.match(mat_type)


def event_of(mat_type, what):
    """The log event of a type of ours; aijevchyb has those of evchyb."""
    return re.sub("^(seq|mpi)?aij", "", mat_type).upper() + what


def command(example, mat_type, size, ranks, log, place):
    """The words that run an example; with a GPU its vectors are there, whatever the type."""
    words = [*place.mpiexec, "-n", str(ranks), str(Path(place.examples) / example.program), *example.options.format(*size.split()).split(), example.mat, mat_type,
             "-log_view", f":{log}:ascii_csv", *place.options]
    if place.gpu:
        words += ["-dm_vec_type", "cuda", "-device_enable", "eager"]
    return words + (["-dll_append", place.library, "-gallop_warn_no_gpu", "0", "-gallop_statistics"] if is_ours(mat_type) else [])


def read(example, mat_type, ranks, output, log, gpu):
    """A row of what a run says, or why it is none."""
    linear = re.findall(r"Linear \S*\s?solve converged due to \w+ iterations (\d+)", output)
    sizes = re.findall(r"type: (\S+)\s+rows=(\d+), cols=\d+.*\s+total: nonzeros=(\d+)", output)
    if "DIVERGED" in output or not linear:
        return None, "no convergence"
    found, unknowns, nonzeros = max(sizes, key=lambda each: int(each[1]), default=("unknown", 0, 0))  # the view has the matrices of the levels too
    iterations = sum(map(int, linear))
    if not re.fullmatch(f"(seq|mpi)?(aij)?{mat_type}", found):
        return None, f"the matrix has type {found}"
    own = 1.0
    if is_ours(mat_type):
        counted = re.search(rf"^  {event_of(mat_type, '').lower()} +(\d+) +(\d+) +(\d+) ", output, re.M)  # by -gallop_statistics, of all ranks
        if not counted:
            return None, "no statistics"
        device, host, parents = map(int, counted.groups())  # the parent's until a format pays
        if device + host + parents < iterations * ranks:
            return None, f"{device + host + parents} products of {mat_type} in {iterations} iterations on {ranks} rank{'s' if ranks > 1 else ''}"
        if gpu and host > device + parents:
            return None, f"{device} products on the GPU and {host} on the host in {iterations} iterations"
        own = device / (device + host + parents)
    first = log.first(example.first, example.stages)
    if first is None:
        return None, f"the log has no event {example.first[-1]}"
    residual = re.findall(example.residual + r"([-+.\deE]+)", output) if example.residual else []
    return {"unknowns": float(unknowns), "nonzeros": float(nonzeros), "first_ms": first, "later_ms": log.ms(example.later[1], example.later[:1]) if example.later else None,
            "iterations": float(iterations), "residual": float(residual[-1].rstrip(".")) if residual else None, "own": own}, None


def parts(log, mat_type, stages):
    row = {column: log.ms(pattern, stages) for column, pattern in PARTS.items()}
    row["builds_ms"] = log.ms(event_of(mat_type, "(Build|Refresh)"), stages) if is_ours(mat_type) else None
    return row


class Memory:
    """The most memory that all GPUs had in use while this runs beyond what they had before, in MB; None where NVIDIA's library does not say."""

    def __init__(self):
        self.megabytes, self.ended, self.name = None, threading.Event(), None
        try:
            self.library, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(0)
            if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
                raise OSError
        except OSError:
            self.handles = []
            return
        self.handles = [ctypes.c_void_p() for _ in range(count.value)]
        for index, handle in enumerate(self.handles):
            self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            name = ctypes.create_string_buffer(96)
            self.library.nvmlDeviceGetName(handle, name, 96)
            self.name = self.name or name.value.decode()

    def used(self):
        info, total = (ctypes.c_ulonglong * 3)(), 0  # total, free, used
        for handle in self.handles:
            total += 0 if self.library.nvmlDeviceGetMemoryInfo(handle, info) else info[2]
        return total / 1e6

    def watch(self, before):
        while not self.ended.wait(0.02):
            self.megabytes = max(self.megabytes or 0.0, self.used() - before)

    @contextlib.contextmanager
    def watched(self, before=None):
        watcher = threading.Thread(target=self.watch, args=(self.used() if before is None else before, ), daemon=True)
        if self.handles:
            watcher.start()
        try:
            yield self
        finally:
            self.ended.set()
            if self.handles:
                watcher.join()


def once(example, mat_type, size, ranks, place, more=()):
    """One run: its row, its log and its seconds; or why there are none."""
    log = Path(place.folder) / "solves-log.csv"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    try:
        done = finish(command(example, mat_type, size, ranks, log, place) + list(more), place.timeout)
    except subprocess.TimeoutExpired:
        return None, None, None, f"{mat_type}: no end after {place.timeout:g} s"
    except OSError as error:
        return None, None, None, f"{mat_type}: {error}"
    seconds = time.monotonic() - begin
    if done.returncode or not log.exists():
        return None, None, None, f"{mat_type}: {reason(done.returncode, done.stdout)}"
    events = Log(log)
    row, error = read(example, mat_type, ranks, done.stdout, events, place.gpu)
    return row, events, seconds, error and f"{mat_type}: {error}"


def run(example, types, size, ranks, place):
    """{type: row} of a case, in order of types, or why there is none. Short runs are done several times, the types in turn, and the least time counts."""
    rows, longest = {}, 0.0
    for _ in range(REPEATS):
        for mat_type in types:
            row, log, seconds, error = once(example, mat_type, size, ranks, place)
            if error:
                return None, error
            row.update(parts(log, mat_type, example.stages))
            before, longest = rows.get(mat_type, row), max(longest, seconds)
            better = row if row["first_ms"] < before["first_ms"] else before
            rows[mat_type] = {**better, "later_ms": min(row["later_ms"], before["later_ms"]) if row["later_ms"] else None}
        if longest > SHORT:
            break
    for mat_type in types if place.gpu else ():
        with Memory().watched() as memory:
            _, log, _, error = once(example, mat_type, size, ranks, place, OWN_TIME)
        if error:
            return None, error
        rows[mat_type].update(parts(log, mat_type, example.stages), gpu_MB=memory.megabytes)
    return rows, None
