"""The journal of a batch: files that count as done after an end at any place."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernelscope.base.errors import AppError, ImageWriteError
from kernelscope.big.batch.item import JOURNAL, Handling, Item, ResultReport
from kernelscope.big.batch.journal import Journal, state_of
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step

RECIPE = Recipe((Step.create("mean", {}),))


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    (tmp_path / "in").mkdir()
    made = []
    for name in ("a.png", "b.png"):
        (tmp_path / "in" / name).write_bytes(name.encode())
        made.append(Item(tmp_path / "in" / name, tmp_path / "out/deep" / name))
    return made


@contextmanager
def opened(items: list[Item], **how: Any) -> Iterator[Journal]:
    folder = items[0].target.parents[1]
    with closing(Journal(folder, RECIPE, **how)) as journal:
        yield journal


def write_result(item: Item, content: bytes = b"result", time: int = 10**18) -> None:
    """Write a result of a time of our own: two in a row may have the same by the clock."""
    item.target.parent.mkdir(parents=True, exist_ok=True)
    item.target.write_bytes(content)
    os.utime(item.target, ns=(time, time))


def begin(journal: Journal, item: Item) -> None:
    journal.begin(item, state_of(*item.files), ResultReport())


def finish(journal: Journal, item: Item, time: int = 10**18) -> None:
    begin(journal, item)
    write_result(item, time=time)
    journal.done(item, state_of(*item.files))


def done(items: list[Item]) -> list[bool]:
    with opened(items, resume=True) as journal:
        return [journal.is_done(item) for item in items]


def test_what_is_done_is_done_as_long_as_it_and_its_source_are_there(items: list[Item]) -> None:
    with opened(items) as journal:
        finish(journal, items[0])
        assert not journal.is_done(items[1])
    assert done(items) == [True, False]
    items[0].target.unlink()
    assert done(items) == [False, False]
    write_result(items[0])
    items[0].source.write_bytes(b"a png that is longer")
    assert done(items) == [False, False]


def test_a_source_of_the_same_size_or_of_the_same_time_has_changed(items: list[Item]) -> None:
    with opened(items) as journal:
        finish(journal, items[0])
        finish(journal, items[1])
    first, second = (item.source for item in items)
    state = first.stat()
    os.utime(first, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    state = second.stat()
    second.write_bytes(b"longer than before")
    os.utime(second, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert done(items) == [False, False]


def test_the_result_of_another_source_is_not_that_of_this_one(items: list[Item]) -> None:
    """Both have the same size and time, and the same place of the result."""
    with opened(items) as journal:
        finish(journal, items[0])
    other = items[0].source.with_name("other.png")
    os.link(items[0].source, other)
    assert done([Item(other, items[0].target), items[0]]) == [False, True]


@pytest.mark.parametrize("there", [False, True])
def test_an_old_result_does_not_count_if_the_process_ended_before_the_new_one(
    there: bool, items: list[Item]
) -> None:
    if there:
        write_result(items[0], b"old")
    with opened(items) as journal:
        begin(journal, items[0])  # and it is killed
    assert done(items) == [False, False]
    write_result(items[0], time=10**18 + 1)  # it was killed a moment later
    assert done(items) == [True, False]


def test_a_second_attempt_counts_by_what_was_there_before_it(items: list[Item]) -> None:
    with opened(items) as journal:
        begin(journal, items[0])
        write_result(items[0], time=10**18)
        begin(journal, items[0])  # for its source had changed
    assert done(items) == [False, False]


def test_a_result_that_was_replaced_is_no_longer_that_of_the_source_before(
    items: list[Item],
) -> None:
    """The source is changed, filtered again until the process ends, and changed back."""
    with opened(items) as journal:
        finish(journal, items[0])
    source, state = items[0].source, items[0].source.stat()
    content = source.read_bytes()
    source.write_bytes(b"another picture")
    with opened(items, resume=True) as journal:
        begin(journal, items[0])
        write_result(items[0], b"of another picture", time=10**18 + 1)
    assert done(items) == [True, False]
    source.write_bytes(content)
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert done(items) == [False, False]


def test_a_failure_takes_the_beginning_back(items: list[Item]) -> None:
    with opened(items) as journal:
        begin(journal, items[0])
        journal.failed(items[0])
        journal.failed(items[1])  # which never began
    write_result(items[0], b"from elsewhere")
    assert done(items) == [False, False]


@pytest.mark.parametrize("half", ['{"begin": "deep/a.p', '{"done": "deep/a.png"}', "\udcff"])
def test_a_record_after_half_a_line_is_not_lost(half: str, items: list[Item]) -> None:
    with opened(items) as journal:
        path = journal.path
    with path.open("a", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(half)
    with opened(items, resume=True) as journal:
        begin(journal, items[0])  # the record beside the half line is the only one of this file
        write_result(items[0])
        finish(journal, items[1])
    assert done(items) == [True, True]


def test_each_half_of_the_journal_is_read(items: list[Item]) -> None:
    """A process may end after any byte: nothing is done that was not, and no record is lost."""
    with opened(items) as journal:
        finish(journal, items[0])
        begin(journal, items[1])
        path = journal.path
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    end = whole.index(b"\n", whole.index(b'"done"'))
    for length in range(first, len(whole) + 1, 7):
        path.write_bytes(whole[:length])
        # Its time is that of its beginning, so that the beginning alone counts as well.
        begun = length >= whole.index(b"\n", first)
        assert done(items) == [begun or length >= end, False]
        assert path.read_bytes().startswith(whole[:length])


def test_other_lines_are_left_out_and_stay(items: list[Item]) -> None:
    with opened(items) as journal:
        finish(journal, items[0])
        path = journal.path
    lines = path.read_text("utf-8").splitlines()
    others = ["[]", "7", '{"done": 7}', '{"begin": []}', '{"failed": {}}', '"x"', "", '{"new": 1}']
    path.write_text("\n".join([*lines, *others, ""]), encoding="utf-8")
    assert done(items) == [True, False]
    assert path.read_text("utf-8").splitlines() == [*lines, *others]


def test_a_journal_that_is_none_is_refused(items: list[Item]) -> None:
    folder = items[0].target.parents[1]
    folder.mkdir()
    for content in (b"", b"\0" * 100, b"text\n", b'{"recipe": "other"}\n'):
        (folder / JOURNAL).write_bytes(content)
        with pytest.raises(AppError, match="belongs to another recipe"):
            Journal(folder, RECIPE, resume=True)
        assert (folder / JOURNAL).read_bytes() == content
    with (folder / JOURNAL).open("wb") as handle:
        handle.truncate((1 << 30) + 1)
    with pytest.raises(AppError, match="this is no journal of a batch"):
        Journal(folder, RECIPE, resume=True)


@pytest.mark.skipif(sys.platform == "win32", reason="has no locks of this kind")
@pytest.mark.parametrize("how", [{"resume": True}, {"anew": True}])
def test_one_batch_at_a_time_writes_to_a_folder(items: list[Item], how: dict[str, Any]) -> None:
    """The second one took the results of the first for files of somebody else."""
    with opened(items) as journal:
        finish(journal, items[0])
        before = journal.path.read_bytes()
        with pytest.raises(AppError, match="Another batch is writing its results to"):
            Journal(items[0].target.parents[1], RECIPE, **how)
        assert journal.path.read_bytes() == before
    with opened(items, **how) as journal:
        assert journal.is_done(items[0]) == ("resume" in how)


def test_a_file_is_no_folder_for_results(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(ImageWriteError, match=r"/out: this is no folder\."):
        Journal(tmp_path / "out", RECIPE)
    assert (tmp_path / "out").read_bytes() == b"mine"


def test_a_journal_begins_with_its_recipe_and_is_forgotten_only_on_demand(
    items: list[Item],
) -> None:
    with opened(items) as journal:
        finish(journal, items[0])
    with pytest.raises(AppError, match="has the results of an earlier batch"):
        Journal(items[0].target.parents[1], RECIPE)
    assert done(items) == [True, False]
    with opened(items, anew=True) as journal:
        assert not journal.is_done(items[0])
    (line,) = journal.path.read_text("utf-8").splitlines()
    content = json.loads(line)
    assert content.keys() == {"recipe", "version", "earlier"}
    place = items[0].target.relative_to(items[0].target.parents[1]).as_posix()
    assert content["earlier"] == {place: str(items[0].source)}
    assert done(items) == [False, False]


def test_results_of_other_options_are_not_resumed(items: list[Item]) -> None:
    with opened(items, handling=Handling(quality=90)) as journal:
        folder = journal.path.parent
    with pytest.raises(AppError, match="or other options"):
        Journal(folder, RECIPE, resume=True)
    with opened(items, resume=True, handling=Handling(quality=90, lossy=True)):
        pass  # which decides no result


def test_a_new_journal_may_be_resumed_too(items: list[Item]) -> None:
    """The same command serves before and after an interruption."""
    with opened(items, resume=True) as journal:
        finish(journal, items[0])
    assert done(items) == [True, False]


def test_reports_come_back(items: list[Item]) -> None:
    reports = [
        ResultReport(("one", "two \udcff"), ("place",), ("scaled",), ("texts",)),
        ResultReport(("3",)),
    ]
    with opened(items) as journal:
        journal.begin(items[0], state_of(*items[0].files), reports[0])
        write_result(items[0])
        journal.begin(items[1], state_of(*items[1].files), reports[1])
        journal.done(items[0], state_of(*items[0].files))
    with opened(items, resume=True) as journal:
        assert [journal.report(item) for item in items] == reports
        assert journal.report(Item(Path("x"), items[0].target.with_name("x"))) == ResultReport()
    for content in (None, [], "text", {"notices": 7}, {"kept": "text", "more": []}):
        assert ResultReport.from_json(content) == ResultReport()
