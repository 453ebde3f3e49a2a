"""The manual inside the program: pages, links, headings and the search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QTextDocument
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QTreeWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.tools.manual_window import ManualWindow, PageView
from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.work.background import Background
from kernelscope.teach import handbook, manual
from kernelscope.teach.handbook import pictures
from tests.gui.helpers import wait_until

NAMES = [name for names in handbook.SECTIONS.values() for name in names]


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[ManualWindow]:
    background = Background()
    window = ManualWindow(background)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    yield window
    background.close()


def view_of(window: ManualWindow) -> PageView:
    view = window.findChild(PageView, "manualPage")
    assert view is not None
    return view


def search(qtbot: QtBot, window: ManualWindow, text: str) -> None:
    field = window.findChild(QLineEdit, "manualSearch")
    field.setText(text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


@pytest.mark.slow
def test_pages_are_chosen_by_title(window: ManualWindow) -> None:
    titles = window.findChild(QTreeWidget, "manualPages")
    assert titles is not None
    sections = [titles.topLevelItem(number) for number in range(titles.topLevelItemCount())]
    items = [each.child(number) for each in sections for number in range(each.childCount())]
    assert len(items) == len(NAMES)
    for item, name in [*zip(items, NAMES, strict=True)][::7]:  # making a page takes 50 ms
        assert item is not None
        titles.setCurrentItem(item)
        assert window.page == name
        assert view_of(window).document().begin().text() == item.text(0)


def test_filters_are_in_the_page(window: ManualWindow) -> None:
    window.open_page("filters")
    assert "--filter-sigma" in view_of(window).toPlainText()
    assert "<!--" not in view_of(window).toPlainText()


@pytest.mark.slow
def test_every_link_between_pages_finds_its_heading(window: ManualWindow) -> None:
    links = {
        (target or name, anchor)
        for name in NAMES
        for target, anchor in re.findall(
            r"\]\(([\w-]*)(?:\.md)?#([\w-]+)\)", handbook.page(name, computed=False)
        )
    }
    assert len(links) > 40
    for target, anchor in sorted(links):
        if window.page != target:
            window.open_page(target)
        assert view_of(window).go_to_heading(anchor), f"{target}#{anchor}"
        assert manual.anchor_of(view_of(window).textCursor().block().text()) == anchor


def test_a_link_opens_the_page_at_its_heading(window: ManualWindow) -> None:
    window.follow(QUrl("filters.md#median"))
    assert window.page == "filters"
    assert view_of(window).textCursor().block().text() == "median"
    assert view_of(window).verticalScrollBar().value() > 0
    window.follow(QUrl("#borders"))
    assert view_of(window).textCursor().block().text() == "Borders"
    window.follow(QUrl("volumes.md"))
    assert window.page == "volumes"
    assert view_of(window).verticalScrollBar().value() == 0


def test_links_take_the_colour_of_another_theme(
    qtbot: QtBot, window: ManualWindow, stylist: Stylist
) -> None:
    """They stayed light blue, and drawings white, where the ground became white."""

    def colours() -> set[str]:
        found, block = set(), view_of(window).document().begin()
        while block.isValid():
            pieces = [each.fragment().charFormat() for each in cast(Iterable[Any], block)]
            found |= {each.foreground().color().name() for each in pieces if each.isAnchor()}
            block = block.next()
        return found

    window.open_page("index")
    bar = view_of(window).verticalScrollBar()
    for scheme in (Scheme.DARK, Scheme.LIGHT):
        bar.setValue(100)
        stylist.apply(Appearance(scheme))
        link = QApplication.palette().link().color().name()
        wait_until(qtbot, lambda link=link: colours() == {link})
        assert bar.value() == 100


def test_other_links_leave_the_window(
    window: ManualWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    window.follow(QUrl("https://example.org/"))
    window.follow(QUrl("../bench/README.md"))
    window.follow(QUrl("../bench/nothing.md"))
    assert opened == [
        "https://example.org/",
        QUrl.fromLocalFile(str(manual.FOLDER.parent / "bench" / "README.md")).toString(),
    ]
    assert "nothing.md" in window.findChild(QLabel, "manualNote").text()


@pytest.mark.slow
def test_search_goes_on_through_the_pages(qtbot: QtBot, window: ManualWindow) -> None:
    window.open_page("index")
    search(qtbot, window, "coalesced")
    first = window.page
    assert view_of(window).textCursor().selectedText() == "coalesced"
    found = {first}
    for _ in range(40):
        search(qtbot, window, "coalesced")
        found.add(window.page)
    assert found == {name for name in NAMES if "coalesced" in handbook.page(name, computed=False)}
    assert len(found) > 1


@pytest.mark.slow
def test_search_without_a_match_stays(qtbot: QtBot, window: ManualWindow) -> None:
    window.open_page("volumes")
    search(qtbot, window, "no page has these words")
    assert window.page == "volumes"
    assert window.findChild(QLabel, "manualNote").text() == "No page has this text."
    assert window.isVisible(), "Enter searches, and does not close"


@pytest.mark.slow
def test_worked_examples_follow_the_page(
    worked_examples: None, qtbot: QtBot, window: ManualWindow
) -> None:
    view, name = view_of(window), QUrl(f"{pictures.SCHEME}:mask/negative")
    kind = QTextDocument.ResourceType.ImageResource.value
    with qtbot.waitSignal(view.completed):
        window.open_page("filter-negative")
        gap = view.loadResource(kind, name)
        assert gap.pixelColor(gap.rect().center()).alpha() == 0
    made = view.loadResource(kind, name)
    assert made.size() != gap.size()
    assert "<img " in view.toHtml()
