"""The plot of a profile line."""

from __future__ import annotations

import numpy as np
from pytestqt.qtbot import QtBot

from kernelscope.gui.docks.measure_panel import ProfileView
from kernelscope.gui.model.displays import Units
from kernelscope.gui.model.measurements import ProfiledPicture, profile
from kernelscope.gui.model.regions import Interest, Shape


def test_a_line_beside_the_picture_has_a_name_and_no_curve(qtbot: QtBot) -> None:
    """PyQtGraph warned of a curve of gaps alone, when the plot was painted."""
    view = ProfileView()
    qtbot.addWidget(view)
    plot = view.plot
    picture = ProfiledPicture("input", np.full((4, 4, 1), 9, np.uint8))
    for y, curves in ((1, 1), (9, 0)):
        line = Interest("L1", Shape.LINE, ((0, y), (3, y)))
        view.show_profiles([profile(line, picture)], Units.STORED)
        assert len(plot.listDataItems()) == curves
        assert "L1" in plot.accessibleDescription()
