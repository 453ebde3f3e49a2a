"""What a person waits for beside kernels: copies, small pictures, volumes, first runs.

    python resources/bench/waiting.py gpu --json resources/bench/gpu-waiting.json
    python resources/bench/waiting.py gpus --json resources/bench/gpus-shared.json
    python resources/bench/waiting.py cpu --json resources/bench/cpu-waiting.json

*gpu* times runs through the engine and the library, a new picture each time: the copies of
4096 x 4096 bytes, of runs as a slider makes them, all of a run on 128 x 128, and volumes from host
array to host array; *gpus* volumes of 256³ to 512³ voxels on each number of GPUs that the computer
has, whose peaks are known, as the window has them (``gpus-waiting.json`` has one to four H100).
*gpu* and *cpu* time the first run of each filter on a computer that never ran one: a process of its
own with empty caches, on two cores, in which another filter ran before, as the window does when it
starts. The filters' code comes with the package in one column (`.ci/prebuild.py` and
`.ci/prebuild_cuda.py`, made here in a temporary folder), and is compiled in the other. Goals,
floors and the figures before are those of issue 17.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.backends import create_backends
from kernelscope.base import machine
from kernelscope.engine.backend import Backend
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Kind

PAUSE = 0.03
"""Seconds between two runs of a person who moves a slider."""

CI = Path(__file__).parents[2] / ".ci"


class Target(NamedTuple):
    """Milliseconds to reach, that no program can beat, and of the program before."""

    goal: float | None = None
    floor: float | None = None
    before: float | None = None


TARGETS = {
    # The link of an H100 carries 53.6 GB/s from and to page-locked memory.
    "up, 4096² uint8, from a result": Target(0.35, 0.313, 1.4),
    "up, 4096² uint8, from any array": Target(0.35, 0.67, 1.4),
    "down, 4096² uint8, results kept": Target(0.35, 0.313, 1.5),
    # Two copies, a launch with events and one wait, without any bookkeeping.
    "128² uint8, stages": Target(0.12, 0.030, 0.38),
    "128² uint8, engine": Target(None, 0.030, 1.04),
    "128² uint8, library": Target(None, 0.030, 1.82),
    "volume, 1 component, sigma given": Target(5, 2.5, 13.5),
    "volume, 1 component, sigma estimated": Target(5.3, 2.6, 19.5),
    "volume, 3 components, sigma given": Target(13, 6, 33.6),
    "volume, 3 components, sigma estimated": Target(13.3, 6.1, None),
}
SHARED = {1: Target(160, 79), 2: Target(75, 31), 4: Target(45, 16)}
"""By the number of GPUs. Floors: the fewest operations at a card's rate, 1.7 ms for 189×157×130,
and copies: all of them on one GPU, a slab up and one down on several."""

FIRST = Target(1000)

FIRST_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {}) for name in filters.discover()),
    ("median", {"size": 31}),
    ("mean", {"size": 31}),
    ("weighted_mean", {"size": 15}),
)

CHILD = """
import json, os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
from pathlib import Path
import numpy as np
from kernelscope.base import jit
from kernelscope.backends import create_backends
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.library import arrays
from kernelscope.schema.devices import Device
name, values, volume, device, prebuilt = json.loads(sys.argv[1])
if prebuilt:
    jit.PREBUILT = Path(prebuilt)
    from kernelscope.backends.cuda import backend
    backend.PACKAGED = Path(prebuilt)
random = np.random.default_rng(0)
picture = arrays.picture((random.random((512, 512)) * 255).astype(np.uint8), "a")
source = picture
if volume:
    source = arrays.scan([("a", (random.random((48, 48, 48)) * 200).astype(np.float32))])
backends, device = create_backends(), Device(device)
other = "negative" if name != "negative" else "ripple"
execute(Request.create(picture, other, device=device), backends)
spent, begun = time.process_time(), time.perf_counter()
execute(Request.create(source, name, values, device=device), backends)
seconds, spent = time.perf_counter() - begun, time.process_time() - spent
begun = time.perf_counter()
execute(Request.create(source, name, values, device=device), backends)
print(json.dumps([1e3 * seconds, 1e3 * spent, 1e3 * (time.perf_counter() - begun)]))
for backend in backends.values():
    backend.close()
"""


def first_run(name: str, values: dict[str, Any], device: str, prebuilt: Path | None) -> list[float]:
    """Return milliseconds by the clock and of the processor, and those of a second run."""
    volume = filters.get(name).kind is Kind.VOLUME
    given = json.dumps([name, values, volume, device, str(prebuilt or "")])
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": cache,
            "NUMBA_CACHE_DIR": f"{cache}/numba",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        done = subprocess.run(
            [sys.executable, "-c", CHILD, given],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def first_runs(device: str, only: str, prebuilt: Path | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each filter on a device, with code of the package or compiled."""
    how = ("on the GPU, " if device == "gpu" else "") + ("loaded" if prebuilt else "compiled")
    for name, values in FIRST_RUNS:
        if only not in name or not filters.get(name).levels(device):
            continue
        title = " ".join((name, *map(str, values.values())))
        first, spent, second = first_run(name, values, device, prebuilt)
        yield row(f"first run {how}: {title}", [first], FIRST, processor=spent, second=second)


def prebuild(folder: Path, device: str, only: str) -> None:
    """Compile the usual code of the filters as a package has it."""
    chosen = {each for each in filters.discover() if filters.get(each).levels(device)}
    chosen = {*(each for each in chosen if only in each), "negative", "ripple"}
    script = "prebuild.py" if device == "cpu" else "prebuild_cuda.py"
    command = [sys.executable, str(CI / script), "--usual", "--out", str(folder)]
    if device == "gpu":
        command += ["--architectures", architecture()]
    subprocess.run([*command, "--only", *sorted(chosen)], check=True)


def architecture() -> str:
    """Return the name of the first GPU's, as compilers have it."""
    import pycuda.driver as cuda

    cuda.init()
    major, minor = cuda.Device(0).compute_capability()
    return f"sm_{major}{minor}"


def row(name: str, times: list[float], target: Target, **more: float) -> dict[str, Any]:
    """Return the row of a measurement, in milliseconds."""
    middle = statistics.median(times)
    found: dict[str, Any] = {"name": name, "ms": round(middle, 4)}
    found |= {key: value for key, value in target._asdict().items() if value is not None}
    if target.floor:
        found["ratio_to_floor"] = round(middle / target.floor, 2)
    if target.goal:
        found["met"] = middle <= target.goal
    found |= {key: round(value, 3) for key, value in more.items()}
    return found | {"times_ms": [round(each, 4) for each in times]}


def stage(result: Result, name: str) -> float:
    return 1e3 * sum(each.seconds for each in result.stages if each.name == name)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = work()
    return 1e3 * (time.perf_counter() - begun), found


def paused(work: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Call a function after a pause: what a run leaves to do afterwards is done by then."""
    time.sleep(PAUSE)
    return work(*arguments, **more)


def pictures(backends: dict[str, Backend], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield rows for the copies of large pictures and all of a run on small ones."""
    random = np.random.default_rng(0)

    def run(pixels: Any) -> Result:
        request = Request.create(Image.from_array(pixels), "mean", device=Device.GPU)
        return execute(request, backends)

    large = [random.integers(0, 256, (4096, 4096), np.uint8) for _ in range(3)]
    results = [paused(run, each) for each in large * (repeats // 3 + 3)][8:]
    for name, what in (
        ("up, 4096² uint8, from any array", "upload"),
        ("down, 4096² uint8, results kept", "download"),
    ):
        yield row(name, [stage(each, what) for each in results], TARGETS[name])
    del results
    kept = [paused(ks.mean, each, device="gpu") for each in large * 2][3:]
    again = [paused(run, kept[number % 3][:]) for number in range(repeats + 3)][3:]
    name = "up, 4096² uint8, from a result"
    yield row(name, [stage(each, "upload") for each in again], TARGETS[name])
    del again, kept, large
    small = [random.integers(0, 256, (128, 128), np.uint8) for _ in range(8)]
    found: dict[str, list[float]] = {"stages": [], "engine": [], "library": []}
    for pixels in small * (3 * repeats):
        clock, result = timed(partial(run, pixels))
        found["stages"].append(1e3 * result.seconds)
        found["engine"].append(clock)
    for pixels in small * (3 * repeats):  # after the others: the library opens the card once more
        found["library"].append(timed(partial(ks.mean, pixels, device="gpu"))[0])
    for what, times in found.items():
        name = f"128² uint8, {what}"
        yield row(name, times[20:], TARGETS[name])


def volumes(backends: dict[str, Backend], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield rows for MRI NLM of 189×157×130 voxels, by the clock, new volumes each time."""
    random = np.random.default_rng(0)
    voxels = [random.normal(100, 15, (130, 157, 189)).clip(0).astype(np.float32) for _ in range(6)]
    for count in (1, 3):
        for how in ("given", "estimated"):
            times, stages = [], []
            for number in range(repeats + 3):
                parts = (voxels[(number + part) % 6].copy() for part in range(count))
                scan = Scan(tuple(Volume.from_array(part) for part in parts))
                values: dict[str, Any] = {"beta": 1.0, "search_radius": 5, "patch_radius": 1}
                if how == "given":
                    values |= {"sigma_from": "given", "sigma": (15.0,) * count}

                def run(scan: Scan = scan, values: dict[str, Any] = values) -> Result:
                    return execute(
                        Request.create(scan, "mri_nlm", values, device=Device.GPU), backends
                    )

                clock, result = timed(run)
                times.append(clock)
                stages.append(1e3 * result.seconds)
            name = f"volume, {count} component{'s' * (count > 1)}, sigma {how}"
            yield row(name, times[3:], TARGETS[name], stages=statistics.median(stages[3:]))


_GIVEN = {"sigma_from": "given", "sigma": (15.0,)}
_AVERAGES = {"beta": 1.0, "search_radius": 5, **_GIVEN}

SEVERAL = (
    ("mri_nlm", _AVERAGES, 512),
    ("mri_nlm", _AVERAGES, 256),
    ("mri_nlm", _AVERAGES, 400),
    ("volume_dct", _GIVEN, 256),
    ("volume_dct", _GIVEN, 400),
    ("volume_collaborative", _GIVEN, 256),
    ("volume_collaborative", _GIVEN, 400),
    ("median_3d", {"size": 5}, 256),
    ("median_3d", {"size": 5}, 400),
)
"""Filter, parameters and side of a volume that GPUs share."""


def gpus(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    import pycuda.driver as cuda

    cuda.init()
    counts = [each for each in SHARED if each <= cuda.Device.count()]
    for name, values, side in SEVERAL:
        random = np.random.default_rng(0)
        voxels = random.normal(100, 15, (side,) * 3).clip(0).astype(np.float32)
        has_goal = side == 512
        for count in counts:
            times, kernels = _shared(name, values, voxels, count, options.repeats)
            title = "volume" if has_goal else filters.get(name).name
            title += f" of {side}³, {count} GPU{'s' * (count > 1)}"
            yield row(title, times, SHARED[count] if has_goal else Target(), kernels=kernels)


def _shared(
    name: str, values: dict[str, Any], voxels: NDArray[Any], count: int, repeats: int
) -> tuple[list[float], float]:
    """Return milliseconds by the clock on some GPUs, and those of the kernels of the busiest."""
    backends, times, kernels = create_backends(range(count)), [], []
    try:
        for _ in range(repeats + 3):
            scan = Scan((Volume.from_array(voxels.copy()),))
            assert scan.volumes[0].value_range[0] >= 0  # known from here on
            request = Request.create(scan, name, values, device=Device.GPU, gpus=count)
            clock, result = timed(partial(execute, request, backends))
            times.append(clock)
            kernels.append(stage(result, "kernel"))
    finally:
        for backend in backends.values():
            backend.close()
    return times[3:], statistics.median(kernels[3:])


def gpu(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if not options.only_first:
        backends = create_backends()
        try:
            yield from pictures(backends, options.repeats)
            yield from volumes(backends, options.repeats)
        finally:
            for backend in backends.values():
                backend.close()
    if not options.no_first:
        yield from all_first_runs("gpu", options)


def cpu(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    yield from all_first_runs("cpu", options)


def all_first_runs(device: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        prebuild(Path(folder), device, options.only)
        yield from first_runs(device, options.only, Path(folder))
    if not options.no_compiled:
        yield from first_runs(device, options.only, None)


def card(device: str) -> dict[str, str]:
    """Return the name of the first GPU as a fact, if it was measured."""
    if device == "cpu":
        return {}
    import pycuda.driver as cuda

    cuda.init()
    return {"GPU": cuda.Device(0).name()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("device", choices=("cpu", "gpu", "gpus"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", default="", help="first runs of filters that contain this")
    parser.add_argument("--no-first", action="store_true", help="leave out first runs on the GPU")
    parser.add_argument("--only-first", action="store_true", help="only first runs")
    parser.add_argument("--no-compiled", action="store_true", help="only code of the package")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for each in {"gpu": gpu, "gpus": gpus, "cpu": cpu}[options.device](options):
        rows.append(each)
        verdict = "" if "met" not in each else ("met" if each["met"] else "missed")
        goal = f"goal {each['goal']:g}" if "goal" in each else ""
        before = f"before {each['before']:g}" if "before" in each else ""
        print(
            f"{each['name']:46} {each['ms']:10.3f} ms  {goal:10} {before:12} {verdict}", flush=True
        )
        if options.json:  # rows are kept if the rest is cut off
            content = {"machine": machine.facts() | card(options.device), "rows": rows}
            options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
