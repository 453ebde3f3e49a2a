"""A readable difference: removed lines on red, added ones on green, each after its sign."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QColor, QPalette, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QTextEdit, QWidget

from kernelscope.gui.model.kernel_difference import GONE, HEADING, NEW, DifferenceLine
from kernelscope.gui.tools.code_view import CodeView
from kernelscope.gui.widgets import theme

_FILLS = {GONE: theme.removed_fill, NEW: theme.added_fill}
_SIGN = 2
"""Characters before each line."""

_BEFORE = 3
"""Lines in view above the first change."""


class DifferenceView(CodeView):
    """Lines of a difference, highlighted as the language is."""

    def __init__(self, lines: Sequence[DifferenceLine], parent: QWidget | None = None) -> None:
        self._lines = list(lines)
        super().__init__("difference", "\n".join(map(str, lines)), parent)
        self.setAccessibleName("Difference of two levels")
        self._mark(0, 0)

    def go_to_first_change(self) -> None:
        """Scroll to the first line that differs."""
        changed = (n for n, line in enumerate(self._lines) if line.kind in _FILLS)
        self.verticalScrollBar().setValue(max(0, next(changed, 0) - _BEFORE))

    @property
    def lines(self) -> list[DifferenceLine]:
        return self._lines

    def _mark(self, start: int, stop: int) -> None:
        """Colour the lines: nothing else is marked here."""
        self._marked = (0, 0)
        selections = []
        for number, line in enumerate(self._lines):
            if line.kind == HEADING:
                ground = self.palette().color(QPalette.ColorRole.AlternateBase)
                selections.append(self._selection(number, ground))
            if line.kind in _FILLS:
                fill = _FILLS[line.kind]
                selections.append(self._selection(number, fill(self.palette())))
                selections += [
                    self._selection(number, fill(self.palette(), strong=True), span)
                    for span in line.spans
                ]
        self.setExtraSelections(selections)

    def _selection(
        self, number: int, ground: QColor, span: tuple[int, int] | None = None
    ) -> QTextEdit.ExtraSelection:
        selection = QTextEdit.ExtraSelection()
        selection.format.setBackground(ground)
        cursor = QTextCursor(self.document().findBlockByNumber(number))
        if span is None:
            selection.format.setProperty(QTextCharFormat.Property.FullWidthSelection, True)
        else:
            start = cursor.position() + _SIGN
            cursor.setPosition(start + span[0])
            cursor.setPosition(start + span[1], QTextCursor.MoveMode.KeepAnchor)
        selection.cursor = cursor
        return selection
