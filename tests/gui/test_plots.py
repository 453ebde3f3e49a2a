"""Plots are painted after their items were destroyed."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.docks.profile_view import ProfileView
from kernelscope.gui.tools.bench.chart_view import ChartView


@pytest.mark.parametrize("kind", [ChartView, ProfileView])
def test_no_plot_keeps_an_index_of_its_items(qtbot: QtBot, kind: type[QWidget]) -> None:
    widget = kind()
    qtbot.addWidget(widget)
    found = [widget] if isinstance(widget, QGraphicsView) else widget.findChildren(QGraphicsView)
    (view,) = found
    assert view.scene().itemIndexMethod() is QGraphicsScene.ItemIndexMethod.NoIndex
