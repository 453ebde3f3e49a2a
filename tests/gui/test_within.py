"""Filtering only in a region: the switch, Live, undo and the settings of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from pytestqt.qtbot import QtBot

from kernelscope.engine.area import Area
from kernelscope.engine.region import Region
from kernelscope.gui.docks.parameter_panel import WithinBox
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import load, press


@pytest.fixture
def filtering(qtbot: QtBot, real_window: MainWindow, tmp_path: Path) -> MainWindow:
    """Return a window with noise, of which a median is shown live."""
    pixels = np.random.default_rng(1).integers(0, 256, (60, 80), np.uint8)
    path = tmp_path / "noise.png"
    Pillow.fromarray(pixels).save(path)
    load(qtbot, real_window, path)
    real_window.session.set_filter("median")
    exact(qtbot, real_window)
    return real_window


def exact(qtbot: QtBot, window: MainWindow) -> Image:
    """Return the output once it is that of the settings."""
    qtbot.waitUntil(lambda: window.session.freshness is Freshness.EXACT)
    result = window.session.subject.result
    assert result is not None
    return result.image


def filtered(window: MainWindow) -> np.ndarray:
    """Return which pixels differ from the input."""
    result, source = window.session.subject.result, window.session.subject.source
    assert result is not None
    return (result.image.planes != source.planes).any(2)


def test_the_switch_follows_the_chosen_region(qtbot: QtBot, filtering: MainWindow) -> None:
    box = filtering.findChild(WithinBox, "within")
    assert not box.isVisible()
    whole = exact(qtbot, filtering)
    regions = filtering.measuring.regions
    regions.add(Shape.ELLIPSE, ((10, 8), (50, 40)))
    assert box.text() == "Filter only in R1"
    assert box.isVisible()
    box.click()
    assert filtering.session.freshness is Freshness.OUT_OF_DATE
    limited = exact(qtbot, filtering)
    area = Area.parse("ellipse 10,8 50,40")
    assert filtering.session.require().step.within == area
    mask = area.mask(Region(0, 0, 60, 80))
    assert (limited.planes[mask] == whole.planes[mask]).all()
    assert not filtered(filtering)[~mask].any()
    press(qtbot, filtering, "Ctrl+Alt+R")
    regions.put(regions.all[0].moved(20, 10))
    exact(qtbot, filtering)
    assert filtering.session.require().step.within == Area.parse("ellipse 30,18 70,50")
    assert not filtered(filtering)[:18].any()
    assert filtered(filtering)[18:50, 30:70].any()
    regions.choose(-1)  # nothing is chosen: the filter stays where it was
    assert box.text() == "Filter only in a region"
    assert filtering.session.require().step.within == Area.parse("ellipse 30,18 70,50")
    box.click()
    assert (exact(qtbot, filtering).planes == whole.planes).all()


def test_a_line_is_no_area_and_the_next_session_has_no_limit(
    qtbot: QtBot, filtering: MainWindow
) -> None:
    box, regions = filtering.findChild(WithinBox, "within"), filtering.measuring.regions
    regions.add(Shape.LINE, ((1, 1), (9, 9)))
    assert not box.isVisible()
    regions.add(Shape.RECTANGLE, ((1, 1), (9, 9)))
    box.click()
    assert filtering.session.require().step.within is not None
    assert filtering.session.texts()["run"]["within"] == ""
