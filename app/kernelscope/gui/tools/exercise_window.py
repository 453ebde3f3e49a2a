"""The exercises: kernels to write, graded without a GPU."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QTextBrowser, QWidget

from kernelscope.backends.trial.exercises import FOLDER, Exercise, Grade, exercises
from kernelscope.gui.model.kernel_edits import FIRST, Edits
from kernelscope.gui.model.trials import TrialSubject
from kernelscope.gui.tools.code_view import CodeView, SourceTabs
from kernelscope.gui.tools.edit_panel import EditPanel
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    label_of,
    push_button,
    tool_splitter,
)
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.theme import show_markdown
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background

_HEADER = "exercise.cuh"
_SOLUTION = "Solution"
_PASSED = "exercises"  # group of the settings: which exercises were passed


class ExerciseWindow(ToolWindow):
    """A list of exercises, with the text, the hints and the editor of the chosen one."""

    def __init__(
        self,
        background: Background,
        edits: Edits,
        settings: Settings,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("exerciseWindow", "Exercises", parent, help_page="gpu-levels#exercises")
        self.setSizeGripEnabled(True)
        self._settings = settings
        self._exercise: Exercise | None = None
        self._hints = 0
        self._tabs = SourceTabs("exerciseFiles")
        self.panel = EditPanel(background, edits, self._tabs)
        self.panel.chosen.connect(lambda _: self._tabs.setCurrentIndex(0))
        self.panel.graded.connect(self._on_graded)
        unit = self.fontMetrics().averageCharWidth()
        widths = 66 * unit, 134 * unit
        splitter = tool_splitter(self._make_side(), self._make_work(), sizes=widths)
        box = close_box(self)
        box.button(box.StandardButton.Close).setAutoDefault(False)
        in_column((splitter, 1), self.panel.find_bar, self.panel, box, of=self)
        self.take_room(200, 46, QSize(1280, 720))
        self.panel.make_keys(self)
        self._list.setCurrentRow(0)

    def _make_side(self) -> QWidget:
        self._list = dressed(QListWidget(), "exerciseList", "Exercises")
        for number, exercise in enumerate(exercises(), start=1):
            item = QListWidgetItem(self._title(number, exercise))
            item.setData(Qt.ItemDataRole.UserRole, exercise)
            self._list.addItem(item)
        rows = self._list.count() + 1
        self._list.setMaximumHeight(rows * (self.fontMetrics().height() + 4))
        self._list.currentRowChanged.connect(self._show_exercise)
        self._text = dressed(QTextBrowser(), "exerciseText", "Text of the exercise")
        self._hint = push_button("", "exerciseHint", self._show_hint)
        self._solution = push_button("Show the &solution", "exerciseSolution", self._show_solution)
        row = in_row(self._hint, self._solution, 1)
        side = QWidget()
        in_column(self._list, (self._text, 1), row, of=side, margins=0)
        return side

    def _make_work(self) -> QWidget:
        version = self.panel.version_box
        row = in_row(label_of("Vers&ion", version), version, 1)
        work = QWidget()
        in_column(row, (self._tabs, 1), of=work, margins=0)
        return work

    def open_at(self, filter_id: str, level: str) -> None:
        """Choose the exercise about a level, of that filter if there is one, or else the filter."""

        def fit(row: int) -> tuple[bool, bool]:
            exercise: Exercise = self._list.item(row).data(Qt.ItemDataRole.UserRole)
            return exercise.level == level, exercise.filter_id == filter_id

        best = max(range(self._list.count()), key=fit)
        if any(fit(best)):
            self._list.setCurrentRow(best)

    def leave(self) -> None:
        self.panel.stop()
        self.panel.keep()

    # --- the chosen exercise ---

    def _title(self, number: int, exercise: Exercise) -> str:
        passed = self._settings.text(f"{_PASSED}/{exercise.id}")
        return f"{'✓' if passed else '–'} {number}. {exercise.title}{' (passed)' if passed else ''}"

    def _show_exercise(self, row: int) -> None:
        item = self._list.item(row)
        if item is None:
            return
        exercise: Exercise = item.data(Qt.ItemDataRole.UserRole)
        self.panel.show_subject(None)
        self._exercise, self._hints = exercise, 0
        self._tabs.empty()
        header = (FOLDER / _HEADER).read_text(encoding="utf-8")
        self.panel.view = self._tabs.add(exercise.file, exercise.starter)
        self._tabs.add(_HEADER, header)
        self._solution.setEnabled(True)
        self._show_text()
        subject = TrialSubject(
            *("exercise", exercise.id, exercise.file, exercise.starter, exercise.launch.kernel),
            defines={},
            works=exercise.works,
            goal=exercise.goal,
            tolerance=exercise.tolerance,
            reference=exercise.filter_id,
        )
        self.panel.show_subject(subject, FIRST)

    def _show_text(self) -> None:
        exercise = self._exercise
        assert exercise is not None
        hints = [f"**Hint {n}.** {hint}" for n, hint in enumerate(exercise.hints, 1)]
        heading = f"## {exercise.title}\n\n"
        show_markdown(self._text, heading + "\n\n".join((exercise.text, *hints[: self._hints])))
        left = len(hints) - self._hints
        self._hint.setEnabled(left > 0)
        self._hint.setText(f"&Hint {self._hints + 1} of {len(hints)}" if left else "No more &hints")

    def _show_hint(self) -> None:
        self._hints += 1
        self._show_text()
        bar = self._text.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _show_solution(self) -> None:
        assert self._exercise is not None
        self._solution.setEnabled(False)
        place = self._tabs.addTab(CodeView("the solution", self._exercise.solution), _SOLUTION)
        self._tabs.setCurrentIndex(place)

    def _on_graded(self, grade: Grade) -> None:
        if self._exercise is None or not grade.passed:
            return
        self._settings.set_text(f"{_PASSED}/{self._exercise.id}", "passed")
        row = self._list.currentRow()
        item = self._list.item(row)
        if item is not None:
            item.setText(self._title(row + 1, self._exercise))
