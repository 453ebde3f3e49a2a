"""Level serial against the same plain loops in C, compiled with -O2 and without vectors.

    python resources/bench/serial_against_c.py [--sizes 256 1024] [--types uint8] [--filters ...]
    python resources/bench/serial_against_c.py --places [--filters ...]

Needs a C compiler and a quiet machine. Programs take turns on the same data, on one thread
and warm caches, after their results were compared; compiling is not counted. A line shows the
medians, and the median ratio of neighbouring turns with its quartiles, which a change of the
clock or of the load in between does not disturb. C takes the size of a mask as an argument, as
*serial* does; the last columns are of C that was compiled for this size alone. Exits with 1 if a
ratio to the first is above the bar. With ``--places`` it
shows how the address of the code changes the times of C, if nothing is aligned.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "app"))

from kernelscope import filters  # noqa: E402
from kernelscope.base.machine import cpu_name  # noqa: E402
from kernelscope.bench.peers import plain_c as plain  # noqa: E402
from kernelscope.bench.presets import weights  # noqa: E402
from kernelscope.filters.median.cpu import BUBBLE, HUANG  # noqa: E402
from kernelscope.schema.borders import Border  # noqa: E402
from kernelscope.schema.filter import Cpu, CpuTask  # noqa: E402
from kernelscope.schema.levels import SERIAL  # noqa: E402

BAR = 1.15
"""Largest acceptable time of a serial level, in times of C."""

SECONDS = 2.0
"""Approximate seconds of all turns of a pair, which are at least `TURNS`."""

TURNS = 9

NLM_SIDE, VOLUME = 96, (8, 24, 24)
"""Data for non-local means, whose time per pixel depends on no other."""

CASES: list[tuple[str, dict[str, Any]]] = [
    *(("mean", {"size": side}) for side in (3, 5, 9)),
    *(("mask", {"mask": weights(side), "divisor": "one"}) for side in (3, 5, 9)),
    *(("weighted_mean", {"size": side}) for side in (3, 5, 9)),
    *(("threshold_mean", {"size": side}) for side in (3, 5, 9)),
    *(("median", {"size": side}) for side in (3, 5, 9)),
    *(("sobel", {"form": form}) for form in ("sum", "magnitude", "directions")),
    *(("sobel", {"form": form}) for form in ("single", "winner", "angle")),
    *(("laplace", {"form": form, "negative": "absolute"}) for form in ("4", "8", "5x5")),
    ("rotating_mask", {}),
    ("greyscale", {}),
    *(("nlm", {"patch": side, "weights": "gaussian"}) for side in (3, 7, 9)),
    ("nlm", {"patch": 5, "weights": "gaussian", "search": "image"}),
    *(("mri_nlm", {"dimensions": each, "sigma": 20.0}) for each in ("3d", "2d")),
]


def name_of(value: Any) -> str:
    return f"{len(value)}×{len(value)}" if isinstance(value, tuple) else str(value)


def passes(spec: Any, source: Any, output: Any, values: Any, level: str) -> Callable[[], None]:
    """Return a call of a level on this thread; sums that passes accumulate start from zero."""
    plan = list(
        spec.implementation(Cpu).plan(CpuTask(source, output, values, Border.REFLECT, level))
    )
    fields = [each for sweep in plan for each in sweep.arguments if type(each).__name__ == "Sums"]

    def call() -> None:
        for sums in fields:
            for array in sums:
                array.fill(0)
        for sweep in plan:
            sweep.kernel(*sweep.arguments, 0, sweep.rows)

    return call


Trio = tuple[Callable[[], None], plain.Call, plain.Call | None, Any]
"""The level, both programs in C (the second only where there is a mask), and the level's output."""


def volume_case(parameters: dict[str, Any]) -> Trio:
    spec = filters.get("mri_nlm")
    source = np.random.default_rng(0).uniform(0, 255, (*VOLUME, 1)).astype(np.float32)
    source.flags.writeable = False
    values = spec.resolve(source, spec.validate({**parameters, "sigma_from": "given"}))
    output = np.empty_like(source)
    task = CpuTask(source, output, values, Border.REFLECT, SERIAL.id)
    first, last = spec.implementation(Cpu).plan(task)
    first.kernel(*first.arguments, 0, first.rows)
    extended, _, reach, model = last.arguments

    def ours() -> None:
        last.kernel(*last.arguments, 0, last.rows)

    return ours, plain.plain_mri_nlm(source, extended, reach, model), None, output


def picture_case(
    filter_id: str, parameters: dict[str, Any], side: int, dtype: Any, level: str
) -> Trio:
    spec = filters.get(filter_id)
    values = spec.validate(parameters)
    channels = 3 if filter_id == "greyscale" else 1
    pixels = np.random.default_rng(0).integers(0, 256, (side, side, channels))
    source = (pixels * (1 / 255 if dtype.kind == "f" else 1)).astype(dtype)
    source.flags.writeable = False
    output = np.empty((side, side, 1), dtype)
    theirs = source if channels == 3 else source[..., 0]
    call = plain.plain(filter_id, theirs, values, Border.REFLECT)
    assert call is not None
    known = None
    if filter_id in plain.SIDES:
        known = plain.sized(filter_id, theirs, values, Border.REFLECT)
    return passes(spec, source, output, values, level), call, known, output[..., 0]


def compare(
    ours: Callable[[], None], theirs: plain.Call, known: plain.Call | None, output: Any
) -> Iterator[float]:
    """Yield the medians in ms, and quartiles of the ratios to each C; results were equal."""
    ours()
    calls: list[Callable[[], Any]] = [ours, theirs, *([known] if known is not None else [])]
    for call in calls[1:]:
        if output.dtype.kind == "f":
            np.testing.assert_allclose(output, call(), rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(output, call())

    def seconds(call: Callable[[], Any]) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    turns = max(TURNS, int(SECONDS / sum(map(seconds, calls))))
    times = np.array([[seconds(call) for call in calls] for _ in range(turns)])
    for number in range(1, len(calls)):
        yield from 1e3 * np.median(times[:, (0, number)], axis=0)
        yield from np.quantile(times[:, 0] / times[:, number], (0.25, 0.5, 0.75))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[256, 1024])
    parser.add_argument("--types", nargs="+", default=["uint8"])
    parser.add_argument("--filters", nargs="+", default=[name for name, _ in CASES])
    parser.add_argument("--places", action="store_true")
    options = parser.parse_args()
    if not plain.compiler():
        print("There is no C compiler (cc, gcc or clang).", file=sys.stderr)
        return 1
    if options.places:
        places(options.filters, options.sizes[0])
        return 0
    print(f"{cpu_name()}; {plain.version()}; {' '.join(plain.FLAGS)}")
    quartiles = f"{'ratio':>8}   {'quartiles':<13}"
    print(
        f"{'filter':<42}{'size':>8}{'serial ms':>11}{'C ms':>11}{quartiles}{'C, size known':>15}"
        f"{quartiles}"
    )
    above = 0
    for dtype in map(np.dtype, options.types):
        for filter_id, parameters in CASES:
            if filter_id not in options.filters:
                continue
            sides = [NLM_SIDE] if filter_id == "nlm" else options.sizes
            sides = [0] if filter_id == "mri_nlm" else sides
            for side in sides:
                if parameters.get("search") == "image":
                    side = NLM_SIDE // 2
                made = (
                    picture_case(filter_id, parameters, side, dtype, SERIAL.id)
                    if side
                    else volume_case(parameters)
                )
                ours, theirs, low, ratio, high, *known = compare(*made)
                above += ratio > BAR
                label = f"{filter_id} {' '.join(map(name_of, parameters.values()))}"
                size = f"{side}²" if side else "×".join(map(str, VOLUME))
                mark = "  above the bar" if ratio > BAR else ""
                print(
                    f"{label[:32]:<33}{dtype!s:<9}{size:>8}{ours:>11.3f}{theirs:>11.3f}"
                    f"{ratio:>8.2f}   {low:.2f} to {high:.2f} {_beside(known)}{mark}",
                    flush=True,
                )
    if "median" in options.filters:
        medians(options.sizes[0])
    print(f"{above} above {BAR}")
    return int(above > 0)


def _beside(known: list[float]) -> str:
    """Return the columns of the C that knows the size: its median, the ratio and quartiles."""
    if not known:
        return ""
    _, theirs, low, ratio, high = known
    return f"{theirs:>15.3f}{ratio:>8.2f}   {low:.2f} to {high:.2f}"


def moved(padding: int, folder: Path) -> ctypes.CDLL:
    """Return the loops for uint8 without alignment, behind `padding` bytes."""
    flags = [flag for flag in plain.FLAGS if not flag.startswith("-falign")]
    source = f'__asm__(".text; .balign 64; .skip {padding}");' + plain.SOURCE.read_text()
    made = folder / f"{padding}.so"
    command = [plain.compiler(), *flags, "-fno-toplevel-reorder", "-x", "c", "-", "-o", str(made)]
    subprocess.run([*command, "-lm"], input=source, text=True, check=True)
    return ctypes.CDLL(str(made))


def places(chosen: list[str], side: int) -> None:
    """Print the times of C at four addresses of the code, a quarter of a cache line apart."""
    paddings = (16, 32, 48, 64)
    print(f"{cpu_name()}; {plain.version()}; ms of C, nothing aligned, by bytes before the code")
    print(
        f"{'filter':<33}{'size':>8}{''.join(f'{each:>9}' for each in paddings)}   slowest/fastest"
    )
    pixels = np.random.default_rng(0).integers(0, 256, (side, side)).astype(np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        compiled = [moved(padding, Path(folder)) for padding in paddings]
        for filter_id, parameters in CASES:
            if filter_id not in chosen or filter_id in ("greyscale", "mri_nlm"):
                continue
            values = filters.get(filter_id).validate(parameters)
            calls = [
                plain.plain(filter_id, pixels, values, Border.REFLECT, each) for each in compiled
            ]
            times: list[list[float]] = [[] for _ in paddings]
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                for call, taken in zip(calls, times, strict=True):
                    assert call is not None
                    start = time.perf_counter()
                    call()
                    taken.append(1e3 * (time.perf_counter() - start))
            middle = np.median(times, axis=1)
            label = f"{filter_id} {' '.join(map(name_of, parameters.values()))}"
            print(
                f"{label[:32]:<33}{side:>7}²{''.join(f'{each:>9.3f}' for each in middle)}"
                f"{middle.max() / middle.min():>18.2f}",
                flush=True,
            )


def medians(side: int) -> None:
    """Print the times of the serial levels of the median."""
    for size in (3, 5, 9):
        times = []
        for level in (BUBBLE.id, SERIAL.id, HUANG.id):
            dtype = np.dtype(np.uint8)
            call, *_ = picture_case("median", {"size": size}, side, dtype, level)
            call()
            start = time.perf_counter()
            call()
            times.append(1e3 * (time.perf_counter() - start))
        bubble, selection, huang = times
        print(
            f"median {size}, {side}²: bubble sort {bubble:.1f} ms, selection {selection:.1f} ms "
            f"({bubble / selection:.1f} times as fast), Huang {huang:.1f} ms"
        )


if __name__ == "__main__":
    sys.exit(main())
