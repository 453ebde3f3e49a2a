"""Plots are painted and drawn anew after their items were destroyed."""

from __future__ import annotations

import importlib

import pytest
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from kernelscope.bench.charts import Chart, Point, Series
from kernelscope.gui.docks.measure_panel import ProfileView
from kernelscope.gui.tools.bench_charts import ChartView


@pytest.mark.parametrize("kind", [ChartView, ProfileView])
def test_no_plot_keeps_an_index_of_its_items(qtbot: QtBot, kind: type[QWidget]) -> None:
    widget = kind()
    qtbot.addWidget(widget)
    widget.show()  # the window starts without plots
    found = [widget] if isinstance(widget, QGraphicsView) else widget.findChildren(QGraphicsView)
    (view,) = found
    assert view.scene().itemIndexMethod() is QGraphicsScene.ItemIndexMethod.NoIndex


def test_no_plot_builds_the_menus_of_pyqtgraph(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shiboken ended the process while such a menu was destroyed with its buttons."""
    built: list[object] = []
    module = importlib.import_module("pyqtgraph.graphicsItems.ViewBox.ViewBox")
    monkeypatch.setattr(module, "ViewBoxMenu", built.append)
    chart = ChartView()
    qtbot.addWidget(chart)
    profile = ProfileView()
    qtbot.addWidget(profile)
    assert profile.plot is not None
    points = (Point(1.0, 2.0, 1.0, 3.0, text="2"),)
    for groups in ((), ("one", "two")):
        chart.show_chart(Chart("Times", "size", "ms", (Series("serial", points, 0),), groups))
        assert not chart.getItem(0, 0).menuEnabled()
    assert not built


def test_a_plot_is_destroyed_as_soon_as_another_is_drawn(qtbot: QtBot) -> None:
    """A collection of garbage took it apart while Qt asked its parts for their sizes."""
    view = ChartView()
    qtbot.addWidget(view)
    points = (Point(1.0, 2.0, 1.0, 3.0, text="2"),)
    shown = Chart("Times", "size", "ms", (Series("serial", points, 0),), note="A note.")
    view.show_chart(shown)
    parts = [*view.ci.items, view.getItem(0, 0).titleLabel]
    assert len(parts) == 4
    assert all(map(isValid, parts))
    view.show_chart(shown)
    assert not any(map(isValid, parts))
    latest = [*view.ci.items]
    view.show_chart(None)
    assert not any(map(isValid, latest))


def test_a_long_title_leaves_the_legend_its_room(qtbot: QtBot) -> None:
    """At 843 pixels of the window the names of the legend were cut."""
    points = (Point(0, 2.0, 1.5, 2.5, text="2.00×"),)
    series = tuple(Series(f"GPU level of a long name {n}", points, n) for n in range(6))
    shown = Chart(
        "A custom mask of nine by nine cells: speed-up of computing alone", "", "Times as fast",
        series, groups=("4096×4096",),
    )  # fmt: skip
    view = ChartView()
    qtbot.addWidget(view)
    view.resize(503, 330)
    view.show_chart(shown)
    view.show()
    qtbot.waitExposed(view)
    legend = view.getItem(0, 1)
    qtbot.waitUntil(lambda: legend.sceneBoundingRect().right() <= view.width())
    assert view.getItem(0, 0).titleLabel.text.count("<br>") >= 1
