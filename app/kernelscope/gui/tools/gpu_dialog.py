"""Properties of the GPU, or the steps to set one up."""

from __future__ import annotations

import html
import logging
import re

from PySide6.QtCore import QTimer
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QLabel, QVBoxLayout, QWidget

from kernelscope.backends import gpu_numbers
from kernelscope.engine.backend import Availability, Backend, Fact, FactGroup
from kernelscope.gui.widgets.messages import add_button, close_box, headline
from kernelscope.gui.widgets.parts import dressed, in_column, text_label
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tables import FactTable
from kernelscope.gui.widgets.theme import fixed_font
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background

_logger = logging.getLogger(__name__)

_LONG = 24  # characters of a command from which on it has a line of its own
_MOST_WIDTH = 900  # pixels of a command; longer ones are broken
_REFRESH = 1000  # milliseconds between looks at memory and load


class GpuDialog(ToolWindow):
    """The GPU, or why there is none and how to get one; `without`: how kernels run in its place."""

    def __init__(
        self,
        availability: Availability,
        parent: QWidget | None = None,
        *,
        backend: Backend | None = None,
        background: Background | None = None,
        settings: Settings | None = None,
        without: str = "",
    ) -> None:
        page = "gpu-levels#several-gpus"
        super().__init__("gpuDialog", "GPU information", parent, help_page=page)
        self._availability = availability
        self._background = background
        self._table: FactTable | None = None
        self._headline = (
            "GPU filters can be used"
            if availability.available
            else "GPU filters cannot be used now"
        )

        reason = text_label(availability.summary, "reason", plain=True, selectable=True)
        reason.setMinimumWidth(70 * self.fontMetrics().averageCharWidth())

        layout = in_column(headline(self._headline), reason, of=self)
        if not availability.available:
            usual = "Filters run on the CPU; everything else works as usual."
            layout.addWidget(text_label(f"{usual} {without}".rstrip(), "rest"))
        if availability.steps:
            layout.addWidget(self._steps())
        if settings is not None and len(availability.devices) > 1:
            layout.addLayout(self._chooser(settings))
        if availability.available and backend is not None and background is not None:
            self._table = FactTable("facts", "Facts of the GPU")
            layout.addWidget(self._table, 1)
            self._state = dressed(QLabel("Asking the GPU…"), "state")
            layout.addWidget(self._state)
            unit, line = self.fontMetrics().averageCharWidth(), self.fontMetrics().height()
            self.resize(100 * unit, 36 * line)
            self._ask(background, backend)
        else:
            layout.addStretch(1)
        box = close_box(self)
        add_button(box, "copyButton", "&Copy", "Copy all of this text", self.copy)
        layout.addWidget(box)
        # The table would mark its first row, as if that were chosen.
        box.button(QDialogButtonBox.StandardButton.Close).setFocus()

    def _steps(self) -> QLabel:
        items = "".join(
            f"<li style='margin-bottom: 4px'>{_with_commands(step)}</li>"
            for step in self._availability.steps
        )
        label = text_label(
            f"<p>To use a GPU:</p><ol style='margin-top: 0'>{items}</ol>", "steps", selectable=True
        )
        commands = re.findall("`([^`]+)`", " ".join(self._availability.steps))
        metrics = QFontMetrics(fixed_font())
        longest = max((metrics.horizontalAdvance(each) for each in commands), default=0)
        label.setMinimumWidth(min(longest, _MOST_WIDTH) + 6 * metrics.height())  # and the numbers
        return label

    def _chooser(self, settings: Settings) -> QVBoxLayout:
        try:
            chosen = gpu_numbers(settings.text("gpu"))
        except ValueError:
            chosen = (0,)
        boxes = [
            QCheckBox(f"{number}: {name}") for number, name in enumerate(self._availability.devices)
        ]

        def choose(box: QCheckBox) -> None:
            if not any(each.isChecked() for each in boxes):
                box.setChecked(True)
            numbers = (str(number) for number, each in enumerate(boxes) if each.isChecked())
            settings.set_text("gpu", ",".join(numbers))

        text = "Use, from the next start on; several share volumes and large pictures:"
        for number, box in enumerate(boxes):
            box.setObjectName(f"device{number}")
            box.setChecked(number in chosen)
            box.clicked.connect(lambda checked, box=box: choose(box))
        return in_column(dressed(QLabel(text), "chooserCaption"), *boxes)

    def _ask(self, background: Background, backend: Backend) -> None:
        """Fill the table group by group, and show the load until the dialog is closed."""
        groups = backend.facts()

        def ask() -> None:
            background.start("gpu-facts", lambda: next(groups, None), show, self._on_failed)

        def show(group: FactGroup | None) -> None:
            if group is None:
                self._state.hide()
                return
            self._show_group(group)
            ask()

        ask()
        self._timer = QTimer(self, interval=_REFRESH)
        self._timer.setSingleShot(True)  # the next look begins when this one has its answer
        self._timer.timeout.connect(
            lambda: background.start("gpu-load", backend.load, self._on_load, self._on_failed)
        )
        self._timer.start(0)
        self.destroyed.connect(lambda: _forget(background))

    def _show_group(self, group: FactGroup, *, on_top: bool = False) -> None:
        """Show `group`; the window grows with new rows as far as the screen allows."""
        assert self._table is not None
        before = self._table.hidden_height
        self._table.set_group(group, on_top=on_top)
        screen, frame = self.screen().availableGeometry(), self.frameGeometry()
        missing = self._table.hidden_height - before
        growth = min(missing, screen.height() - frame.height())
        if growth > 0:
            self.resize(self.width(), self.height() + growth)
            below = frame.bottom() + growth - screen.bottom()
            self.move(self.x(), self.y() - max(0, below))

    def leave(self) -> None:
        if self._table is not None and self._background is not None:
            self._timer.stop()
            _forget(self._background)

    def _on_load(self, load: tuple[Fact, ...]) -> None:
        if load:  # otherwise there is no source of load values, now or later
            self._show_group(FactGroup("Now", load), on_top=True)
            self._timer.start(_REFRESH)

    def _on_failed(self, error: Exception) -> None:
        _logger.error("The GPU does not answer", exc_info=error)
        self._state.setText(f"The GPU does not answer: {error}")
        self._state.show()

    def text(self) -> str:
        steps = [f"{number}. {step}" for number, step in enumerate(self._availability.steps, 1)]
        facts = [self._table.text()] if self._table is not None else []
        return "\n".join((self._headline, self._availability.summary, *steps, *facts))

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())


def _forget(background: Background) -> None:
    for topic in ("gpu-facts", "gpu-load"):
        background.forget(topic)


def _with_commands(step: str) -> str:
    """Return `step` as HTML with commands in monospace, long ones on a line of their own."""
    style = f"font-family: {fixed_font().family()}; white-space: pre"

    def marked(found: re.Match[str]) -> str:
        line = "<br>" if len(found[1]) > _LONG else ""
        return f'{line}<span style="{style}">{found[1]}</span>'

    return re.sub("`([^`]+)`", marked, html.escape(step))
