"""The queue of a batch and its settings, without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelscope.big.batch.conductor import FileOutcome
from kernelscope.big.batch.item import FileState, Item, ResultReport
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.gui.model.batch_run import (
    BatchQueue,
    BatchSettings,
    default_out,
    described,
)
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device

ITEMS = [Item(Path(f"/in/{k}.png"), Path(f"/out/{k}.png")) for k in range(4)]


def ended(number: int, status: FileState = FileState.DONE, **more: Any) -> FileOutcome:
    return FileOutcome(ITEMS[number], status, read=0.25, filtered=0.5, written=0.25, **more)


@pytest.fixture
def queue() -> BatchQueue:
    queue = BatchQueue()
    queue.show(ITEMS)
    return queue


def test_rows_follow_the_stages_of_their_files(queue: BatchQueue) -> None:
    queue.begin(0)
    assert queue.note((ITEMS[1], FileState.READING)) == 1
    assert [row.state for row in queue.rows] == [
        FileState.WAITING,
        FileState.READING,
        FileState.WAITING,
        FileState.WAITING,
    ]
    queue.note(ended(1, device="CPU parallel", size="20×10"))
    row = queue.rows[1]
    assert (row.state, row.size, row.remark) == (FileState.DONE, "20×10", "1.00 s, CPU parallel")
    assert row.parts == "Read in 250 ms, filtered in 500 ms, written in 250 ms."
    queue.note(
        ended(
            3, device="GPU", report=ResultReport(("CMYK converted.", "3.png is without EXIF data."))
        )
    )
    assert queue.rows[3].remark == "1.00 s, GPU: CMYK converted. 3.png is without EXIF data."
    assert queue.rows[3].parts.splitlines()[1:] == [
        "CMYK converted.",
        "3.png is without EXIF data.",
    ]
    queue.note(FileOutcome(ITEMS[0], FileState.SKIPPED, report=ResultReport(("CMYK converted.",))))
    assert queue.rows[0].remark == "CMYK converted."
    queue.note(ended(2, FileState.FAILED, reason="2.png: this is no image."))
    assert queue.rows[2].remark == "this is no image.", "the row has the name"
    assert queue.note(FileOutcome(Item(Path("/x"), Path("/y")), FileState.DONE)) is None


def test_files_that_were_cut_off_say_so_and_are_counted(queue: BatchQueue) -> None:
    cut_off = ResultReport(("The file is cut off: only rows 1 to 9 of 20 are there.",))
    queue.begin(0)
    queue.note(ended(0, report=cut_off))
    queue.note(ended(1))
    queue.note(ended(2, FileState.FAILED, report=cut_off))
    queue.note(ended(3, FileState.SKIPPED, report=cut_off))
    names = ["done, cut off", "done", "failed", "done before, cut off"]
    assert [row.state_name for row in queue.rows] == names
    queue.end(4)
    assert queue.describe(9) == "4 of 4 files, 1 done before, 2 cut off, 1 failed, took 4 s"
    queue.show(ITEMS[1:])
    assert ", 1 cut off," in queue.describe(9)
    queue.begin(9)
    assert "cut off" not in queue.describe(9)


def test_the_time_left_is_that_of_the_files_left_without_pauses(queue: BatchQueue) -> None:
    queue.begin(100)
    queue.note(ended(0))
    assert queue.seconds_left(110) is None  # one file says little
    queue.pause(110)
    queue.go_on(500)
    queue.note(ended(1))
    assert queue.seconds(510) == 20
    assert queue.seconds_left(510) == pytest.approx(20)
    assert queue.describe(510) == "2 of 4 files, 20 s left"


def test_files_that_were_done_before_say_nothing_about_the_time_left(queue: BatchQueue) -> None:
    queue.begin(0)
    queue.note(ended(0, FileState.SKIPPED))
    queue.note(ended(1, FileState.SKIPPED))
    assert queue.seconds_left(1) is None
    assert queue.describe(1) == "2 of 4 files, 2 done before"


def test_a_batch_that_was_stopped_leaves_files_waiting(queue: BatchQueue) -> None:
    queue.begin(0)
    queue.note(ended(0))
    queue.note((ITEMS[1], FileState.FILTERING))
    queue.stop(5)
    assert queue.describe(6) == "1 of 4 files, stopping…"
    queue.end(7)
    assert queue.rows[1].state is FileState.WAITING
    assert (queue.ended, queue.left, queue.running) == (1, 3, False)
    assert queue.describe(8) == "1 of 4 files, stopped"


def test_files_that_stay_keep_what_became_of_them(queue: BatchQueue) -> None:
    queue.begin(0)
    queue.note(ended(1))
    queue.end(1)
    queue.show(queue.without({0}))
    assert [row.state for row in queue.rows] == [
        FileState.DONE,
        FileState.WAITING,
        FileState.WAITING,
    ]
    assert (queue.ended, len(queue)) == (1, 3)
    assert queue.note(ended(3)) == 2


def test_settings_survive_being_stored() -> None:
    settings = BatchSettings("/out", ".tif", Device.CPU, replaces=True, lossy=True, quality=70)
    assert BatchSettings.of(settings.texts()) == settings
    assert BatchSettings.of({"device": "toaster"}) == BatchSettings()


def test_the_output_folder_is_next_to_the_inputs(tmp_path: Path) -> None:
    assert default_out([tmp_path]) == tmp_path.with_name(f"{tmp_path.name}-filtered")
    assert default_out([tmp_path / "a.png"]) == tmp_path / "filtered"


def test_a_recipe_in_a_line() -> None:
    first = Step.create("median", {"size": 5}, border=Border.WRAP)
    second = Step.create("nlm", {"filter_sigma": ESTIMATE})
    text = described(Recipe((first, second)))
    assert text.startswith("Median: 5×5, wrap border → ")
    assert "estimated" in text
