"""The memory of the pictures that a window keeps, as *Help > About* shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Stage
from kernelscope.gui.model.documents import Document, Documents, describe_memory
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.history import History, Moment
from kernelscope.gui.widgets.messages import AboutDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import dialog, load, run

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
