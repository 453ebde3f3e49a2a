"""How far each kernel is from the limit of the card.

    python resources/bench/limits.py --json resources/bench/gpu-limits.json
    python resources/bench/limits_page.py

Each row is the median of several runs after one that warms up, timed by events, and with it the
time of a copy of the same bytes on the card in the same process: the floor of everything that
reads and writes a picture once. Section ``kernels`` has pictures of 16384² bytes and non-local
means, ``types`` 8192² samples of 16 bits and floats. Small pictures beside NPP are in
``gpu-peers-sizes.json``, which ``measure.py`` makes; copies, runs and first uses in the files of
``waiting.py``. Use a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from measure import Cubin, compile_kernels

from kernelscope import filters
from kernelscope.backends import create_backends
from kernelscope.base.paths import RESOURCES
from kernelscope.bench.data import Content, Data
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.files import read_image
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask

REPEATS = 7
SIDE = 16384
MASK_SIDES = (3, 5, 7, 9, 15)
_TOO_LONG = ("median 21", "median 31", "mean 99")
"""Of `kernel_cases`, with 16 bits and floats."""
_HEAD = (130, 157, 189)
_GIVEN = {"sigma_from": "given", "sigma": (8.0,), "patch_radius": 1, "search_radius": 5}

Backends = Mapping[str, Backend]
Row = dict[str, Any]
Case = tuple[str, str, dict[str, Any], int]
"""Name, filter, parameters and channels of a picture."""


def weights(side: int) -> tuple[tuple[int, ...], ...]:
    """Return an integer mask of both signs, with the sum 1."""
    mask = np.arange(side * side).reshape(side, side) * 7 % 11 - 5
    mask[side // 2, side // 2] += 1 - mask.sum()
    limit = np.clip(mask, -127, 127)
    limit[0, 0] += 1 - limit.sum()
    return tuple(tuple(int(weight) for weight in row) for row in limit)


def kernel_cases() -> Iterator[Case]:
    """Yield what `kernels` times."""
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


def computing(
    backends: Backends,
    source: Source,
    filter_id: str,
    parameters: Mapping[str, Any],
    repeats: int = REPEATS,
) -> float:
    """Return the median milliseconds of the kernels of level *tuned*, of repeats after a warm-up.

    The card waits until the host has queued a kernel, so that the host's time is no part of it.
    """
    request = Request.create(
        *(source, filter_id, parameters),
        device=Device.GPU,
        level="tuned",
        repeat=repeats,
        cold=True,
    )
    return round(1e3 * execute(request, backends).computing_seconds, 4)


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
    return round(float(statistics.median(times[2:])), 4)


def cubins(cases: Iterable[Case], side: int, dtype: str) -> Iterator[Cubin]:
    """Yield the kernels of cases on pictures."""
    for _, filter_id, parameters, channels in cases:
        spec = filters.get(filter_id)
        values, shape = spec.validate(parameters), (side, side, channels)
        result = spec.output_shape(shape, values, Border.REFLECT)
        kind = np.dtype(dtype)
        task = CudaTask(shape, result, kind, values, Border.REFLECT, "tuned", None)
        for launch in CudaPlan.of(spec.implementation(Cuda).plan(task)).launches:
            yield filter_id, tuple(sorted(launch.defines.items()))


def kernels(backends: Backends, side: int = SIDE) -> list[Row]:
    compile_kernels(cubins(kernel_cases(), side, "uint8"))
    rows = []
    floors = {1: copy_ms(side * side, side * side), 3: copy_ms(3 * side * side, side * side)}
    pictures = {1: noise(side, "uint8")}
    for name, filter_id, parameters, channels in kernel_cases():
        if channels not in pictures:
            pictures = {channels: noise(side, "uint8", channels)}
        ms = computing(backends, pictures[channels], filter_id, parameters)
        rows.append({"name": name, "ms": ms, "floor ms": floors[channels]})
        print(f"  {name:32}{ms:9.3f}   {ms / floors[channels]:6.2f} x a copy", flush=True)
    small = noise(4096, "uint8")
    nlm = {"search_radius": 10, "patch": 7, "filter_sigma": 0.1}
    whole = noise(512, "uint8")
    heads = [Data(Content.HEAD, _HEAD, components).make() for components in (1, 3)]
    photograph = np.tile(read_image(RESOURCES / "camera.bmp").pixels, (32, 32))
    photograph = photograph[:side, :side]
    cases: tuple[tuple[str, Source, str, dict[str, Any]], ...] = (
        *(
            (f"median {size}, photographs", Image.from_array(photograph), "median", {"size": size})
            for size in (15, 31)
        ),
        ("NLM 4096², radius 10, patch 7", small, "nlm", nlm),
        ("NLM 4096², uniform patch", small, "nlm", {**nlm, "weights": "uniform"}),
        ("NLM 512², whole image", whole, "nlm", {**nlm, "search": "image"}),
        ("MRI NLM, 1 component", heads[0], "mri_nlm", _GIVEN),
        ("MRI NLM, 3 components", heads[1], "mri_nlm", _GIVEN),
    )
    for name, source, filter_id, parameters in cases:
        ms = computing(backends, source, filter_id, parameters, 5)
        rows.append({"name": name, "ms": ms})
        print(f"  {name:32}{ms:9.3f}", flush=True)
    return rows


def types(backends: Backends) -> list[Row]:
    rows = []
    cases = [case for case in kernel_cases() if case[3] == 1 and case[0] not in _TOO_LONG]
    for dtype in ("uint16", "float32"):
        compile_kernels(cubins(cases, 8192, dtype))
        picture, size = noise(8192, dtype), 8192 * 8192 * np.dtype(dtype).itemsize
        floor = copy_ms(size, size)
        for name, filter_id, parameters, _ in cases:
            ms = computing(backends, picture, filter_id, parameters)
            rows.append({"name": f"{name}, {dtype}", "ms": ms, "floor ms": floor})
            print(f"  {name:32}{dtype:8}{ms:9.3f}   {ms / floor:6.2f} x a copy", flush=True)
    return rows


SECTIONS: dict[str, Callable[[Backends], list[Row]]] = {
    "kernels": kernels,
    "types": types,
}


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def machine(backends: Backends) -> dict[str, str]:
    """Return the name of the device and the day."""
    return {
        "name": backends[Device.GPU].availability().summary,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tuple(SECTIONS), default=tuple(SECTIONS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--commit", default=commit())
    arguments = parser.parse_args()
    backends = create_backends()
    found: dict[str, Any] = {}
    if arguments.json and arguments.json.exists():  # other sections stay
        found = json.loads(arguments.json.read_text(encoding="utf-8"))
    found["machine"] = machine(backends)
    for name in arguments.only:
        print(name, flush=True)
        found[name] = {"commit": arguments.commit, "rows": SECTIONS[name](backends)}
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for backend in backends.values():
        backend.close()


if __name__ == "__main__":
    main()
