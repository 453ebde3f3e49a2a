"""The open pictures without a window: order, closing, and memory that stays bounded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.engine.timing import Stage
from kernelscope.gui.model.documents import (
    MOST_CLOSED,
    SAVED,
    Document,
    Documents,
    describe_memory,
)
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.history import History, Moment
from kernelscope.gui.widgets.messages import AboutDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import dialog, load, run

SMALL = np.zeros((2, 2, 3), np.uint8)
SIZE = 100 * 100


def document(name: str, *, path: bool = True) -> Document:
    pixels = np.zeros((100, 100), np.uint8)
    image = Image.from_array(pixels, name)
    if path:
        image = Image(image.pixels, name, Path(f"/pictures/{name}"))
    return Document.of(image, SMALL)


def give_output(each: Document) -> Result:
    moment = each.history.current
    request = Request.create(moment.source, "median")
    output = Image.from_array(np.ones((100, 100), np.uint8), "output")
    result = Result(request, output, "cpu", "parallel", ())
    each.history.amend(result=result, settings=RunSettings.of(request))
    return result


def opened(*names: str, limit: int = 1 << 30) -> tuple[Documents, list[Document]]:
    documents = Documents(limit)
    made = [document(name) for name in names]
    for each in made:
        documents.add(each)
    documents.bring_to_front(made[0])
    return documents, made


def test_next_and_previous_go_round() -> None:
    documents, (a, b, c) = opened("a", "b", "c")
    assert documents.beside(1) is b
    assert documents.beside(-1) is c
    documents.bring_to_front(c)
    assert documents.beside(1) is a
    alone, _ = opened("a")
    assert alone.beside(1) is None


def test_closing_shows_the_neighbour_and_reopening_brings_back() -> None:
    documents, (a, b, c) = opened("a", "b", "c")
    assert documents.close(b) is None  # it was not in front
    assert list(documents) == [a, c]
    assert documents.close(a) is c
    assert documents.closed == 2
    documents.bring_to_front(c)
    assert documents.reopen() is a
    assert list(documents) == [c, a]
    assert documents.reopen() is b
    assert documents.reopen() is None
    documents.bring_to_front(a)
    assert documents.close(a) is b, "the next one"
    documents.bring_to_front(b)
    assert documents.close(b) is c, "of the last one, that before"


def test_the_last_ones_closed_are_kept() -> None:
    documents, made = opened(*map(str, range(MOST_CLOSED + 3)))
    forgotten = []
    for each in made[1:]:
        documents.close(each)
        forgotten.append(documents.forgotten)
    assert forgotten == [None] * MOST_CLOSED + made[1:3]
    assert documents.closed == MOST_CLOSED
    back = [documents.reopen() for _ in range(MOST_CLOSED)]
    assert back == made[: -MOST_CLOSED - 1 : -1]


def test_pictures_behind_sleep_until_the_rest_fits() -> None:
    documents, (a, b, c, d) = opened("a", "b", "c", "d", limit=SIZE)
    documents.bring_to_front(b)
    assert documents.trim() == []  # nothing but pictures that can be read again
    # c and d were never in front; a was, and stays.
    assert [each.asleep for each in (a, b, c, d)] == [False, False, True, True]
    assert not c.lost
    documents.limit = 0
    documents.trim()
    assert a.asleep
    assert not b.asleep  # in front


def test_outputs_stay_longest_and_are_named_when_they_go() -> None:
    documents, (a, b, c) = opened("a", "b", "c", limit=2 * SIZE)
    documents.bring_to_front(b)
    documents.bring_to_front(c)
    give_output(a)
    assert documents.trim() == []
    assert [a.asleep, b.asleep] == [False, True]
    documents.limit = SIZE
    assert documents.trim() == [a]
    assert a.asleep
    assert a.lost == "its output"
    assert a.settings.step.filter.id == "median"  # the settings stay


def test_steps_are_worth_more_than_an_output() -> None:
    documents, (a, b, c) = opened("a", "b", "c", limit=3 * SIZE)
    request = give_output(b).request
    noisy = Image(np.zeros((100, 100), np.uint8), "noisy")
    b.history.push(Moment(noisy, "Mean", (request,)))
    give_output(c)
    assert (a.work, b.work, c.work) == (0, 2, 1)
    assert documents.trim() == [c]
    assert not b.asleep
    documents.limit = 0
    assert documents.trim() == [b]
    assert b.lost == "its steps and their outputs"


def test_a_picture_without_a_file_never_sleeps() -> None:
    documents = Documents(limit=0)
    pasted, read = document("pasted", path=False), document("read")
    for each in (pasted, read, document("front")):
        documents.add(each)
        documents.bring_to_front(each)
    documents.trim()
    assert [pasted.asleep, read.asleep] == [False, True]


def test_closed_pictures_sleep_first() -> None:
    documents, (a, b, c) = opened("a", "b", "c", limit=SIZE)
    documents.bring_to_front(b)
    documents.bring_to_front(c)
    documents.close(b)
    documents.trim()
    assert [a.asleep, b.asleep] == [False, True]


def test_a_picture_read_again_has_its_settings() -> None:
    documents, (a, b) = opened("a", "b", limit=0)
    give_output(a)
    documents.bring_to_front(b)
    documents.trim()
    history = a.history
    image = Image(np.zeros((100, 100), np.uint8), "a", Path("/pictures/a"))
    a.wake(image)
    assert (a.asleep, a.lost) == (False, "")
    assert a.history is history
    assert a.history.current.source is image
    assert a.settings.step.filter.id == "median"


def test_the_holder_of_an_input_is_found() -> None:
    documents, (_, b) = opened("a", "b")
    assert documents.holder_of(b.history.current.source) is b
    assert documents.holder_of(object()) is None


MIB = 2**20


def picture(mebibytes: int) -> Image:
    return Image.from_array(np.zeros((mebibytes, MIB), np.uint8), "p")


def test_every_place_is_counted_with_its_limit() -> None:
    source, output = picture(3), picture(2)
    result = Result(Request.create(source, "mean"), output, "cpu", "serial", (Stage("compute", 1),))
    shown: History[Image, Image] = History()
    shown.push(Moment(source, "Open", result=result))
    shown.outputs.keep(result)
    gallery, documents = Gallery(limit=100 * MIB), Documents(limit=50 * MIB)
    gallery.add(result)
    front = Document.of(picture(9), np.zeros((1, 1, 3), np.uint8))
    documents.add(front)
    documents.add(Document.of(picture(4), np.zeros((1, 1, 3), np.uint8)))
    documents.bring_to_front(front)
    assert describe_memory([shown, History()], gallery, documents).endswith(
        "Pictures: undo 5 of 2048 MiB, steps 5 of 1024 MiB, runs 5 of 100 MiB, "
        "pictures behind the one in front 4 of 50 MiB."
    )


@pytest.mark.slow
def test_about_shows_the_memory(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    load(qtbot, window, picture)
    run(qtbot, window)
    window.companions.show_about()
    text = dialog(qtbot, window, AboutDialog).findChild(QLabel, "memory").text()
    assert text.startswith("Memory: ")
    assert " MiB in all, with libraries and compiled code. Pictures: undo 0 of 2048 MiB" in text


def test_a_picture_with_settings_but_no_output_is_not_as_it_was_opened() -> None:
    each = document("a")
    each.note_state(())
    assert each.state == 0
    each.history.amend(settings=RunSettings(Step.create("nlm")))  # at a pause; a part is drawn
    each.note_state(())
    assert each.state == 1
    each.note_state({each.history.current.source})
    each.sleep()
    each.wake(Image.from_array(np.zeros((100, 100), np.uint8), "a"))
    each.note_state(())
    assert each.state == SAVED
