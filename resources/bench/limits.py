"""How far each kernel and each path is from the limit of the machine.

    python resources/bench/limits.py gpu --json resources/bench/gpu-limits.json
    python resources/bench/limits.py gpu --only kernels --json resources/bench/gpu-limits.json
    python resources/bench/limits.py --page resources/bench/limits.md

Each row is the median of several runs after one that warms up. Sections of ``gpu``: ``kernels``
(16384² pixels, times by events; beside them the time of a copy of the same bytes on the card, the
floor of everything that reads and writes a picture once), ``types`` (kernels of 16 bits and
floats), ``runs`` (a picture from host memory to host memory, by stages), ``volumes``, and ``first``
(the first run of each filter in a new process with an empty cache). Small pictures beside NPP are
in ``gpu-peers-sizes.json``, which ``measure.py`` makes. Use a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends import create_backends
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.images.source import Source

REPEATS = 7
SIDE = 16384
MASK_SIDES = (3, 5, 7, 9, 15)

Row = dict[str, Any]


def weights(side: int) -> tuple[tuple[int, ...], ...]:
    """Return an integer mask of both signs, with the sum 1."""
    mask = np.arange(side * side).reshape(side, side) * 7 % 11 - 5
    mask[side // 2, side // 2] += 1 - mask.sum()
    limit = np.clip(mask, -127, 127)
    limit[0, 0] += 1 - limit.sum()
    return tuple(tuple(int(weight) for weight in row) for row in limit)


def kernel_cases() -> Iterator[tuple[str, str, dict[str, Any], int]]:
    """Yield name, filter, parameters and channels of what `kernels` times."""
    for side in (3, 31, 63, 99):
        yield f"mean {side}", "mean", {"size": side}, 1
    yield "Sobel", "sobel", {}, 1
    yield "Laplace", "laplace", {}, 1
    for side in MASK_SIDES:
        yield f"mask {side}", "mask", {"mask": weights(side), "divisor": "one"}, 1
    for side in (5, 9):
        mask = tuple(tuple(abs(cell) for cell in row) for row in weights(side))
        yield f"mask {side}, divided by its sum", "mask", {"mask": mask, "divisor": "sum"}, 1
    for side in MASK_SIDES:
        yield f"weighted mean {side}", "weighted_mean", {"size": side}, 1
    for side in (3, 5, 7, 9, 11, 13, 15, 21, 31):
        yield f"median {side}", "median", {"size": side}, 1
    yield "rotating mask", "rotating_mask", {}, 1
    yield "greyscale of RGB", "greyscale", {}, 3


def noise(side: int, dtype: str, channels: int = 1) -> Image:
    """Return a picture of independent samples, repeated beyond 1024²."""
    random = np.random.default_rng(1)
    tile = random.random((min(side, 1024), min(side, 1024), channels))
    if dtype != "float32":
        tile *= np.iinfo(dtype).max + 1
    count = -(-side // 1024)
    pixels = np.tile(tile.astype(dtype), (count, count, 1))
    return Image.from_array(pixels[..., 0] if channels == 1 else pixels, "noise")


def median_ms(values: list[float]) -> float:
    return round(1000 * statistics.median(values), 4)


def stages(result: Result) -> dict[str, float]:
    """Return the seconds of each counted stage; those of one name are added up."""
    found: dict[str, float] = {}
    for stage in result.stages:
        if stage.counted:
            found[stage.name] = found.get(stage.name, 0.0) + stage.seconds
    return found


class Bench:
    """Runs requests on one device and forgets their results."""

    def __init__(self, device: Device, backends: Mapping[str, Backend]) -> None:
        self.device, self.backends = device, backends

    def request(self, source: Source, filter_id: str, parameters: Mapping[str, Any]) -> Request:
        level = "tuned" if self.device is Device.GPU else "parallel"
        return Request.create(source, filter_id, parameters, device=self.device, level=level)

    def run(self, request: Request) -> Result:
        return execute(request, self.backends)

    def computing(self, request: Request, repeats: int = REPEATS) -> float:
        """Return the median milliseconds of computing, after a run that warms up."""
        self.run(request)
        return median_ms([self.run(request).computing_seconds for _ in range(repeats)])

    def whole(
        self, make: Callable[[], Source], filter_id: str, parameters: Mapping[str, Any]
    ) -> Row:
        """Return the milliseconds of runs on new sources, and of their stages."""
        taken: list[float] = []
        wall: list[float] = []
        parts: dict[str, list[float]] = {}
        for number in range(REPEATS + 2):
            request = self.request(make(), filter_id, parameters)
            gc.collect()
            begun = time.perf_counter()
            result = self.run(request)
            elapsed = time.perf_counter() - begun
            if number >= 2:
                taken.append(result.seconds)
                wall.append(elapsed)
                for name, seconds in stages(result).items():
                    parts.setdefault(name, []).append(seconds)
            del result
        return {
            "ms": median_ms(wall),
            "counted ms": median_ms(taken),
            "stages": {name: median_ms(values) for name, values in parts.items()},
        }


def copy_ms(bytes_read: int, bytes_written: int) -> float:
    """Return the milliseconds that a copy of half of these bytes takes on the card."""
    import cupy

    size = (bytes_read + bytes_written) // 2
    source, target = cupy.zeros(size, np.uint8), cupy.empty(size, np.uint8)
    times = []
    for _ in range(9):
        begun, ended = cupy.cuda.Event(), cupy.cuda.Event()
        begun.record()
        cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, size, 3, 0)
        ended.record()
        ended.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begun, ended))
    return round(statistics.median(times[2:]), 4)


def kernels(bench: Bench, side: int = SIDE) -> list[Row]:
    rows = []
    floors = {1: copy_ms(side * side, side * side), 3: copy_ms(3 * side * side, side * side)}
    pictures = {1: noise(side, "uint8")}
    for name, filter_id, parameters, channels in kernel_cases():
        if channels not in pictures:
            pictures = {channels: noise(side, "uint8", channels)}
        ms = bench.computing(bench.request(pictures[channels], filter_id, parameters))
        rows.append({"name": name, "ms": ms, "floor ms": floors[channels]})
        print(f"  {name:32}{ms:9.3f}   {ms / floors[channels]:6.2f} x a copy", flush=True)
    small = noise(4096, "uint8")
    nlm = {"search_radius": 10, "patch": 7, "filter_sigma": 0.1}
    cases = (
        ("NLM 4096², radius 10, patch 7", small, "nlm", nlm),
        ("NLM 512², whole image", noise(512, "uint8"), "nlm", {**nlm, "search": "image"}),
    )
    for name, picture, filter_id, parameters in cases:
        ms = bench.computing(bench.request(picture, filter_id, parameters), 3)
        rows.append({"name": name, "ms": ms})
        print(f"  {name:32}{ms:9.3f}", flush=True)
    return rows


def types(bench: Bench) -> list[Row]:
    rows = []
    for dtype in ("uint16", "float32"):
        picture, size = noise(8192, dtype), 8192 * 8192 * np.dtype(dtype).itemsize
        floor = copy_ms(size, size)
        for name, filter_id, parameters, channels in kernel_cases():
            if channels > 1 or name in ("median 21", "median 31", "mean 99"):
                continue
            ms = bench.computing(bench.request(picture, filter_id, parameters), 5)
            rows.append({"name": f"{name}, {dtype}", "ms": ms, "floor ms": floor})
            print(f"  {name:32}{dtype:8}{ms:9.3f}   {ms / floor:6.2f} x a copy", flush=True)
    return rows


def runs(bench: Bench) -> list[Row]:
    rows = []
    for side, dtype, channels in (
        (128, "uint8", 1),
        (512, "uint8", 1),
        (4096, "uint8", 1),
        (4096, "uint8", 3),
        (4096, "uint16", 1),
        (4096, "float32", 1),
    ):
        pixels = noise(side, dtype, channels).pixels

        def new(pixels: NDArray[Any] = pixels) -> Image:
            return Image.from_array(pixels.copy(), "noise")

        row = bench.whole(new, "mean", {"size": 3})
        kept = new()
        again = bench.whole(lambda kept=kept: kept, "mean", {"size": 3})
        name = f"mean 3, {side}² {dtype}" + (" RGB" if channels == 3 else "")
        row |= {"name": name, "again": again}
        rows.append(row)
        print(f"  {name:32}{row['ms']:9.3f}  {row['stages']}")
        print(f"  {'the same source again':32}{again['ms']:9.3f}  {again['stages']}", flush=True)
    return rows


def volumes(bench: Bench) -> list[Row]:
    from kernelscope.bench.data import Content, Data

    rows = []
    given = {"sigma_from": "given", "sigma": (8.0,), "patch_radius": 1, "search_radius": 5}
    cases = (
        ("189×157×130, 1 component", (130, 157, 189), 1, given),
        ("189×157×130, 1, sigma estimated", (130, 157, 189), 1, {**given, "sigma_from": "volume"}),
        ("189×157×130, 3 components", (130, 157, 189), 3, given),
        ("512³, 1 component", (512, 512, 512), 1, given),
    )
    for name, shape, components, parameters in cases:
        data = Data(Content.HEAD, shape, components)
        row = bench.whole(data.make, "mri_nlm", parameters) | {"name": name}
        rows.append(row)
        print(f"  {name:36}{row['ms']:9.3f}  {row['stages']}", flush=True)
    return rows


_FIRST = """
import sys, time, json
import numpy as np
from kernelscope.backends import create_backends
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
backends = create_backends()
device = Device(sys.argv[1])
if device is Device.GPU:
    backends["gpu"].availability()
    small = Image.from_array(np.zeros((64, 64), np.uint8), "small")
    execute(Request.create(small, "negative", {}, device=device), backends)  # opens the card
image = Image.from_array(np.zeros((1024, 1024), np.uint8), "image")
begun = time.perf_counter()
execute(Request.create(image, sys.argv[2], json.loads(sys.argv[3]), device=device), backends)
print("SECONDS", time.perf_counter() - begun)
for backend in backends.values():
    backend.close()
"""


def first(bench: Bench) -> list[Row]:
    """Time the first run of each filter in a new process, with an empty cache of compiled code."""
    rows = []
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("mean", {}),
        ("weighted_mean", {}),
        ("mask", {}),
        ("sobel", {}),
        ("laplace", {}),
        ("median", {"size": 3}),
        ("median", {"size": 5}),
        ("median", {"size": 9}),
        ("median", {"size": 13}),
        ("rotating_mask", {}),
        ("nlm", {}),
        ("threshold_mean", {}),
        ("ripple", {}),
    )
    for filter_id, parameters in cases:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", _FIRST, bench.device, filter_id, json.dumps(parameters)],
                env=os.environ | {"XDG_CACHE_HOME": folder, "NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=False,
            )
        lines = [line for line in done.stdout.splitlines() if line.startswith("SECONDS")]
        if not lines:
            print(done.stderr[-500:], file=sys.stderr)
            continue
        name = f"{filter_id} {parameters.get('size', '')}".strip()
        rows.append({"name": name, "ms": round(1000 * float(lines[0].split()[1]), 1)})
        print(f"  {name:32}{rows[-1]['ms']:9.1f}", flush=True)
    return rows


SECTIONS: dict[str, Callable[[Bench], list[Row]]] = {
    "kernels": kernels,
    "types": types,
    "runs": runs,
    "volumes": volumes,
    "first": first,
}


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=("gpu", "cpu"))
    parser.add_argument("--only", nargs="+", choices=tuple(SECTIONS), default=tuple(SECTIONS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--commit", default=commit())
    arguments = parser.parse_args()
    backends = create_backends()
    bench = Bench(Device(arguments.device), backends)
    found = {}
    for name in arguments.only:
        print(name, flush=True)
        found[name] = {"commit": arguments.commit, "rows": SECTIONS[name](bench)}
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for backend in backends.values():
        backend.close()


if __name__ == "__main__":
    main()
