"""A batch of pictures beside its parts: reading, filtering and writing alone.

    python resources/bench/batch.py > resources/bench/batch-DATE.txt
    python resources/bench/batch.py --device gpu --jobs 8

Makes pictures of 2048² 8-bit samples as TIFF, a photograph with noise, and applies a median to
them. Each part alone takes one file after the other, the filter on all cores; reading and writing
are also timed on as many threads as the batch has for them. The parts and the whole take turns; the
median of the rounds is reported, and every result is compared with that of the parts. Files are
in the page cache when they are read. Use a machine that does nothing else.

Nothing can be faster than the processor time of all parts divided by the number of cores, which is
reported too: on few cores reading and writing take theirs from the filter.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernelscope.backends import create_backends
from kernelscope.base import machine
from kernelscope.base.parallel import core_count
from kernelscope.base.paths import RESOURCES
from kernelscope.big.batch.conductor import Batch
from kernelscope.big.batch.item import FileState
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import find_items
from kernelscope.engine.backend import close_all
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_recipe
from kernelscope.files import read_image, write_image
from kernelscope.images.image import Image

SIDE = 2048
JOBS = 2
"""Readers and writers, as the command line has by default."""

TARGET = 1.15
"""The whole, by the slowest part."""

PARTS = ("read", "filter", "write")


class Taken(NamedTuple):
    """Seconds on the clock, and of the processor in all threads."""

    wall: float
    processor: float


def make(folder: Path, count: int, suffix: str) -> None:
    """Write the pictures: parts of a photograph, four times as large, with noise."""
    small = read_image(RESOURCES / "camera.bmp").pixels
    photo = np.kron(small.reshape(*small.shape[:2], -1)[..., 0], np.ones((4, 4), np.uint8))
    random = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        shifted = np.roll(photo, 10 * number, axis=1)[:SIDE, :SIDE]
        noisy = shifted + random.normal(0, 8, shifted.shape)
        pixels = np.clip(noisy, 0, 255).astype(np.uint8)
        write_image(Image.from_array(pixels), folder / f"{number:03}{suffix}")


def timed(work: Callable[[], object]) -> Taken:
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return Taken(time.perf_counter() - start, time.process_time() - cpu)


def each(work: Callable[[Path], object], paths: list[Path], threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, paths):
            pass


class Bench:
    """The parts and the whole, on the same files."""

    def __init__(
        self, folder: Path, count: int, recipe: Recipe, device: Device, jobs: int, suffix: str
    ) -> None:
        self.folder, self.recipe, self.jobs = folder, recipe, jobs
        self.options = RunOptions(device=device)
        make(folder / "in", count, suffix)
        self.paths = sorted((folder / "in").iterdir())
        self.backends = create_backends()
        first = read_image(self.paths[0])
        self.filter(first)  # compiles
        self.made = Image.from_array(self.filter(first))
        """A result: writing depends on what is written."""

    def filter(self, image: Image) -> np.ndarray:
        (result,) = execute_recipe(self.recipe, image, self.backends, options=self.options)
        return result.image.pixels

    def read_alone(self, threads: int = 1) -> None:
        each(read_image, self.paths, threads)

    def filter_alone(self) -> None:
        image = read_image(self.paths[0])
        for _ in self.paths:
            self.filter(image)

    def write_alone(self, threads: int = 1) -> None:
        out = self.fresh("written")
        each(lambda path: write_image(self.made, out / path.name), self.paths, threads)

    def whole(self) -> None:
        out = self.fresh("out")
        journal = Journal(out, self.recipe)
        items = find_items([self.folder / "in"], out).items
        batch = Batch(
            self.recipe, items, self.backends, self.options, jobs=self.jobs, costs=Costs()
        )
        outcomes = batch.run(journal, CancelToken())
        journal.close()
        assert [outcome.status for outcome in outcomes] == [FileState.DONE] * len(items)

    def fresh(self, name: str) -> Path:
        out = self.folder / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return out

    def check(self) -> None:
        """Compare the results with those of the parts, one after the other."""
        for path in self.paths:
            expected = self.filter(read_image(path))
            assert np.array_equal(read_image(self.folder / "out" / path.name).pixels, expected)


def measure(
    count: int, rounds: int, recipe: Recipe, device: Device, jobs: int, suffix: str
) -> dict[str, object]:
    """Return medians of the rounds, the ratio to the slowest part, and the rounds."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), count, recipe, device, jobs, suffix)
        work = {
            "read": bench.read_alone,
            "filter": bench.filter_alone,
            "write": bench.write_alone,
            f"read, {jobs} threads": lambda: bench.read_alone(jobs),
            f"write, {jobs} threads": lambda: bench.write_alone(jobs),
            "whole": bench.whole,
        }
        bench.whole()  # once before, as everything else
        bench.check()
        taken: dict[str, list[Taken]] = {part: [] for part in work}
        for _ in range(rounds):
            for part, run in work.items():
                taken[part].append(timed(run))
            print("  ".join(f"{part} {runs[-1].wall:.2f} s" for part, runs in taken.items()))
            sys.stdout.flush()
        close_all(bench.backends.values())
    walls = {part: statistics.median(run.wall for run in runs) for part, runs in taken.items()}
    slowest = max(PARTS, key=walls.__getitem__)
    threaded = max(walls[part] for part in walls if part not in ("read", "write", "whole"))
    busy = {part: statistics.median(run.processor for run in runs) for part, runs in taken.items()}
    least = sum(busy[part] for part in PARTS) / core_count()
    return {
        "seconds": walls,
        "processor_seconds": busy,
        "slowest": slowest,
        "whole_by_slowest": walls["whole"] / walls[slowest],
        "whole_by_slowest_on_threads": walls["whole"] / threaded,
        "processor_seconds_by_cores": least,
        "whole_processor_by_cores": busy["whole"] / core_count(),
        "whole_by_processor_seconds": walls["whole"] / least,
        "rounds": {part: [run._asdict() for run in runs] for part, runs in taken.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="pictures (default: 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--suffix", default=".tif", help="format of the pictures")
    parser.add_argument("--jobs", type=int, default=JOBS, help="readers and writers")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    report: dict[str, object] = {"pictures": options.count, "side": SIDE, "jobs": options.jobs}
    report["machine"] = machine.facts()
    report["load_before"] = os.getloadavg()[0]
    for name, value in machine.facts().items():
        print(f"{name}: {value}")
    print(f"{options.count} pictures of {SIDE}² bytes as {options.suffix}, on the {options.device}")
    print(f"load before: {report['load_before']:.2f}")
    for filter_id, size in (("median", 5), ("median", 9)):
        recipe = Recipe((Step.create(filter_id, {"size": size}),))
        device = Device(options.device)
        found = measure(options.count, options.rounds, recipe, device, options.jobs, options.suffix)
        report[f"{filter_id} {size}"] = found
        parts, whole = found["processor_seconds_by_cores"], found["whole_processor_by_cores"]
        print(
            f"{filter_id} {size}: {found['whole_by_slowest']:.2f} times the slowest part,", end=""
        )
        print(f" {found['slowest']}; of each of {core_count()} cores the parts take {parts:.2f} s")
        print(f"  together, and the whole {whole:.2f} s")
    report["load_after"] = os.getloadavg()[0]
    print(f"load after: {report['load_after']:.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
