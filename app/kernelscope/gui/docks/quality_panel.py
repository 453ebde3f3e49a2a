"""Quality of input and output against a reference, and a histogram of both."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize, Qt
from PySide6.QtGui import QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QLabel, QMenu, QTreeWidgetItem, QWidget

from kernelscope.engine.result import Judgement
from kernelscope.gui.model import histogram_plot as model
from kernelscope.gui.model.comparison import Evaluation, Judged
from kernelscope.gui.model.display import PaneSide, name_of
from kernelscope.gui.model.histogram_plot import Curve, HeightScale, HistogramCurves
from kernelscope.gui.model.measurements import EARLIER
from kernelscope.gui.session.canvas_view import DRAWN, CanvasView
from kernelscope.gui.session.session import KIND, SETTINGS, Session
from kernelscope.gui.session.subject import COMPONENT, MOMENT_SHOWN, PART, REFERENCE, SHOWN
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.messages import save_text
from kernelscope.gui.widgets.parts import (
    RIGHT,
    ElidedLabel,
    as_table,
    dressed,
    in_column,
    in_row,
    switch,
    text_label,
    tool_button,
    tool_splitter,
)
from kernelscope.gui.widgets.tables import CopyableTree
from kernelscope.gui.widgets.theme import CHANNEL_STYLES, PICTURE_STYLES
from kernelscope.gui.work.background import Background, Later
from kernelscope.images.judging.metrics import Quality
from kernelscope.images.judging.pictures import Histogram, as_csv
from kernelscope.images.judging.whiteness import removed

if TYPE_CHECKING:
    from kernelscope.gui.docks.histogram_plot import HistogramPlot


_LEFT = 8  # pixels between the splitter and the legend


class HistogramView(QWidget):
    """The plot below its legend; `histograms` of “input” and “output”, as far as known."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("histograms")
        self.histograms: dict[str, Histogram] = {}
        self._is_earlier = False
        self.scale, self.by_channel = HeightScale.LINEAR, False
        self._is_stale = False
        self._later = Later(self._draw, self)
        self._legend = dressed(QLabel(self), "histogramLegend")
        self.words = dressed(
            ElidedLabel(self), "histogramReading", "Values at the cursor of the histogram"
        )
        theme.set_role(self.words, "note")
        head = in_row(self._legend, (self.words, 1), spacing=10)
        self._column = in_column(head, of=self, margins=(_LEFT, 0, 0, 0), spacing=2)
        session.when({DRAWN, KIND}, self._follow)
        stylist().restyled.connect(self._restyle)

    @functools.cached_property
    def plot(self) -> HistogramPlot:
        """The plot, made once it is seen: the window starts without PyQtGraph."""
        from kernelscope.gui.docks.histogram_plot import HistogramPlot

        plot = HistogramPlot(self)
        self._column.addWidget(plot, 1)
        plot.chosen.connect(lambda display: self._view.choose(display))
        plot.reset.connect(self.choose_automatic)
        plot.dropped.connect(self._draw)
        plot.pointed.connect(self._say)
        return plot

    def show_histograms(self, histograms: dict[str, Histogram]) -> None:
        self.histograms = histograms
        if histograms or self._has_plot:
            self._draw()

    def show_earlier(self, earlier: bool) -> None:
        """Say whether the output is one of other settings."""
        if earlier != self._is_earlier:
            self._is_earlier = earlier
            self._restyle()

    def set_scale(self, name: str) -> None:
        """Let heights grow with counts in another way; `name` is a value of `HeightScale`."""
        self.scale = HeightScale(name)
        self._follow()

    def set_by_channel(self, by_channel: bool) -> None:
        self.by_channel = by_channel
        self._follow()

    @property
    def has_channels(self) -> bool:
        return any(len(each.channels) > 1 for each in self.histograms.values())

    def choose_automatic(self) -> None:
        if self._view.display is not None:
            self._view.choose(None)

    @property
    def _has_plot(self) -> bool:
        return "plot" in vars(self)

    @property
    def _view(self) -> CanvasView:
        return self._session.subject.view

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._has_plot:
            self._draw()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._is_stale:  # it has come into view
            self._later.after_paint()

    def _restyle(self) -> None:
        if self._has_plot:
            self._show_legend()

    def _follow(self) -> None:
        """Follow, unless nobody sees it: a drag in a picture changes its display very often.

        A dock behind a tab counts as visible to Qt, but no part of it is.
        """
        if self.visibleRegion().isEmpty():
            self._is_stale = True
        else:
            self._draw()

    def _draw(self) -> None:
        self._is_stale = False
        view = self._view
        display = view.display
        if not self.histograms:
            self.plot.show_plot(None)
        elif not self.plot.is_held:  # while a handle is dragged, the axis stays under it
            axis = model.axis_for(self.histograms.values(), display)
            channels = self.by_channel and self.has_channels
            self.plot.show_plot(
                HistogramCurves.of(self.histograms, axis, self.scale, by_channel=channels)
            )
        self.plot.show_display(display, view.colour_map, whole=view.is_whole)
        self._show_legend()
        self._say()

    def _show_legend(self) -> None:
        from kernelscope.gui.docks.histogram_plot import pen_of

        curves: tuple[Curve, ...] = self.plot.plot.curves if self.plot.plot is not None else ()
        parts = []
        for number, curve in enumerate(curves):
            ink = pen_of(curve, number, self.palette()).color().name()  # the plot's may come later
            styles = CHANNEL_STYLES[number] if curve.channel else PICTURE_STYLES[curve.picture]
            name = curve.channel or self._named(curve.picture)
            parts.append(f'<span style="color: {ink}">{styles[1]} {name}</span>')
        if curves and curves[0].channel:
            parts.insert(0, f"{self._named(curves[0].picture).capitalize()}:")
        self._legend.setText("&nbsp;&nbsp; ".join(parts))

    def _named(self, picture: str) -> str:
        return f"{picture}, {EARLIER}" if self._is_earlier and picture == "output" else picture

    def _say(self) -> None:
        """Read off the handle that is moved or the value under the cursor; then the note."""
        plot, handle = self.plot.plot, self.plot.active_handle
        value, parts = self.plot.value_pointed_at, []
        if plot is not None:
            if handle is not None and self.plot.display is not None:
                parts.append(model.describe(self.plot.display, handle))
            elif value is not None:
                parts.append(plot.read(value))
            parts.append(plot.note())
        self.words.set_full_text(" · ".join(part for part in parts if part))


_COLUMNS = ("Figure", "Input", "Output", "The output is")
RESIDUAL = "Residual"
RANGE = "Range"
_FIGURES = ("PSNR", "SSIM", "MSE", "MAE")
_MORE_IS_BETTER = ("PSNR", "PSNR inside", "SSIM")
_HELP = {
    "PSNR": "Peak signal-to-noise ratio: more is better, equal pictures have ∞ dB",
    "SSIM": "Structural similarity: 1 for equal pictures",
    "MSE": "Mean squared difference: less is better",
    "MAE": "Mean absolute difference: less is better",
    "bias": "Mean difference: above 0 where it is too bright, 0 is best",
    "PSNR inside": "PSNR where the reference is not 0: of a head without the air around it",
    RANGE: "Black and white of the reference, whose distance is the peak of PSNR and SSIM",
    RESIDUAL: "Correlation of neighbours in what was removed: 0 for white noise alone, above where "
    "structure went with it or the noise is correlated, below where noise stayed",
}
NO_REFERENCE = "No reference: choose one, or add noise and use the output as input."
_CSV_FILES = "Tables (*.csv);;All files (*)"
_FIGURES_WIDE, _WIDE = 54, 96
"""Characters that the figures take, and from which on the histogram has room beside them."""


class QualityPanel(QWidget):
    """Figures of input and output against the reference, and one histogram of both.

    Each result is evaluated once, while the panel is seen (not behind a tab).
    """

    def __init__(self, session: Session, background: Background) -> None:
        super().__init__()
        self._session, self._background = session, background
        self.setObjectName("qualityPanel")

        self._figures, self._spread = self._make_figures(), self._make_histograms()
        sides = self._figures, self._spread
        views = tool_splitter(*sides, name="qualitySplitter", stretch=(2, 3))
        self._switch = switch(
            "Histogram", "qualityShowHistogram", tip="The histogram, in place of the figures"
        )
        self._switch.toggled.connect(self._arrange)
        in_column((views, 1), self._switch, of=self)
        self.subject: object = None
        """The content that is shown or being evaluated; it is not evaluated twice."""
        self._part: object = None
        self._is_seen = False
        self._show_judged("", "", Judged())
        self._show_histograms({})
        session.when({KIND, MOMENT_SHOWN, REFERENCE, COMPONENT}, self._fill)
        session.when({KIND, SETTINGS, SHOWN, PART}, self._mark)
        stylist().restyled.connect(self._arrange)

    def _make_figures(self) -> QWidget:
        self._reference = text_label("", "referenceName", plain=True, parent=self)
        tip = "Picture or volume that input and output are compared with"
        self._choose = tool_button("Reference", "referenceButton", None, "Reference", tip=tip)
        top = in_row((self._reference, 1))
        top.addWidget(self._choose, 0, Qt.AlignmentFlag.AlignTop)
        names = "qualityFigures", "Quality of input and output"
        self._table = as_table(CopyableTree(self.text), *names, _COLUMNS, right=(1, 2))
        self._table.header().setStretchLastSection(True)
        figures = QWidget(self)
        in_column(top, (self._table, 1), of=figures, margins=0)
        return figures

    def _make_histograms(self) -> QWidget:
        self.histograms = HistogramView(self._session, self)
        tip = "How heights grow with counts; rare values are seen in all but one"
        self._scale = choice_box("histogramScale", "Scale of the histogram", HeightScale, tip=tip)
        self._scale.currentTextChanged.connect(self.histograms.set_scale)
        self._channels = dressed(
            QCheckBox("&Channels", self),
            "histogramChannels",
            "Histogram of each channel",
            tip="A curve for each channel of the output",
        )
        self._channels.toggled.connect(self.histograms.set_by_channel)
        name, tip = "Picture whose levels the handles set", "Input and output have separate levels"
        tip += ": those of this one are set"
        self.side_box = choice_box("histogramSide", name, PaneSide, tip=tip)
        self.side_box.setCurrentText(PaneSide.OUTPUT)
        self.side_box.currentTextChanged.connect(
            lambda name: self._session.subject.view.choose_side(PaneSide(name))
        )
        self.side_box.hide()
        self._auto = tool_button(
            "Auto",
            "histogramAutomatic",
            self.histograms.choose_automatic,
            "Choose the contrast automatically",
            tip="Choose the contrast automatically (or double-click the histogram)",
        )
        self._session.when({DRAWN, KIND}, self._show_sides)
        self._save = tool_button(
            "Save…",
            "saveHistogram",
            self.save_histograms,
            "Save histograms",
            tip="Save both histograms as a table (CSV)",
        )
        buttons = in_row(self._auto, self._save)
        tools = in_column(self._scale, self.side_box, self._channels, buttons, 1)
        spread = QWidget(self)
        in_row((self.histograms, 1), tools, of=spread, margins=0)
        return spread

    def set_menu(self, menu: QMenu) -> None:
        self._choose.setMenu(menu)

    def set_seen(self, seen: bool) -> None:
        self._is_seen = seen
        self._fill()

    def _fill(self) -> None:
        subject = self._session.subject
        judged = subject.to_judge
        if subject.reference_note:
            self._reference.setText(subject.reference_note)
        if not self._is_seen or judged is None or self.subject == judged:
            return
        part, result, reference = judged
        correlation = result.correlation if result is not None else None
        self.subject = subject.judging = judged
        if part is not self._part:  # the figures are of another picture
            self._part = part
            self._show_judged("", "", Judged())
            self._show_histograms({})
        else:
            self._blank()
        title, origin = (name_of(reference.image), reference.origin) if reference else ("", "")
        if reference is not None:
            self._reference.setText(f"Comparing with {title}…")

        def show(evaluation: Evaluation) -> None:
            figures, histograms = evaluation
            if figures.after is not None:
                subject.keep_judgement(judged, Judgement(figures.before, figures.after))
            self._show_judged(title, origin, figures, correlation)
            self._show_histograms(histograms)
            self._mark()

        def failed(error: Exception) -> None:
            self.subject = None
            self._background.report(error)

        self._background.start("judge", subject.evaluation(), show, failed)

    def _blank(self) -> None:
        """Take figures of another output away until those of this one are there."""
        for row in range(self._table.topLevelItemCount()):
            item = self._table.topLevelItem(row)
            assert item is not None
            item.setText(3, "")
            for column in (1, 2):
                item.setFont(column, self._table.font())
                if item.text(column) != "–":
                    item.setText(column, "…")
        known = self.histograms.histograms
        self._show_histograms({name: known[name] for name in ("input",) if name in known})

    def _mark(self) -> None:
        """Name an output of other settings so, for as long as it is the one that was compared."""
        earlier = self._session.subject.is_stale
        for column, name in ((2, _COLUMNS[2]), (3, _COLUMNS[3])):
            title = name.replace("utput", "utput of earlier settings") if earlier else name
            self._table.headerItem().setText(column, title)
        self.histograms.show_earlier(earlier)

    def _show_judged(
        self, title: str, origin: str, judged: Judged, correlation: float | None = None
    ) -> None:
        """Show a comparison; `correlation`: of neighbours in the part that a denoiser removed."""
        if not title:
            self._reference.setText(self._session.subject.reference_note or NO_REFERENCE)
        elif judged.problem:
            self._reference.setText(f"{title}: {judged.problem}")
        else:
            self._reference.setText(f"Compared with {title} ({origin})")
        self._table.clear()
        before, after = _figures(judged.before), _figures(judged.after)
        if correlation is not None:
            after[RESIDUAL] = f"{correlation:.2f}"
        for name in before | after:
            texts = (each.get(name, "–") for each in (before, after))
            verdict = ""
            if name == RESIDUAL and correlation is not None:
                verdict = f"freed of {removed(correlation)}"
            item = QTreeWidgetItem([f"{name[0].upper()}{name[1:]}", *texts, verdict])
            item.setToolTip(0, _HELP[name])
            for column in (1, 2):
                item.setTextAlignment(column, RIGHT)
            if (
                name != RANGE
                and name in before
                and judged.before is not None
                and judged.after is not None
            ):
                gain = improvement(name, judged.before, judged.after)
                item.setText(3, _verdict(name, judged.before, gain))
                if gain:
                    column = 2 if gain > 0 else 1
                    font = item.font(column)
                    font.setBold(True)
                    item.setFont(column, font)
            self._table.addTopLevelItem(item)

    def _show_histograms(self, histograms: dict[str, Histogram]) -> None:
        self.histograms.show_histograms(histograms)
        self._save.setEnabled(bool(histograms))
        self._auto.setEnabled(bool(histograms))
        self._channels.setEnabled(self.histograms.has_channels)

    def _show_sides(self) -> None:
        """Ask for a picture where the two are drawn separately."""
        view = self._session.subject.view
        self.side_box.setVisible(bool(view.sides))
        if view.sides:
            with QSignalBlocker(self.side_box):
                self.side_box.setCurrentText(view.side)

    def save_histograms(self) -> None:
        text = as_csv(self.histograms.histograms)
        save_text(self, "Save Histograms", "histograms.csv", text, _CSV_FILES)

    def text(self) -> str:
        heads = self._table.headerItem()
        head = "\t".join(heads.text(column) for column in range(len(_COLUMNS)))
        return "\n".join(filter(None, (head, self._table.rows())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Show figures and histogram beside each other, or one of them where there is no room."""
        unit = self.fontMetrics().averageCharWidth()
        wide = self.width() >= _WIDE * unit
        self._figures.setMinimumWidth(_FIGURES_WIDE * unit if wide else 0)
        self._switch.setVisible(not wide)
        self._spread.setVisible(wide or self._switch.isChecked())
        self._figures.setVisible(wide or not self._switch.isChecked())

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 8 * metrics.height())


def _figures(quality: Quality | None) -> dict[str, str]:
    if quality is None:
        return dict.fromkeys(_FIGURES, "–")
    figures = dict(quality.figures())
    if quality.peak is not None:
        figures["PSNR"] = figures["PSNR"].removesuffix(f" ({quality.levels})")
        figures[RANGE] = f"{quality.black:.4g} to {quality.black + quality.peak:.4g}"
    return figures


def _attribute(name: str) -> str:
    return name.lower().replace(" ", "_")


def improvement(name: str, before: Quality, after: Quality) -> float:
    """Return by how much a figure became better; negative if it became worse."""
    first, second = (getattr(quality, _attribute(name)) for quality in (before, after))
    if first is None or second is None or first == second:  # also infinite ones
        return 0.0
    return float(second - first if name in _MORE_IS_BETTER else abs(first) - abs(second))


def _verdict(name: str, before: Quality, gain: float) -> str:
    if getattr(before, _attribute(name)) is None:
        return ""
    if gain == 0:
        return "equal"
    word, size = ("better", gain) if gain > 0 else ("worse", -gain)
    if math.isinf(size):
        return word
    match name:
        case "PSNR" | "PSNR inside":
            return f"{word} by {size:.2f} dB"
        case "SSIM":
            return f"{word} by {size:.4f}"
        case _:
            return f"{word} by {size:.4g}"
