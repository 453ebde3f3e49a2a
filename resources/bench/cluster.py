"""A batch on one and on two workers of this machine, and a model of more of them.

    python resources/bench/cluster.py > resources/bench/cluster-DATE.txt

Pictures of 2048² 8-bit samples as TIFF are filtered by a median, in workers with one thread that
filters and one file in work each, so that two workers have twice the cores of one. Both clusters
take turns; before the first round each did everything once. Then come the seconds that a file
takes: to be read, filtered and written by a worker, and to be moved to its place and noted by the
client, which does that for one file at a time. Plain copies of the same files, each on the disk
before the next, give the bytes per second of the storage.

The model takes the slowest of three: all workers, the client, the storage.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.base import machine
from kernelscope.big.batch import cluster
from kernelscope.big.batch.conductor import FileOutcome
from kernelscope.big.batch.item import PARTS, FileState
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import find_items
from kernelscope.big.batch.task import TaskSettings
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import write_image
from kernelscope.images.image import Image

SIDE, COUNT, ROUNDS = 2048, 48, 3
RECIPE = Recipe((Step.create("median", {"size": 9}),))
WORKERS = (1, 2, 4, 16, 64, 256)
STORAGES = (1e9, 10e9)
"""Bytes per second of shared storages, next to the disk of this machine."""


def make(folder: Path) -> None:
    folder.mkdir()
    random = np.random.default_rng(0)
    ramp = np.linspace(40, 200, SIDE)
    for number in range(COUNT):
        pixels = np.clip(ramp + random.normal(0, 8, (SIDE, SIDE)), 0, 255).astype(np.uint8)
        write_image(Image.from_array(pixels), folder / f"{number:03}.tif")


class TimedBatch(cluster.ClusterBatch):
    """Adds up the seconds in which the client moves results and writes the journal."""

    seconds = 0.0

    def _finish(self, *arguments: Any) -> FileOutcome:
        start = time.perf_counter()
        outcome = super()._finish(*arguments)
        self.seconds += time.perf_counter() - start
        return outcome


def run(client: Any, folder: Path) -> tuple[float, float, list[FileOutcome]]:
    """Return the seconds of a batch, those of its client, and the outcomes of its files."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    items = find_items([folder / "in"], out).items
    journal = Journal(out, RECIPE)
    settings = TaskSettings(RECIPE, RunOptions(device=Device.CPU), out / PARTS, threads=1)
    start = time.perf_counter()
    batch = TimedBatch(items, settings, client)
    outcomes = batch.run(journal, CancelToken())
    seconds = time.perf_counter() - start
    journal.close()
    assert [each.status for each in outcomes] == [FileState.DONE] * COUNT
    return seconds, batch.seconds, outcomes


def copied(folder: Path) -> float:
    """Return the bytes per second of plain copies, read and written bytes together."""
    copies, paths = folder / "copies", sorted((folder / "in").iterdir())
    copies.mkdir()
    start = time.perf_counter()
    for path in paths:
        with (copies / path.name).open("wb") as handle:
            handle.write(path.read_bytes())
            handle.flush()
            os.fsync(handle.fileno())
    return 2 * sum(path.stat().st_size for path in paths) / (time.perf_counter() - start)


def show_model(file_seconds: float, client_seconds: float, size: float, disk: float) -> None:
    print("\nmodel, files per second (the limit):")
    print("workers   " + "".join(f"{f'{rate / 1e9:.2g} GB/s':>22}" for rate in (disk, *STORAGES)))
    for workers in WORKERS:
        cells = []
        for storage in (disk, *STORAGES):
            limits = {
                "workers": workers / file_seconds,
                "client": 1 / client_seconds,
                "storage": storage / size,
            }
            least = min(limits, key=limits.__getitem__)
            cells.append(f"{f'{limits[least]:.1f} ({least})':>22}")
        print(f"{workers:7}   " + "".join(cells))
    for storage in (disk, *STORAGES):
        print(
            f"storage of {storage / 1e9:.2g} GB/s is the limit from "
            f"{storage / size * file_seconds:.0f} workers on"
        )
    print(f"the client is the limit from {file_seconds / client_seconds:.0f} workers on")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        make(folder / "in")
        clients = {n: stack.enter_context(cluster.local_workers(n, None, 1)) for n in (1, 2)}
        for client in clients.values():
            run(client, folder)
        taken: dict[int, list[float]] = {1: [], 2: []}
        finishing, outcomes = 0.0, []
        for _ in range(ROUNDS):
            for count, client in clients.items():
                seconds, of_client, done = run(client, folder)
                finishing += of_client
                taken[count].append(seconds)
                outcomes += done if count == 1 else []
        client_seconds = finishing / (2 * ROUNDS * COUNT)
        disk = copied(folder)
        both = [*(folder / "in").iterdir(), *(folder / "out").glob("*.tif")]
        size = sum(path.stat().st_size for path in both) / COUNT
    parts = {
        part: statistics.median(getattr(each, part) for each in outcomes)
        for part in ("read", "filtered", "written")
    }
    facts = machine.facts()
    print("\n".join(f"{key}: {value}" for key, value in facts.items()))
    print(f"load: {os.getloadavg()[0]:.2f}")
    print(f"{COUNT} pictures of {SIDE}² bytes, median 9; {size / 1e6:.2f} MB in and out a file")
    for count, times in taken.items():
        rounds = ", ".join(f"{each:.2f}" for each in times)
        print(f"{count} workers: {statistics.median(times):.2f} s ({rounds})")
    print(f"scaling: {statistics.median(taken[1]) / statistics.median(taken[2]):.2f}")
    print("; ".join(f"{part} {seconds * 1e3:.1f} ms" for part, seconds in parts.items()))
    print(f"client: {client_seconds * 1e3:.2f} ms a file")
    print(f"plain copies: {disk / 1e6:.0f} MB/s read and written")
    show_model(statistics.median(taken[1]) / COUNT, client_seconds, size, disk)


if __name__ == "__main__":
    main()
