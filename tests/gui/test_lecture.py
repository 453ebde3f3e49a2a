"""The window of the lecture: pages, keys, controls, the projector and paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics, QTextDocument
from PySide6.QtWidgets import QApplication, QComboBox, QDialog, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import AppError
from kernelscope.gui.tools import lecture_window
from kernelscope.gui.tools.lecture_window import (
    WAITING,
    DrawingView,
    LectureWindow,
    Sheet,
    as_pdf,
    facts_of,
)
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.widgets.form import Form
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.teach.lecture.page import (
    Count,
    Demonstration,
    LectureSubject,
    MeasuredTime,
    NamedNumber,
    NumberOrigin,
)
from kernelscope.teach.lecture.pages import PAGES
from kernelscope.teach.lecture.parts import HEIGHT, WIDTH, Board
from tests.gui.helpers import wait_until
from tests.patience import PATIENCE

STRIPES = Image.from_array(np.tile(np.arange(0, 250, 10, dtype=np.uint8), (40, 2)), "stripes")
RUN = MeasuredTime("mean", "Mean 3×3 · GPU shared", "12.3 µs")


@pytest.fixture
def lecture(qtbot: QtBot) -> Iterator[LectureWindow]:
    background = Background()
    window = LectureWindow(background, lambda: STRIPES, lambda: (RUN,))
    qtbot.addWidget(window)
    window.open()
    qtbot.waitUntil(lambda: window.settled)
    yield window
    window.close()
    background.close()


def text(window: LectureWindow, name: str) -> str:
    return window.findChild(QLabel, name).text()


def go(qtbot: QtBot, window: LectureWindow, page: str) -> None:
    chooser = window.findChild(QComboBox, "lecturePages")
    chooser.setCurrentIndex(chooser.findData(page))
    qtbot.waitUntil(lambda: window.settled and window.view.drawing is not None)


def test_keys_turn_the_pages_and_stop_at_the_ends(qtbot: QtBot, lecture: LectureWindow) -> None:
    first, second, *_, last = PAGES
    assert lecture.page.id == first
    qtbot.keyClick(lecture, Qt.Key.Key_PageUp)
    assert lecture.page.id == first
    qtbot.keyClick(lecture, Qt.Key.Key_PageDown)
    assert lecture.page.id == second
    qtbot.keyClick(lecture.view, Qt.Key.Key_Left)
    qtbot.keyClick(lecture.view, Qt.Key.Key_Right)
    assert lecture.page.id == second
    go(qtbot, lecture, last)
    assert not lecture.findChild(QPushButton, "lectureNext").isEnabled()
    lecture.turn(1)
    assert lecture.page.id == last


def test_a_page_shows_text_numbers_and_the_open_picture(
    qtbot: QtBot, lecture: LectureWindow
) -> None:
    go(qtbot, lecture, "memory")
    assert text(lecture, "lectureTitle") == PAGES["memory"].title
    assert "stripes, 50×40" in text(lecture, "lectureAbout")
    facts = text(lecture, "lectureFacts")
    assert "from the launch plan" in facts
    assert "12.3 µs" in facts
    assert "measured in this session" in facts
    assert "<b>M</b>" in text(lecture, "lectureSources")
    drawing = lecture.view.drawing
    assert drawing is not None
    assert lecture.view.accessibleName() == drawing.title


@pytest.mark.slow
def test_a_control_changes_the_page_and_keeps_its_value(
    qtbot: QtBot, lecture: LectureWindow
) -> None:
    go(qtbot, lecture, "tiles")
    before, picture = text(lecture, "lectureFacts"), lecture.view.grab().toImage()
    with qtbot.waitSignal(lecture.shown):
        lecture.set_values(size=3)
    qtbot.waitUntil(lambda: lecture.settled)
    after = text(lecture, "lectureFacts")
    assert after != before
    assert lecture.view.grab().toImage() != picture
    go(qtbot, lecture, "memory")
    go(qtbot, lecture, "tiles")
    assert text(lecture, "lectureFacts") == after


def test_a_page_that_fails_does_not_hold_up_the_next(
    qtbot: QtBot, lecture: LectureWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(qtbot, lecture, "memory")
    began, may_end = Event(), Event()

    def fail(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
        began.set()
        may_end.wait(PATIENCE)
        raise AppError("It cannot be drawn.", "Go on.")

    pages = {**PAGES, "tiles": replace(PAGES["tiles"], show=fail)}
    monkeypatch.setattr(lecture_window, "PAGES", pages)
    errors: list[AppError] = []
    monkeypatch.setattr(lecture, "report", errors.append)
    chooser = lecture.findChild(QComboBox, "lecturePages")
    chooser.setCurrentIndex(chooser.findData("tiles"))
    assert lecture.view.accessibleName() == WAITING
    assert text(lecture, "lectureAbout") == "", "that was about another page"
    assert began.wait(PATIENCE)
    chooser.setCurrentIndex(chooser.findData("memory"))
    may_end.set()
    qtbot.waitUntil(lambda: lecture.settled and lecture.view.drawing is not None)
    assert lecture.page.id == "memory"
    assert len(errors) == 1


def test_a_page_that_is_being_made_has_no_numbers_of_the_one_before(
    qtbot: QtBot, lecture: LectureWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They came back when the size of text changed meanwhile."""
    go(qtbot, lecture, "memory")
    assert "measured in this session" in text(lecture, "lectureFacts")
    monkeypatch.setattr(lecture, "_refresh", lambda: None)
    chooser = lecture.findChild(QComboBox, "lecturePages")
    chooser.setCurrentIndex(chooser.findData("tiles"))
    lecture.projector.setChecked(True)
    QApplication.processEvents()
    assert "measured in this session" not in text(lecture, "lectureFacts")


@pytest.mark.slow
def test_the_projector_has_large_type_and_ends_with_escape(
    qtbot: QtBot, lecture: LectureWindow
) -> None:
    label = lecture.findChild(QLabel, "lectureText")
    usual = label.fontInfo().pixelSize()
    qtbot.keyClick(lecture, Qt.Key.Key_F11)
    assert lecture.isFullScreen()
    qtbot.waitUntil(lambda: label.fontInfo().pixelSize() > 1.3 * usual)
    qtbot.keyClick(lecture, Qt.Key.Key_Escape)
    assert not lecture.isFullScreen()
    assert lecture.isVisible()
    qtbot.waitUntil(lambda: label.fontInfo().pixelSize() == usual)


@pytest.mark.slow
def test_it_follows_the_size_of_text_and_the_colours(
    qtbot: QtBot, lecture: LectureWindow, stylist: Stylist
) -> None:
    stylist.apply(Appearance())
    go(qtbot, lecture, "tiles")
    heading, facts = (lecture.findChild(QLabel, name) for name in ("lectureTitle", "lectureFacts"))
    assert heading is not None
    assert facts is not None
    size, dark = heading.fontInfo().pointSizeF(), theme.quiet_text(lecture.palette()).name()
    wait_until(qtbot, lambda: dark in facts.text())
    stylist.apply(Appearance(Scheme.LIGHT, 1.5))
    wait_until(qtbot, lambda: heading.fontInfo().pointSizeF() > 1.4 * size)
    light = theme.quiet_text(lecture.palette()).name()
    assert light != dark
    assert light in facts.text()
    assert dark not in facts.text()


@pytest.mark.slow
def test_the_pdf_has_all_pages_and_a_folder_that_is_missing_is_reported(
    qtbot: QtBot, lecture: LectureWindow, tmp_path: Path
) -> None:
    path = tmp_path / "lecture.pdf"
    lecture.write_pdf(path)
    qtbot.waitUntil(lambda: text(lecture, "lectureAbout").startswith("Saved"))
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == len(PAGES)
    lecture.write_pdf(tmp_path / "none" / "lecture.pdf")
    qtbot.waitUntil(lambda: lecture.findChild(QDialog, "errorDialog") is not None)
    lecture.findChild(QDialog, "errorDialog").close()


def test_names_of_numbers_have_the_width_of_the_column(qapp: QApplication) -> None:
    """Beside a column of origins each name was broken into four lines."""
    subject = LectureSubject.of(STRIPES)
    for name in ("memory", "blocks", "tiles"):
        shown = PAGES[name].show(subject, PAGES[name].defaults())
        document = QTextDocument()
        document.setHtml(facts_of(shown.facts, QColor("grey")))
        line = QFontMetrics(document.defaultFont()).lineSpacing()
        document.setTextWidth(30 * line)
        assert document.size().height() < 2 * len(shown.facts) * (line + 4), name


@pytest.mark.slow
def test_pages_on_paper_have_their_values_and_text_of_the_usual_size(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of numbers were broken into four lines, which made all of the text smaller."""
    drawn: list[tuple[str, float, float]] = []
    monkeypatch.setattr(
        lecture_window,
        "_draw",
        lambda painter, document, x, y, scale=1.0: drawn.append(
            (document.toPlainText(), y + scale * document.size().height(), scale)
        ),
    )
    subject = LectureSubject.of(STRIPES)
    for page in PAGES.values():
        shown, words = page.show(subject, page.defaults()), page.described(page.defaults())
        drawn.clear()
        as_pdf([Sheet(page, words, shown.drawing, page.facts(shown, subject))], "")
        assert {scale for *_, scale in drawn} == {1.0}, page.id
        assert max(end for _, end, _ in drawn) <= 780.01
        assert any(text.startswith(words) for text, *_ in drawn)
    assert "Mask size 5 px · Card H100" in PAGES["memory"].described({"size": 5, "card": "H100"})


def test_a_page_opens_with_the_size_of_mask_that_is_set(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, lecture = window.session, window.companions.lecture
    monkeypatch.setattr(window.companions, "_level_in_front", lambda: "shared")
    form = lecture.findChild(Form, "lectureForm")
    for filter_id, values, shown in (
        ("median", {"size": 3}, 3),
        ("mask", {"mask": [[1] * 7] * 7}, 7),
        ("median", {"size": 31}, 7),  # more than the page can show
    ):
        session.set_filter(filter_id)
        session.set_values(filter_id, values)
        window.actions_["lecture"].trigger()
        assert lecture.page.id == "tiles"
        assert form.values["size"] == shown
        lecture.close()


@pytest.mark.slow
def test_counts_join_the_numbers_until_a_control_changes_or_the_reason_is_shown(
    qtbot: QtBot, lecture: LectureWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(*_: object) -> tuple[NamedNumber, ...]:
        raise AppError("No C++ compiler was found.", "Install one.")

    def answer(wanted: Count, subject: LectureSubject) -> tuple[NamedNumber, ...]:
        asked.append((wanted.parameters["size"], subject.title))
        return (NamedNumber("loads", "9.00", NumberOrigin.EMULATED),)

    monkeypatch.setattr(lecture_window, "count", refuse)
    go(qtbot, lecture, "tiles")
    button = lecture.findChild(QPushButton, "lectureCount")
    assert button.isVisible()
    button.click()
    qtbot.waitUntil(lambda: lecture.findChild(QDialog, "errorDialog") is not None)
    lecture.findChild(QDialog, "errorDialog").close()
    assert button.isEnabled()
    monkeypatch.setattr(lecture_window, "count", answer)
    button.setFocus()
    button.click()
    qtbot.waitUntil(lambda: "9.00" in text(lecture, "lectureFacts"))
    assert asked == [(9, "stripes")]
    assert "counted on the emulated GPU" in text(lecture, "lectureFacts")
    numbers = text(lecture, "lectureFacts")
    assert numbers.index("9.00") < numbers.index("from the launch plan"), "they are in view"
    assert lecture.focusWidget() is lecture.view, "the arrow keys still turn the pages"
    assert not button.isEnabled(), "the counts of these values are there"
    with qtbot.waitSignal(lecture.shown):
        lecture.set_values(size=5)
    assert "9.00" not in text(lecture, "lectureFacts")
    assert button.isEnabled()
    go(qtbot, lecture, "nlm")
    assert not button.isVisible()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_letters_of_drawings_grow_with_the_text(
    qtbot: QtBot, lecture: LectureWindow, page: str
) -> None:
    """And stay inside, apart from those beside them."""
    go(qtbot, lecture, page)
    drawing = lecture.view.drawing
    assert drawing is not None
    usual, large = (_texts(drawing.svg("#000", letters)) for letters in (1.0, 1.25))
    assert [text for *_, text in usual] == [text for *_, text in large]
    grown = [after[0] / before[0] for before, after in zip(usual, large, strict=True)]
    assert all(1 <= each <= 1.2500001 for each in grown)
    assert max(grown) == pytest.approx(1.25)
    assert sum(each > 1.1 for each in grown) >= len(grown) / 2
    places = re.findall(r'<text x="([^"]+)" [^>]*font-size="([^"]+)"', drawing.svg())
    alike = dict(zip(places, grown, strict=True))
    assert [alike[place] for place in places] == pytest.approx(grown), "lines of a column"


def _texts(svg: str) -> list[tuple[float, str]]:
    found = re.findall(r'<text [^>]*font-size="([^"]+)"[^>]*>([^<]*)</text>', svg)
    return [(float(size), text) for size, text in found]


def test_the_drawing_grows_with_the_text_of_the_projector(
    lecture: LectureWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It became smaller, beside larger text."""
    letters: list[float] = []
    monkeypatch.setattr(lecture_window, "paint_drawing", lambda *of: letters.append(of[-1]))
    lecture.view.grab()
    lecture.projector.setChecked(True)
    lecture.view.grab()
    assert (letters[0], letters[-1]) == (1.0, 1.25)
    assert lecture.view.minimumWidth() > WIDTH
    lecture.projector.setChecked(False)
    lecture.view.grab()
    assert letters[-1] == 1.0


def test_a_drawing_has_room_for_larger_letters(qtbot: QtBot) -> None:
    """Beside large text it became smaller: it scrolls where there is no room."""
    view = DrawingView()
    qtbot.addWidget(view)
    widths = []
    for scale in (1.0, 1.25, 1.5):
        view.show_letters(scale)
        widths.append(view.minimumWidth())
    assert widths[0] < widths[1] == WIDTH
    assert widths[2] == WIDTH * 1.5 / 1.25
    whole, board = view.minimumHeight(), Board("a short one")
    board.rectangle(0, 0, WIDTH, HEIGHT / 2, fill="#ff0000")
    view.show_drawing(board)
    least = view.minimumHeight()
    assert 0.5 * whole < least < 0.6 * whole, "its lower half is empty"
    view.resize(view.minimumSize())
    drawn = view.grab().toImage()
    assert drawn.pixelColor(400, least - 10) == QColor("#ff0000"), "the other has all of the room"
