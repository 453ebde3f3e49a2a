"""Regions and lines as a table: figures in input, output and reference, and typed places."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from PySide6.QtCore import QModelIndex, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPalette, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.gui.model.display import Units
from kernelscope.gui.model.measurements import (
    COLUMNS,
    Profile,
    RegionRow,
    as_csv,
    named,
    profiles_as_csv,
    texts_of,
)
from kernelscope.gui.model.regions import AS_DRAWN, ITSELF, Against, Axes, Interest, Regions, Shape
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import WholeBox, choice_box
from kernelscope.gui.widgets.layouts import FoldingRow
from kernelscope.gui.widgets.messages import save_text
from kernelscope.gui.widgets.parts import (
    RIGHT,
    ElidedLabel,
    as_table,
    dressed,
    in_column,
    in_row,
    label_of,
    look_at_every_item,
    refill,
    swatch,
    text_label,
    tool_button,
    tool_splitter,
)
from kernelscope.gui.widgets.tables import CopyableTree
from kernelscope.gui.widgets.theme import (
    PICTURE_STYLES,
    channel_colour,
    dye_colour,
    picture_colour,
)


class ProfileView(QWidget):
    """Levels along a line over the distance from its first end, for each picture."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("profile")
        self.profiles: tuple[Profile, ...] = ()
        self.units = Units.STORED
        self._heading = dressed(ElidedLabel(self), "profileHeading")
        self._legend = dressed(QLabel(self), "profileLegend")
        copy = tool_button(
            "Copy", "copyProfile", self.copy, "Copy the profile, as CSV with all digits"
        )
        save = tool_button(
            "Save…", "saveProfile", self.save, "Save the profile as CSV with all digits"
        )
        head = in_row(self._legend, (self._heading, 1), copy, save, spacing=8)
        self._column = in_column(head, of=self, margins=0, spacing=2)
        stylist().restyled.connect(self._restyle)

    @functools.cached_property
    def plot(self) -> Any:
        """The plot, made once it is seen: the window starts without PyQtGraph."""
        import pyqtgraph as pg

        name = "Levels along the line"
        plot = dressed(pg.PlotWidget(self, enableMenu=False), "profilePlot", name)
        look_at_every_item(plot)
        plot.setMouseEnabled(x=False, y=False)
        plot.hideButtons()
        plot.setMinimumSize(180, 60)
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do in it
        self._column.addWidget(plot, 1)
        return plot

    def show_profiles(self, profiles: Sequence[Profile], units: Units) -> None:
        self.profiles, self.units = tuple(profiles), units
        if profiles or "plot" in vars(self):
            self._draw()

    def csv(self) -> str:
        return profiles_as_csv(self.profiles, self.units)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.csv())

    def save(self) -> None:
        name = self.profiles[0].line.name if self.profiles else "profile"
        save_text(self, "Save Profile", f"{name}.csv", self.csv(), _CSV_FILES)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if "plot" not in vars(self):
            self._draw()

    def _restyle(self) -> None:
        if "plot" in vars(self):
            self._draw()

    def _draw(self) -> None:
        import pyqtgraph as pg

        palette, quiet = self.palette(), theme.quiet_text(self.palette())
        plot = self.plot
        plot.clear()
        plot.setBackground(palette.color(QPalette.ColorRole.Base))
        for side in ("left", "bottom"):
            plot.getAxis(side).setPen(quiet)
            plot.getAxis(side).setTextPen(quiet)
            plot.getAxis(side).enableAutoSIPrefix(False)
        plot.getAxis("left").setWidth(52)
        text = brief = ""
        if self.profiles:
            line = self.profiles[0].line
            unit = self.profiles[0].unit
            length = f"{self.profiles[0].length:.4g} {unit}"
            text = (
                f"{line.name}: {length.replace('px', 'pixels')} from the first end; "
                f"units {self.units}, linear interpolation"
            )
            brief = f"{line.name}, {length}"
        self._heading.set_full_text(text, brief)
        self._legend.setText(self._legend_text())
        plot.setAccessibleDescription(text)
        for profile in self.profiles:
            style, _ = PICTURE_STYLES[profile.picture]
            values = profile.values(self.units)
            if not len(profile.inside):
                continue  # PyQtGraph would look for the least and the greatest of nothing
            for number, channel in enumerate(profile.channels):
                pen = pg.mkPen(self._ink(profile, channel), width=1.5, style=style)
                plot.plot(profile.distances, values[:, number], pen=pen, connect="finite")

    def _ink(self, profile: Profile, channel: str = "") -> QColor:
        if profile.ink:
            return dye_colour(profile.ink, self.palette())
        if len(profile.channels) > 1:
            return channel_colour(channel, self.palette())
        return picture_colour(profile.picture, self.palette())

    def _legend_text(self) -> str:
        quiet = theme.quiet_text(self.palette())
        parts = []
        for profile in self.profiles:
            grey = len(profile.channels) == 1
            ink = self._ink(profile) if grey else quiet
            _, dash = PICTURE_STYLES[profile.picture]
            picture = named(profile.picture, profile.made)
            text = " ".join(filter(None, (dash, picture, profile.ink and profile.channel)))
            parts.append(f'<span style="color: {ink.name()}">{escape(text)}</span>')
        return "&nbsp;&nbsp; ".join(parts)


_HELP = {
    "Samples": "Number of samples: pixels times channels. A pixel counts if its centre is within.\n"
    "Along a line, samples are linearly interpolated",
    "SD": "Standard deviation of a sample, with n − 1 in the denominator",
    "PSNR": "Peak signal-to-noise ratio against the reference, within the region",
    "SNR": "Signal-to-noise ratio over a region without signal, (mean − mean′) / SD′, without the\n"
    "offset of a camera; if Rician, mean / (SD′ / 0.655). Over itself, mean / SD of each region:\n"
    "there the offset counts as signal, so that an empty background has a high SNR as well",
    "CNR": "Contrast-to-noise ratio against the selected region:\n"
    "|mean − mean′| / √(SD² + SD′²), the noise of both regions",
}
_RATIOS = "PSNR", "SNR", "CNR"
_EMPTY = "Draw a region (Ctrl+Alt+R) or a line (Ctrl+Alt+L) into a picture or slice, or press Add."
_CSV_FILES = "Tables (*.csv);;All files (*)"
_REGION = Qt.ItemDataRole.UserRole
_NONE, _ITSELF = ("none", ""), ("itself", ITSELF)


def _fields(axes: Axes, *, line: bool) -> tuple[tuple[str, str], ...]:
    """Return labels of the fields for a box or for the ends of a line, and their names."""
    across, down = axes.across, axes.down
    if line:
        return (
            (across, f"First pixel, {across},"),
            (down, f"First pixel, {down},"),
            (f"to {across}", f"Last pixel, {across},"),
            (down, f"Last pixel, {down},"),
        )
    firsts = (across, f"First {across}"), (down, f"First {down}")
    return *firsts, ("w", "Width"), ("h", "Height")


_RICIAN = (
    "The background of a magnitude image, as of MRI, follows Rayleigh's law:\n"
    "its SD is 0.655 of the noise, so the noise is SD / 0.655, and its mean is not subtracted"
)


class MeasurePanel(QWidget):
    """The figures of all regions of pictures, or of volumes, and the place of the chosen one."""

    wanted = Signal()  # the figures are needed: the panel came into view, or CNR has another region
    compared = Signal(object)  # `Against`: the user chose what regions are compared with

    def __init__(self, regions: Regions) -> None:
        super().__init__()
        self.setObjectName("measurePanel")
        self.units = Units.STORED
        self.regions = regions
        self.rows: tuple[RegionRow, ...] = ()
        self.axes_of: Callable[[Interest], Axes] = lambda _: AS_DRAWN
        self._names: list[str] = []  # of the regions that are offered
        self._hint = text_label(_EMPTY, "measureHint", "note", parent=self)
        self._table = self._make_table()
        self.profile = ProfileView(self)
        self._tools = self._make_tools()
        sides = self._make_figures(), self.profile
        split = tool_splitter(*sides, name="measureSplit", stretch=(1, 1))
        in_column(self._tools, (split, 1), self._hint, of=self)
        self.show_regions()

    # --- building ---

    def _make_table(self) -> CopyableTree:
        titles = [*COLUMNS, "CNR"]
        table = as_table(
            CopyableTree(self.text),
            *("measureTable", "Figures of the regions", titles),
            right=range(3, len(titles)),
        )
        table.header().setStretchLastSection(False)
        for column, title in enumerate(titles):
            table.headerItem().setToolTip(column, _HELP.get(title, ""))
        table.currentItemChanged.connect(self._on_current)
        return table

    def _make_tools(self) -> FoldingRow:
        self.add_menu = QMenu(self)
        tip = "Add a region in the middle of the view"
        self._add = tool_button("Add", "addRegion", None, tip, menu=self.add_menu)
        self._name = dressed(QLineEdit(self), "regionName", "Name of the region")
        self._name.setMaximumWidth(12 * self.fontMetrics().averageCharWidth())
        self._name.editingFinished.connect(self._on_named)
        self._boxes = [self._make_box(name) for name in "XYWH"]
        self._labels = [QLabel(self) for _ in self._boxes]
        self._remove = tool_button(
            "Delete", "removeRegion", lambda: self.regions.remove(), "Delete the selected region"
        )
        self._size = dressed(
            QLabel(self),
            "regionSize",
            tip="Size of the region, or length of the line, in the slice",
        )
        theme.set_role(self._size, "note")
        name = "Region that CNR compares with"
        self._against = choice_box("cnrRegion", name, (), self._compare, tip=_HELP["CNR"])
        name = "Region whose noise SNR takes"
        self._background = choice_box("snrRegion", name, (), self._compare, tip=_HELP["SNR"])
        self._rician = dressed(QCheckBox("Rician", self), "snrRician", "Rician noise", tip=_RICIAN)
        self._rician.toggled.connect(self._compare)
        self._copy = tool_button("Copy", "copyMeasurements", self.copy, "Copy the table (Ctrl+C)")
        self._save = tool_button(
            "Save…", "saveMeasurements", self.save, "Save the table with all digits"
        )
        places: list[QWidget] = []
        for label, box in zip(self._labels, self._boxes, strict=True):
            label.setBuddy(box)
            places += label, box
        first = (self._add, self._name, self._remove)
        return FoldingRow(first, (*places, self._size), self, spacing=4)

    def _make_figures(self) -> QWidget:
        """Return the table and its controls; the plot beside them is as high as both."""
        figures = QWidget(self)
        groups = (
            (label_of("SNR &over", self._background), self._background, self._rician),
            (label_of("CNR against", self._against), self._against),
            (self._copy, self._save),
        )
        self._groups = [QWidget(figures) for _ in groups]
        for group, widgets in zip(self._groups, groups, strict=True):
            in_row(*widgets, of=group, margins=0, spacing=4).addStretch(1)
        self._grid = QGridLayout(figures)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        self._figures = figures
        self._cells: tuple[tuple[int, int, int, int], ...] = ()
        return figures

    def _arrange(self) -> None:
        """Put the controls beside the table where it leaves room, or else over it."""
        widths = [group.minimumSizeHint().width() + 4 for group in self._groups]
        width = self._figures.width()
        self._figures.setMinimumWidth(max(widths[0] + widths[1], widths[2]))
        cells: tuple[tuple[int, int, int, int], ...]
        if self._table.header().length() + 2 * self._table.frameWidth() + max(widths) <= width:
            cells = (0, 1, 1, 1), (1, 1, 1, 1), (2, 1, 1, 1), (0, 0, 4, 1)
        elif sum(widths) <= width:
            cells = (0, 0, 1, 1), (0, 1, 1, 1), (0, 2, 1, 1), (3, 0, 1, 4)
        else:
            cells = (0, 0, 1, 1), (0, 1, 1, 1), (1, 0, 1, 2), (3, 0, 1, 4)
        if cells == self._cells:
            return
        self._cells, table = cells, cells[-1]
        for widget, cell in zip((*self._groups, self._table), cells, strict=True):
            self._grid.addWidget(widget, *cell)
        for line in range(4):
            self._grid.setRowStretch(line, int(line == 3))
            self._grid.setColumnStretch(line, int(line == (0 if table[2] > 1 else 3)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _make_box(self, name: str) -> WholeBox:
        box = dressed(WholeBox(self), f"region{name}")
        box.setMaximumWidth(10 * self.fontMetrics().averageCharWidth())
        box.valueChanged.connect(lambda _: self._on_typed())
        return box

    def add_tool(self, tool: QWidget) -> None:
        """Add a control that acts on the selected region, beside its name."""
        self._tools.append(tool)
        QWidget.setTabOrder(self._remove, tool)

    # --- regions ---

    @property
    def against(self) -> Against:
        """The regions that CNR and SNR compare others with."""
        cnr, background = (box.currentData() or "" for box in (self._against, self._background))
        return Against(cnr, background, self._rician.isChecked())

    def _compare(self, *_: object) -> None:
        self._enable_rician()
        self.compared.emit(self.against)
        self.wanted.emit()

    def _enable_rician(self) -> None:
        self._rician.setEnabled(self.against.background not in ("", ITSELF))

    def show_against(self, against: Against) -> None:
        with QSignalBlocker(self._rician):
            self._rician.setChecked(against.rician)
        self._offer(against)

    def _offer(self, against: Against) -> None:
        """Offer the regions; one that was renamed stays chosen."""
        names = [each.name for each in self.regions.all if each.shape is not Shape.LINE]
        renamed = (
            dict(zip(self._names, names, strict=False)) if len(self._names) == len(names) else {}
        )
        chosen = [
            renamed.get(name, name) if name not in names else name
            for name in (against.cnr, against.background)
        ]
        self._names = names
        own = [(name, name) for name in names]
        refill(self._against, (_NONE, *own), chosen[0])
        refill(self._background, (_NONE, _ITSELF, *own), chosen[1])
        self._enable_rician()
        if chosen != [against.cnr, against.background] and renamed:
            self.compared.emit(self.against)

    def show_regions_of(self, regions: Regions) -> None:
        self.regions = regions
        self.show_rows((), "")
        self.show_regions()

    def show_size(self, size: str) -> None:
        """Show the size of the selected region in other units than pixels; empty for none."""
        self._size.setText(size)
        self._size.setVisible(bool(size))

    def show_regions(self) -> None:
        """Show the place of the selected region, and offer all of them for CNR."""
        chosen = self.regions.chosen
        self._offer(self.against)
        names = self._names
        for widget in (self._name, self._remove, *self._boxes):
            widget.setEnabled(chosen is not None)
        self._against.setEnabled(len(names) > 1)
        self._background.setEnabled(bool(self.regions.all))  # lines have SNR
        self._show_place(chosen)
        if chosen is None or not self._name.hasFocus():
            self._name.setText(chosen.name if chosen is not None else "")
        self.profile.setVisible(chosen is not None and chosen.shape is Shape.LINE)
        self._hint.setVisible(not self.regions.all)
        self._hint.setText(_EMPTY)
        self._mark()

    def _show_place(self, chosen: Interest | None) -> None:
        is_line = chosen is not None and chosen.shape is Shape.LINE
        axes = self.axes_of(chosen) if chosen is not None else AS_DRAWN
        placed = axes.turned(chosen) if chosen is not None else None
        left, top, right, bottom = placed.box if placed is not None else (0, 0, 1, 1)
        values = left, top, right - left, bottom - top
        if is_line and placed is not None:
            (x, y), (end_x, end_y) = placed.corners
            values = x, y, end_x, end_y
        names = _fields(axes, line=is_line)
        fields = zip(names, self._labels, self._boxes, values, strict=True)
        for number, ((name, help_), label, box, value) in enumerate(fields):
            label.setText(name)
            with QSignalBlocker(box):
                box.setRange(1 if number > 1 and not is_line else -999_999, 999_999)
                box.setValue(value)
            of = "of the line" if is_line else "of the region"
            box.setAccessibleName(f"{help_} {of} in pixels")
            sliced = chosen is not None and chosen.plane is not None
            counted = "voxels, as the cursor counts them" if sliced else "pixels of the input"
            box.setToolTip(f"{help_} in {counted}")

    def _on_named(self) -> None:
        self.regions.rename(self._name.text())
        chosen = self.regions.chosen
        self._name.setText(chosen.name if chosen is not None else "")

    def _on_typed(self) -> None:
        chosen = self.regions.chosen
        if chosen is None:
            return
        first, second, third, fourth = (box.value() for box in self._boxes)
        axes = self.axes_of(chosen)
        placed = axes.turned(chosen)
        if chosen.shape is Shape.LINE:
            placed = placed.with_corner(0, (first, second)).with_corner(1, (third, fourth))
        else:
            placed = placed.with_box(first, second, third, fourth)
        self.regions.put(axes.turned(placed))

    def _on_current(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            names = [region.name for region in self.regions.all]
            name = item.data(0, _REGION)
            self.regions.choose(names.index(name) if name in names else -1)

    # --- figures ---

    def show_rows(
        self, rows: Sequence[RegionRow], note: str, profiles: Sequence[Profile] = ()
    ) -> None:
        """Show figures, the profiles of the selected line, and a note where they need one."""
        self.rows = tuple(rows)
        self.profile.show_profiles(profiles, self.units)
        at = self._table.currentIndex().row()
        with QSignalBlocker(self._table):
            self._table.clear()
            colours = {region.name: region for region in self.regions.all}
            previous = ""
            for row, texts in zip(self.rows, texts_of(self.rows, self.units), strict=True):
                first = "" if row.region == previous else row.heading
                previous = row.region
                picture = named(row.picture, row.made)
                item = QTreeWidgetItem([first, picture, row.channel, *texts])
                item.setData(0, _REGION, row.region)
                item.setToolTip(1, row.made.settings)
                if row.ink:
                    item.setIcon(2, swatch(row.ink))
                if first and row.region in colours:
                    item.setIcon(0, swatch(colours[row.region].colour))
                if row.area is not None:
                    item.setToolTip(3, f"{row.area:.5g} {row.area_unit}")
                for column, (title, text) in enumerate(zip(_RATIOS, texts[5:], strict=True), 8):
                    if text == "–":
                        item.setToolTip(column, self._reason(row, title))
                for column in range(3, 11):
                    item.setTextAlignment(column, RIGHT)
                self._table.addTopLevelItem(item)
            if (again := self._table.topLevelItem(at)) is not None:
                self._table.setCurrentItem(again)
        self._arrange()
        self._copy.setEnabled(bool(self.rows))
        self._save.setEnabled(bool(self.rows))
        if self.regions.all:
            self._hint.setVisible(bool(note))
            self._hint.setText(note)
        self._mark()

    def _reason(self, row: RegionRow, figure: str) -> str:
        """Return why a figure is missing."""
        against = self.against
        if figure == "PSNR":
            is_reference = row.picture == "reference"
            return "It is the reference." if is_reference else "There is no reference of this."
        name = against.background if figure == "SNR" else against.cnr
        if not name:
            chosen = "SNR over" if figure == "SNR" else "CNR against"
            return f"Choose a region in “{chosen}”."
        if row.note:
            return row.note
        return "It is the region itself." if row.region == name else "A line has none."

    def _mark(self) -> None:
        chosen, current = self.regions.chosen, self._table.currentItem()
        name = chosen.name if chosen is not None else None
        if current is not None and current.data(0, _REGION) == name:
            return
        with QSignalBlocker(self._table):
            self._table.setCurrentIndex(QModelIndex())
            for number in range(self._table.topLevelItemCount()):
                item = self._table.topLevelItem(number)
                if item is not None and item.data(0, _REGION) == name:
                    self._table.setCurrentItem(item)
                    return

    def text(self) -> str:
        lines = ["\t".join([*COLUMNS[:-1], self.against.snr, "CNR"])]
        for row, texts in zip(self.rows, texts_of(self.rows, self.units), strict=True):
            picture = named(row.picture, row.made)
            lines.append("\t".join([row.heading, picture, row.channel, *texts]))
        return "\n".join(lines)

    def csv(self) -> str:
        return as_csv(self.rows, self.units, self.against)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())

    def save(self) -> None:
        save_text(self, "Save Measurements", "measurements.csv", self.csv(), _CSV_FILES)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.wanted.emit()
