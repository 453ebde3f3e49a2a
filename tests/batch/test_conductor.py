"""A batch on its way: stages, pauses, cancelling."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.big.batch import conductor
from kernelscope.big.batch.conductor import Batch, FileOutcome, read_sources
from kernelscope.big.batch.item import FileState, Item, Pause
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import find_items
from kernelscope.engine.backend import Availability
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.files import read_image, write_image
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import Level
from tests.patience import PATIENCE

RECIPE = Recipe((Step.create("mean", {}),))


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    """Eight pictures and their places."""
    (tmp_path / "in").mkdir()
    for number in range(8):
        pixels = np.full((16, 16), number, np.uint8)
        write_image(Image.from_array(pixels), tmp_path / f"in/{number}.png")
    return find_items([tmp_path / "in"], tmp_path / "out").items


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "out", RECIPE)
    yield journal
    journal.close()


def names(outcomes: list[FileOutcome]) -> list[str]:
    return [each.item.source.stem for each in outcomes]


def test_each_file_is_read_filtered_and_written_in_this_order(
    backend: CpuBackend, items: list[Item], journal: Journal
) -> None:
    begun: list[tuple[Item, FileState]] = []
    lock = threading.Lock()

    def note(item: Item, stage: FileState) -> None:
        with lock:
            begun.append((item, stage))

    Batch(RECIPE, items, {"cpu": backend}).run(journal, CancelToken(), begun=note)
    for item in items:
        stages = [stage for each, stage in begun if each is item]
        assert stages == [FileState.READING, FileState.FILTERING, FileState.WRITING]


def test_a_pause_holds_the_batch_when_everything_filtered_is_written(
    backend: CpuBackend, items: list[Item], journal: Journal
) -> None:
    pause, filtered = Pause(), list[Item]()
    seen: list[FileOutcome] = []
    held = threading.Event()

    def begun(item: Item, stage: FileState) -> None:
        if stage is FileState.FILTERING:
            filtered.append(item)
            if len(filtered) == 3:
                pause.pause()

    def report(outcome: FileOutcome) -> None:
        seen.append(outcome)
        if len(seen) == 3:
            held.set()

    def work() -> None:
        Batch(RECIPE, items, {"cpu": backend}).run(
            journal, CancelToken(), report, begun=begun, pause=pause
        )

    thread = threading.Thread(target=work)
    thread.start()
    assert held.wait(PATIENCE)
    thread.join(0.3)  # it would go on by now
    assert pause.paused
    assert thread.is_alive()
    assert names(seen) == ["0", "1", "2"]
    assert all(each.item.target.exists() for each in seen)
    assert len(filtered) == 3
    pause.go_on()
    thread.join(PATIENCE)
    assert names(seen) == [str(number) for number in range(8)]


def test_a_paused_batch_can_be_cancelled(
    backend: CpuBackend, items: list[Item], journal: Journal
) -> None:
    pause, token = Pause(), CancelToken()
    pause.pause()
    threading.Timer(0.1, token.cancel).start()
    outcomes = Batch(RECIPE, items, {"cpu": backend}).run(journal, token, pause=pause)
    assert outcomes == []


def test_after_cancelling_no_more_files_are_read(
    backend: CpuBackend, items: list[Item], journal: Journal
) -> None:
    token, read = CancelToken(), list[Item]()

    def begun(item: Item, stage: FileState) -> None:
        if stage is FileState.READING:
            read.append(item)
        elif stage is FileState.FILTERING:
            token.cancel()

    Batch(RECIPE, items, {"cpu": backend}, jobs=1).run(journal, token, begun=begun)
    assert len(read) <= 3


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "There is not enough memory. Use fewer --jobs"),
        (RuntimeError("odd"), "A bug in the program: RuntimeError: odd. See the log."),
        (OSError(28, "No space left on device"), "A bug in the program: OSError: "),
    ],
)
def test_whatever_goes_wrong_with_a_file_is_its_outcome(
    error: Exception,
    reason: str,
    backend: CpuBackend,
    items: list[Item],
    journal: Journal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(item: Item, handling: Any) -> Any:
        if item is items[2]:
            raise error
        return read_sources(item, handling)

    monkeypatch.setattr(conductor, "read_sources", read)
    outcomes = Batch(RECIPE, items, {"cpu": backend}).run(journal, CancelToken())
    assert [each.item for each in outcomes if each.status is not FileState.DONE] == [items[2]]
    assert outcomes[2].reason.startswith(reason)
    assert not items[2].target.exists()
    assert journal.path.read_text("utf-8").count('"done"') == len(items) - 1


@pytest.mark.parametrize("jobs", [1, 3])
def test_at_most_so_many_results_wait_to_be_written(
    jobs: int,
    backend: CpuBackend,
    items: list[Item],
    journal: Journal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is written before the batch waits for a result: by then it has filtered jobs + 1."""
    waits, filtered, most = threading.Event(), list[Item](), list[int]()
    wait = conductor._note_next

    def slow(image: Image, path: Path, **how: Any) -> Path:
        assert waits.wait(PATIENCE)
        return write_image(image, path, **how)

    def note_next(work: Any, note: Any) -> None:
        most.append(len(filtered))
        waits.set()
        wait(work, note)

    def begun(item: Item, stage: FileState) -> None:
        if stage is FileState.FILTERING:
            filtered.append(item)

    monkeypatch.setattr("kernelscope.big.batch.conductor.write_image", slow)
    monkeypatch.setattr(conductor, "_note_next", note_next)
    Batch(RECIPE, items, {"cpu": backend}, jobs=jobs).run(journal, CancelToken(), begun=begun)
    assert most[0] == jobs + 1
    assert len(filtered) == len(items)


@pytest.mark.parametrize("jobs", [1, 3])
def test_so_many_files_are_read_ahead(
    jobs: int, backend: CpuBackend, items: list[Item], journal: Journal
) -> None:
    """The first file is filtered when `jobs` more are being read, and not when all are."""
    read, lock = list[Item](), threading.Lock()
    before = list[int]()
    enough = threading.Event()

    def begun(item: Item, stage: FileState) -> None:
        with lock:
            if stage is FileState.READING:
                read.append(item)
                if len(read) == jobs + 1:
                    enough.set()
        if stage is FileState.FILTERING:
            assert enough.wait(PATIENCE)
            with lock:
                before.append(len(read))

    Batch(RECIPE, items, {"cpu": backend}, jobs=jobs).run(journal, CancelToken(), begun=begun)
    assert before[0] == jobs + 1
    assert all(count <= number + jobs + 1 for number, count in enumerate(before))


def test_results_on_the_disk_are_reported_after_ctrl_c(
    backend: CpuBackend, items: list[Item], journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl+C comes while the third file is filtered, and the first two are still written."""
    interrupted, seen = threading.Event(), list[FileOutcome]()

    def begun(item: Item, stage: FileState) -> None:
        if stage is FileState.FILTERING and item is items[2]:
            interrupted.set()
            raise KeyboardInterrupt

    def slow(image: Image, path: Path, **how: Any) -> Path:
        assert interrupted.wait(PATIENCE)
        return write_image(image, path, **how)

    monkeypatch.setattr("kernelscope.big.batch.conductor.write_image", slow)
    with pytest.raises(KeyboardInterrupt):
        Batch(RECIPE, items, {"cpu": backend}).run(journal, CancelToken(), seen.append, begun=begun)
    assert names(seen) == ["0", "1"]
    assert all(each.status is FileState.DONE and each.item.target.exists() for each in seen)


class Gpu(CpuBackend):
    """A GPU of its own: filters one file at a time, and waits for the others to have one."""

    id, name = "gpu", "GPU"

    def __init__(self, meeting: threading.Barrier) -> None:
        super().__init__(threads=1)
        self._meeting, self._running = meeting, threading.Lock()
        self.files = 0

    def availability(self) -> Availability:
        return Availability(True, "made up")

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels("cpu")

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        assert self._running.acquire(blocking=False), "two files at once"
        with suppress(threading.BrokenBarrierError):  # those who come later need not wait
            self._meeting.wait(PATIENCE)
        self._meeting.abort()
        self.files += 1
        try:
            return super().run(request, level, context)
        finally:
            self._running.release()


def test_several_gpus_take_files_from_one_queue(items: list[Item], journal: Journal) -> None:
    meeting = threading.Barrier(3)
    gpus = [Gpu(meeting) for _ in range(3)]
    first, *more = ({"gpu": gpu, "cpu": gpu} for gpu in gpus)
    options = RunOptions(Device.GPU)
    outcomes = Batch(RECIPE, items, first, options, more=more).run(journal, CancelToken())
    for gpu in gpus:
        gpu.close()
    assert names(outcomes) == [str(number) for number in range(8)]
    assert {each.status for each in outcomes} == {FileState.DONE}
    assert all(gpu.files for gpu in gpus)
    assert sum(gpu.files for gpu in gpus) == 8
    for number, item in enumerate(items):
        assert (read_image(item.target).pixels == number).all()


def test_several_gpus_stop_together(items: list[Item], journal: Journal) -> None:
    meeting, token = threading.Barrier(2), CancelToken()
    gpus = [Gpu(meeting) for _ in range(2)]
    first, *more = ({"gpu": gpu, "cpu": gpu} for gpu in gpus)

    def stop(item: Item, stage: FileState) -> None:
        if stage is FileState.WRITING:
            token.cancel()

    batch = Batch(RECIPE, items, first, RunOptions(Device.GPU), more=more, jobs=1)
    outcomes = batch.run(journal, token, begun=stop)
    for gpu in gpus:
        gpu.close()
    assert 1 <= len(outcomes) < 8
    assert all(each.item.target.exists() for each in outcomes)
    assert sum(each.target.exists() for each in items) == len(outcomes)
