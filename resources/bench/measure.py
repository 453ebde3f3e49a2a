"""Measures everything that README.md beside it shows, and writes the JSON files behind it.

``python resources/bench/measure.py cpu`` on a machine with nothing else to do, ``... gpu`` on one
with a GPU; then ``python resources/bench/make_page.py``. ``--list`` prints the estimated time of
each experiment, ``--only NAME ...`` and ``--without NAME ...`` choose, ``--within SECONDS`` leaves
out experiments that would exceed the total, ``--out DIR`` writes elsewhere. Each experiment is a
run of ``kernelscope bench``, whose arguments are printed; if one fails, the others are still
measured.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelscope.backends.cuda.compiler import CubinCache, choose_compiler
from kernelscope.backends.cuda.sources import read_source
from kernelscope.bench import presets
from kernelscope.bench.cases import subjects
from kernelscope.bench.plan import Plan
from kernelscope.bench.report import load
from kernelscope.bench.statistics import summarise
from kernelscope.cli.main import main as kernelscope
from kernelscope.schema.blocks import takes_block
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from kernelscope.schema.samples import Kind

FOLDER = Path(__file__).parent
CPU, GPU, OUT = "cpu", "gpu", "OUT"

_WARM_UPS = 3
"""Approximate number of runs of a row before it is timed."""

_BESIDE = 0.03
"""Approximate seconds to make the data and to empty the caches for each run."""


@dataclass(frozen=True)
class Experiment:
    """One file of the page.

    Attributes
    ----------
    name : str
        Name of the file, with neither the device before it nor the suffix.
    arguments : tuple of str
        Arguments of ``bench``, without the device and the file.
    seconds : int
        Estimated time if there is no earlier file.
    repeats : bool
        The plan is that of the file itself: it repeats the measurement.
    module : bool
        The first argument is a module to run instead of ``bench``; `OUT` stands for the file.
    """

    name: str
    arguments: tuple[str, ...] = ()
    seconds: int = 30
    repeats: bool = False
    module: bool = False


def _preset(name: str, preset: str, seconds: int = 30, *more: str) -> Experiment:
    return Experiment(name, ("--preset", preset, *more), seconds)


_TELLING = (
    _preset("f-levels", "F level"),
    _preset("m-ladder", "M mean"),
    _preset("n-nlm", "N NLM", 90),
    _preset("f-tables", "F tables", 60),
    _preset("v-one", "V tables 4-1", 90),
    _preset("v-three", "V tables 4-3", 90),
    _preset("f-selection", "F bubble", 30),
    _preset("quick-look", "Quick look", 20),
)
"""The experiments on which the conclusions rest."""

_MORE = (
    _preset("v-noise", "V noise", 30),
    _preset("v-patches", "V table 4-6", 60),
    _preset("v-sizes", "V table 4-5", 60),
)

_LAPLACE = (
    *("--filters", "laplace", "--sizes", "128", "512", "1024", "4096"),
    *("--levels", "serial", "parallel"),
)
"""Rows of graphs 1 to 8 that tables 1 to 3 do not measure on the CPU."""

_BESIDE_C = (
    *("--filters", "mean", "mask", "weighted-mean", "median", "sobel", "laplace"),
    *("threshold-mean", "rotating-mask", "greyscale", "nlm"),
    *("--sizes", "1024", "--masks", "3", "9", "--levels", "serial"),
    *("--peers", "C -O2", "C -O2, size known"),
)

EXPERIMENTS = {
    CPU: (
        *_TELLING,
        Experiment("f-graphs", _LAPLACE, 30),
        Experiment("c", _BESIDE_C, 90),
        *_MORE,
        Experiment("peers", repeats=True),
    ),
    GPU: (
        Experiment("textbook-4096", ("tests.gpu.bench_levels", "--out", OUT), 45, module=True),
        Experiment(
            "textbook-256",
            ("tests.gpu.bench_levels", "mean 3", "--side", "256", "--out", OUT),
            10,
            module=True,
        ),
        Experiment("textbook-nlm", ("tests.gpu.textbook_nlm", OUT), 30, module=True),
        *_TELLING,
        _preset("f-graphs", "F graphs", 60),
        _preset("blocks", "Block sizes", 30),
        *_MORE,
        _preset("ladder", "Levels by mask", 90),
        _preset("f-access", "F memory access", 5),
        _preset("denoisers", "Denoisers", 90),
        _preset("ladder-others", "Levels of other filters", 55),
        Experiment("nlm-4096", repeats=True),
        Experiment("peers-16384", repeats=True),
        Experiment("peers-sizes", repeats=True),
    ),
}
"""The most informative ones first, in case time runs out."""


def plan_of(device: str, experiment: Experiment) -> Plan | None:
    """Return the plan of an experiment, if a preset or its own file defines it."""
    if experiment.repeats:
        return load(FOLDER / f"{device}-{experiment.name}.json").plan
    if "--preset" in experiment.arguments:
        return presets.get(experiment.arguments[1]).plan
    return None


def expected(device: str, experiment: Experiment) -> float:
    """Return the approximate seconds of an experiment: by its last times, if there is a file."""
    path = FOLDER / f"{device}-{experiment.name}.json"
    if experiment.module or not path.exists():
        return experiment.seconds
    plan = plan_of(device, experiment) or load(path).plan
    return sum(
        (plan.repeat + _WARM_UPS) * (min(summarise(row.waits).median, plan.longest) + _BESIDE)
        for row in load(path).rows
        if row.seconds
    )


Cubin = tuple[str, tuple[tuple[str, str], ...]]
"""A file of kernels, and the macros that it is specialised with."""


def cubins(plans: Iterable[Plan]) -> Iterator[Cubin]:
    """Yield the kernels that plans need compiled, some of them more than once."""
    for plan in plans:
        for sweep in plan.sweeps:
            for case in subjects(sweep):
                spec, channels = case.spec, case.data.channels
                if not spec.levels("gpu"):
                    continue
                volume = spec.kind is Kind.VOLUME
                dtype = np.dtype(np.float32 if volume else np.uint8)
                some = np.ones((8,) * (3 if volume else 2) + (channels,), dtype)
                values = spec.resolve(some, spec.validate(case.parameters))
                shape = (*case.data.shape, channels)
                result = spec.output_shape(shape, values, sweep.border)
                for level in spec.levels("gpu"):
                    if plan.levels and level.id not in plan.levels:
                        continue
                    chooses = takes_block(spec, level.id)
                    for block in (plan.blocks if chooses else ()) or (None,):
                        task = CudaTask(shape, result, dtype, values, sweep.border, level.id, block)
                        for launch in CudaPlan.of(spec.implementation(Cuda).plan(task)).launches:
                            yield spec.id, tuple(sorted(launch.defines.items()))


def compile_kernels(needed: Iterable[Cubin]) -> None:
    """Compile on all cores; otherwise the GPU would wait for one kernel after the other."""
    import pycuda.driver as cuda

    cuda.init()
    major, minor = cuda.Device(0).compute_capability()
    cache = CubinCache(choose_compiler())

    def compile_one(cubin: Cubin) -> None:
        name, defines = cubin
        cache.get(name, read_source(name), f"sm_{major}{minor}", dict(defines))

    start = time.perf_counter()
    todo = list(dict.fromkeys(needed))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, todo))
    print(
        f"{len(todo)} files of kernels compiled: {time.perf_counter() - start:.0f} s\n", flush=True
    )


def run(device: str, experiment: Experiment, folder: Path) -> int:
    """Measure one experiment; return the exit status."""
    path = folder / f"{device}-{experiment.name}.json"
    if experiment.module:
        arguments = [str(path) if each == OUT else each for each in experiment.arguments]
        command = [sys.executable, "-m", *arguments]
        print("$", *command, flush=True)
        return subprocess.run(command, check=False).returncode
    arguments = list(experiment.arguments)
    if experiment.repeats:
        arguments += ["--preset", str(FOLDER / f"{device}-{experiment.name}.json")]
    if experiment.name.startswith("peers"):
        arguments.append("--peers")
        if device == CPU:  # the loops in C have a table of their own
            arguments += ["OpenCV", "SciPy", "scikit-image"]
    arguments = ["bench", *arguments, "--devices", device, "--out", str(path)]
    print("$ kernelscope", *arguments, flush=True)
    return kernelscope(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Measures what the page shows, and writes its files.", allow_abbrev=False
    )
    parser.add_argument("device", choices=(CPU, GPU))
    parser.add_argument("--only", metavar="NAME", nargs="+", default=())
    parser.add_argument("--without", metavar="NAME", nargs="+", default=())
    parser.add_argument("--out", metavar="DIR", type=Path, default=FOLDER)
    parser.add_argument(
        "--within", metavar="SECONDS", type=float, default=math.inf, help="leave out longer ones"
    )
    parser.add_argument("--list", action="store_true", help="print the estimated times, and stop")
    options = parser.parse_args(arguments)
    known = {experiment.name: experiment for experiment in EXPERIMENTS[options.device]}
    for name in (*options.only, *options.without):
        if name not in known:
            parser.error(f"there is no experiment {name}: use {', '.join(known)}")
    chosen = [
        each
        for name, each in known.items()
        if name not in options.without and (not options.only or name in options.only)
    ]
    times = {each.name: expected(options.device, each) for each in chosen}
    for name, seconds in times.items():
        print(f"{name:18} about {seconds:4.0f} s")
    print(f"{'together':18} about {sum(times.values()):4.0f} s", flush=True)
    if options.list:
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if options.device == GPU:
        plans = (plan_of(GPU, each) for each in chosen)
        compile_kernels(cubins(plan for plan in plans if plan is not None))
    failed, begun = [], time.perf_counter()
    for each in chosen:
        start = time.perf_counter()
        if start - begun + times[each.name] > options.within:
            print(f"{each.name}: left out, it would take too long\n", flush=True)
            continue
        if run(options.device, each, options.out):
            failed.append(each.name)
        print(f"{each.name}: {time.perf_counter() - start:.0f} s\n", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
