"""Charts of the bench as files, PNG and SVG, with or without a screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QBuffer, QRectF, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication

from kernelscope.base.errors import AppError
from kernelscope.bench import Report
from kernelscope.bench.charts import Chart, Plot, all_whole, chart, choices
from kernelscope.bench.output import write
from kernelscope.gui.tools.bench.chart_view import ChartView
from kernelscope.gui.tools.bench.painters import light

_FILE_SIZE = QSize(1200, 720)
_SCALE = 2  # pixels of a PNG for each pixel of the drawing, in x and y


def save_chart(shown: Chart, path: Path) -> None:
    """Draw a chart, dark on white, into a PNG or, by the name's ending, an SVG."""
    view = ChartView(light())
    view.resize(_FILE_SIZE)
    view.show_chart(shown)
    drawn = _as_svg(view, shown.title) if path.suffix.lower() == ".svg" else _as_png(view)
    view.show_chart(None)  # destroys the plot in Qt's order
    write(path, drawn)


def _as_svg(view: ChartView, title: str) -> bytes:
    buffer = QBuffer()
    target = QSvgGenerator()
    target.setOutputDevice(buffer)
    target.setResolution(view.logicalDpiX())
    target.setSize(_FILE_SIZE)
    target.setViewBox(QRectF(view.rect()))
    target.setTitle(title)
    painter = QPainter(target)
    view.paint(painter)
    painter.end()
    return bytes(buffer.data().data())


def _as_png(view: ChartView) -> bytes:
    image = QImage(_FILE_SIZE * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.paint(painter)
    painter.end()
    buffer = QBuffer()
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def create_drawer() -> Any:
    """Return an application to keep while charts are drawn into files; it needs no screen."""
    return QApplication.instance() or QApplication(["kernelscope", "-platform", "offscreen"])


def export(
    report: Report, folder: Path, announce: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """Draw every plot of a report into a folder, as PNG and SVG; return the files.

    Plots compare whole runs, or computing alone if some rows have nothing else. `announce` is
    called before each plot with the progress: ``3/40  Drawing speed-up…``.
    """
    app = create_drawer()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AppError(f"“{folder}” cannot be created: {error.strerror}.") from None
    paths = []
    waiting = all_whole(report.rows)
    plots = [(plot, choice) for plot in Plot for choice in choices(plot, report.rows)]
    for number, (plot, choice) in enumerate(plots, start=1):
        announce(f"{number}/{len(plots)}  Drawing {plot}, {choice}")
        title = f"{plot} {choice}".lower().replace("×", "x")
        name = re.sub(r"\W+", "-", title).strip("-")
        for suffix in (".png", ".svg"):
            path = folder / f"{name}{suffix}"
            save_chart(chart(plot, choice, report.rows, waiting=waiting), path)
            paths.append(path)
    del app
    return paths
