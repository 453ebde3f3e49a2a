"""The debug console: levels, threads, bounds, colours, and its handler's life."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QAbstractButton, QComboBox, QPlainTextEdit
from pytestqt.qtbot import QtBot

from kernelscope.engine.context import RunLog
from kernelscope.gui.docks import console as console_module
from kernelscope.gui.docks.console import Console, ConsoleHandler
from kernelscope.gui.widgets import theme
from tests.gui.helpers import contrast

LOGGER = logging.getLogger("kernelscope.engine.something")


@pytest.fixture
def console(qtbot: QtBot) -> Iterator[Console]:
    console = Console()
    qtbot.addWidget(console)
    console.resize(600, 300)
    console.show()
    yield console
    console.close()


def view_of(console: Console) -> QPlainTextEdit:
    view = console.findChild(QPlainTextEdit, "consoleText")
    assert view is not None
    return view


def shown(console: Console) -> list[str]:
    console.text()  # takes in the newest lines
    return view_of(console).toPlainText().splitlines()


def show_from(console: Console, level: str) -> None:
    console.findChild(QComboBox, "consoleLevel").setCurrentText(level)


def test_records_have_time_level_and_text(console: Console) -> None:
    LOGGER.info("hello %s", "world")
    (line,) = shown(console)
    time, level, text = line.split("  ", 2)
    assert len(time) == len("12:34:56.789")
    assert (level, text.strip()) == ("INFO", "hello world")


def test_durations_are_shown_as_the_engine_logs_them(console: Console) -> None:
    RunLog().add("compute", 0.0123456)
    assert "DEBUG" in console.text()
    assert console.text().endswith("compute: 12.346 ms")


def test_records_arrive_in_order_from_any_thread(qtbot: QtBot, console: Console) -> None:
    def work() -> None:
        for number in range(200):
            LOGGER.info("number %d", number)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: view_of(console).blockCount() == 200)
    assert [int(line.split()[-1]) for line in shown(console)] == list(range(200))


def test_the_level_filter_hides_and_brings_back(console: Console) -> None:
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        LOGGER.log(level, "x")
    assert len(shown(console)) == 4
    show_from(console, "Warning")
    assert [line.split()[1] for line in shown(console)] == ["WARNING", "ERROR"]
    LOGGER.info("y")
    LOGGER.error("z")
    assert len(shown(console)) == 3
    assert len(console.text().splitlines()) == 6
    show_from(console, "Debug")
    assert len(shown(console)) == 6


def test_tracebacks_are_shown_whole(console: Console) -> None:
    try:
        raise ValueError("boo")
    except ValueError:
        LOGGER.exception("It failed")
    show_from(console, "Error")
    assert shown(console)[-1] == "ValueError: boo"
    assert "Traceback (most recent call last):" in shown(console)


@pytest.fixture
def most_lines(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(console_module, "MAX_LINES", 100)
    return 100


def test_the_log_is_bounded(most_lines: int, console: Console) -> None:
    for number in range(most_lines + 10):
        LOGGER.debug("%d", number)
    lines = console.text().splitlines()
    assert len(lines) == view_of(console).blockCount() == most_lines
    assert lines[0].endswith(" 10")
    assert shown(console) == lines


def test_it_follows_unless_the_user_scrolled_up(qtbot: QtBot, console: Console) -> None:
    bar = view_of(console).verticalScrollBar()
    for number in range(100):
        LOGGER.info("%d", number)
    console.text()
    assert bar.value() == bar.maximum() > 0
    bar.setValue(5)
    LOGGER.info("more")
    console.text()
    assert bar.value() == 5
    bar.setValue(bar.maximum())
    LOGGER.info("more")
    console.text()
    assert bar.value() == bar.maximum()


def test_copy_save_and_clear(
    qtbot: QtBot, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = []
    monkeypatch.setattr(
        console_module, "save_text", lambda parent, title, name, text: saved.append(text)
    )
    LOGGER.debug("one")
    LOGGER.error("two")
    show_from(console, "Error")
    lines = shown(console)

    def click(name: str) -> None:
        qtbot.mouseClick(console.findChild(QAbstractButton, name), Qt.MouseButton.LeftButton)

    click("consoleCopy")
    click("consoleSave")
    assert QGuiApplication.clipboard().text().splitlines() == lines
    assert saved == [lines[0] + "\n"]
    click("consoleClear")
    assert console.text() == ""
    assert shown(console) == []


def handlers() -> list[logging.Handler]:
    return [h for h in logging.getLogger("kernelscope").handlers if isinstance(h, ConsoleHandler)]


@pytest.mark.parametrize("how", ["close", "deleteLater"])
def test_the_handler_goes_with_the_console(qtbot: QtBot, how: str) -> None:
    logger = logging.getLogger("kernelscope")
    level = logger.level
    console = Console()
    assert len(handlers()) == 1
    assert logger.level == logging.DEBUG
    getattr(console, how)()
    qtbot.waitUntil(lambda: not handlers())
    assert logger.level == level
    LOGGER.info("nobody listens")
    if how == "close":
        console.deleteLater()


def test_a_record_that_cannot_be_formatted_does_no_harm(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    LOGGER.info("%d", "not a number")
    LOGGER.info("fine")
    assert len(shown(console)) == 1


LIGHT = QPalette(QColor("#efefef"))
DARK = QPalette(QColor("#2b2b2b"))


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_readable_in_light_and_dark(qtbot: QtBot, palette: QPalette) -> None:
    base = palette.color(QPalette.ColorRole.Base)
    text = palette.color(QPalette.ColorRole.Text)
    window = palette.color(QPalette.ColorRole.Window)
    for colour in (theme.error_text, theme.warning_text, theme.quiet_text):
        assert contrast(colour(palette), base) >= 4.5
    assert contrast(theme.error_text(palette), window) >= 4.5
    assert contrast(text, theme.error_fill(palette)) >= 4.5
