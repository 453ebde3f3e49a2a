"""The first live result of each filter on a computer that has no code of it yet.

    python resources/bench/first_use.py --json resources/bench/cpu-first-use.json

Each filter and type of samples has a process of its own with an empty cache, in which the program
is loaded already. The clock runs from a live request for the part of a picture that a window of
1920 x 1080 shows until its result, with the numbers that it estimates from it; *by* says what
computed it. The goal is a second.
*cpu* is the processor time of the process by then, of all its threads, which other programs disturb
less: a computer at rest takes no longer than that. The picture is a ramp with noise of 4 % of
white. Filters of volumes compute the middle slice of 60 x 256 x 256 voxels, float.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernelscope import filters
from kernelscope.base import machine
from kernelscope.schema.samples import Kind

GOAL = 1.0
DTYPES = ("uint8", "uint16", "float32")
PART = (700, 700)

CHILD = """
import json, os, sys, time
import numpy as np
from dataclasses import replace
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base import jit
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.region import Region
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_all, prepared
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.devices import Device
name, dtype, height, width = json.loads(sys.argv[1])
is_volume = dtype == "voxels"
white = 1 if dtype in ("float32", "voxels") else np.iinfo(dtype).max
noise = np.random.default_rng(0).standard_normal((1024, 1024), np.float32)
noise = (np.linspace(0.2, 0.8, 1024, dtype=np.float32) + 0.04 * noise).clip(0, 1)
if is_volume:
    voxels = 500 + 100 * np.random.default_rng(0).random((60, 256, 256), np.float32)
    picture = Scan((Volume(voxels),))
else:
    picture = Image.from_array((noise * white).astype(dtype), "noise")
backend = CpuBackend()
backend.on_ready = lambda _: None
jit.compile_elsewhere(lambda *of: None)  # as the window has it
jit.load_numba()
request = Request(picture, Step.create(name), RunOptions(Device.CPU))
croppable = not request.step.filter.uncroppable(request.step.parameters)
region = Region(99, 99, height, width) if croppable else None
if is_volume:
    region = Box.slice_of(request.source.shape, 0, 30)
begun, before = time.perf_counter(), time.process_time()
request, _ = prepared(request)
request = replace(request, region=region, live=True, stand_in="")
result = execute_all(request, {"cpu": backend})
seconds, spent = time.perf_counter() - begun, time.process_time() - before
print(json.dumps([seconds, spent, result.where]), flush=True)
os._exit(0)
"""


def first_result(name: str, dtype: str) -> tuple[float, float, str]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # as `kernelscope.cli` has it
        environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "app")
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps([name, dtype, *PART])],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    seconds, spent, where = json.loads(done.stdout)
    return seconds, spent, where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="filters that contain this")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    volumes = {**filters.discover(Kind.VOLUME), **filters.in_3d()}
    cases = [(name, dtype) for name in filters.discover() for dtype in DTYPES]
    cases += [(name, "voxels") for name in volumes]
    for name, dtype in cases:
        if options.only in name:
            seconds, spent, by = first_result(name, dtype)
            rows.append(
                {"filter": name, "type": dtype, "s": round(seconds, 2), "cpu": round(spent, 2)}
            )
            rows[-1] |= {"by": by, "met": min(seconds, spent) <= GOAL}
            print(f"{name:22} {dtype:8} {seconds:6.2f} s, {spent:6.2f} s of processor, {by}")
            if options.json:  # rows are kept if the rest is cut off
                content = {"machine": machine.facts(), "goal": GOAL, "rows": rows}
                options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
