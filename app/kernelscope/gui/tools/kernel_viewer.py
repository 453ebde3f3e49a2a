"""The CUDA source of a filter at a level, and the compiler's report."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kernelscope.backends.cuda.info import architecture
from kernelscope.backends.cuda.inspection import (
    REPORTED,
    PlannedLaunch,
    compile_report,
    plan,
    plans,
    reporter,
)
from kernelscope.backends.cuda.sources import SourceFile, active_lines, find_kernel, source_files
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.backends.trial.protocol import CompilerMessage
from kernelscope.base.errors import AppError
from kernelscope.bench.memory_ladder import with_side
from kernelscope.engine.backend import Fact, FactGroup
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.engine.timing import LaunchReport, Resources
from kernelscope.gui.model.kernel_edits import Edits, template_for
from kernelscope.gui.model.trials import (
    TrialSubject,
    card_work_for,
    cases_for,
    small_work_for,
    work_for,
)
from kernelscope.gui.model.xray import memory_lines
from kernelscope.gui.tools.code_view import CodeEditor, CodeView, SourceTabs
from kernelscope.gui.tools.edit_panel import ORIGINAL, EditPanel
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.messages import add_button, close_box, headline
from kernelscope.gui.widgets.parts import (
    in_column,
    in_row,
    label_of,
    push_button,
    refill,
    text_label,
    tool_splitter,
)
from kernelscope.gui.widgets.tables import FactTable
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background, expected
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.launch import Launch
from kernelscope.schema.levels import Level, colour
from kernelscope.traffic.gpus import occupancy_on
from kernelscope.traffic.trace import WARP, SourceLine

SAME, GONE, NEW, HEADING = "same", "gone", "new", "heading"
"""The kinds of lines: in both, in the first only, in the second only, in neither."""

_SIGNS = {SAME: " ", GONE: "-", NEW: "+", HEADING: " "}
_TOKEN = re.compile(r"\w+|\W")

_ALIKE = 0.4  # two lines that are at least this similar have their differing words marked


@dataclass(frozen=True)
class DifferenceLine:
    """A line of a difference.

    `spans`: where in the text the words are that the other line lacks.
    """

    kind: str  # see `SAME` and the others
    text: str  # without the sign
    spans: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return f"{_SIGNS[self.kind]} {self.text}".rstrip()


def difference(
    files: Sequence[SourceFile],
    first: Sequence[tuple[PlannedLaunch, Sequence[Fact]]],
    second: Sequence[tuple[PlannedLaunch, Sequence[Fact]]],
) -> list[DifferenceLine]:
    """Return how the launches of two levels differ, and then their kernels' source.

    `files`: in which the kernels are. `first` and `second`: every launch of a level, with the facts
    about it.
    """
    lines: list[DifferenceLine] = []
    pairs = list(itertools.zip_longest((facts for _, facts in first), (f for _, f in second)))
    for number, (before, after) in enumerate(pairs, start=1):
        which = f" {number} of {len(pairs)}" if len(pairs) > 1 else ""
        lines.append(DifferenceLine(HEADING, f"// Launch{which}"))
        lines += _of_facts(before or (), after or ())
    lines.append(DifferenceLine(HEADING, "// Kernel" if len(pairs) == 1 else "// Kernels"))
    sources = [
        _joined(_function(files, plan.launch) for plan, _ in side) for side in (first, second)
    ]
    return [*lines, *_of_texts(*sources)]


def _joined(functions: Iterator[list[str]]) -> list[str]:
    lines: list[str] = []
    for function in functions:
        lines += ["", *function] if lines else function
    return lines


def _function(files: Sequence[SourceFile], launch: Launch) -> list[str]:
    place = find_kernel(files, launch.kernel, launch.defines)
    if place is None:
        return [f"// {launch.kernel} is made by a macro"]
    (text,) = (file.text for file in files if file.name == place.file)
    return text.split("\n")[place.start : place.stop]


def _of_facts(before: Sequence[Fact], after: Sequence[Fact]) -> Iterator[DifferenceLine]:
    """Yield facts of both, in the order of the first; those of one name follow each other."""
    first, second = (
        {fact.name: f"{fact.value} {fact.unit}".rstrip() for fact in facts}
        for facts in (before, after)
    )
    width = max(map(len, (*first, *second)), default=0)
    for name in dict.fromkeys((*first, *second)):
        values = first.get(name), second.get(name)
        if values[0] == values[1]:
            yield DifferenceLine(SAME, f"//   {name:{width}}  {values[0]}")
            continue
        for kind, value in zip((GONE, NEW), values, strict=True):
            if value is not None:
                yield DifferenceLine(kind, f"//   {name:{width}}  {value}")


def _of_texts(before: list[str], after: list[str]) -> Iterator[DifferenceLine]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield from (DifferenceLine(SAME, text) for text in before[i:j])
            continue
        gone, new = before[i:j], after[k:m]
        spans = [_spans(a, b) for a, b in zip(gone, new, strict=False)]
        rest = [((), ())] * (max(len(gone), len(new)) - len(spans))
        paired: list[tuple[_Spans, _Spans]] = [*spans, *rest]
        yield from (
            DifferenceLine(GONE, text, own) for text, (own, _) in zip(gone, paired, strict=False)
        )
        yield from (
            DifferenceLine(NEW, text, own) for text, (_, own) in zip(new, paired, strict=False)
        )


_Spans = tuple[tuple[int, int], ...]


def _spans(before: str, after: str) -> tuple[_Spans, _Spans]:
    words, others = _TOKEN.findall(before), _TOKEN.findall(after)
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return (), ()
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    return (
        tuple(_span(words, i, j) for _, i, j, _, _ in changes if j > i),
        tuple(_span(others, k, m) for _, _, _, k, m in changes if m > k),
    )


def _span(words: Sequence[str], start: int, stop: int) -> tuple[int, int]:
    before = sum(map(len, words[:start]))
    return before, before + sum(map(len, words[start:stop]))


_FILLS = {GONE: theme.removed_fill, NEW: theme.added_fill}
_SIGN = 2  # characters before each line
_BEFORE = 3  # lines in view above the first change


class DifferenceView(CodeView):
    def __init__(self, lines: Sequence[DifferenceLine]) -> None:
        self.lines = list(lines)
        super().__init__("difference", "\n".join(map(str, lines)))
        self.setAccessibleName("Difference of two levels")
        self._mark(0, 0)

    def go_to_first_change(self) -> None:
        changed = (n for n, line in enumerate(self.lines) if line.kind in _FILLS)
        self.verticalScrollBar().setValue(max(0, next(changed, 0) - _BEFORE))

    def _mark(self, start: int, stop: int) -> None:
        """Colour the lines: nothing else is marked here."""
        self._marked = (0, 0)
        selections, palette = [], self.palette()
        for number, line in enumerate(self.lines):
            if line.kind == HEADING:
                selections.append(self.selection(number, palette.alternateBase().color()))
            if line.kind in _FILLS:
                fill = _FILLS[line.kind]
                selections.append(self.selection(number, fill(palette)))
                strong = fill(palette, strong=True)
                spans = ((start + _SIGN, stop + _SIGN) for start, stop in line.spans)
                selections += [self.selection(number, strong, span) for span in spans]
        self.setExtraSelections(selections)


LAST_RUN = "Last run on the GPU"

_NO_REPORT = (Fact("Report", "none"),)


def with_generation(target: str) -> str:
    """Return ``sm_75 (Turing)`` for ``sm_75``."""
    digits = target.removeprefix("sm_")
    return f"{target} ({architecture((int(digits[:-1]), int(digits[-1])))})"


def last_run(report: LaunchReport) -> FactGroup:
    share = report.occupancy
    occupancy = () if share is None else (Fact("Theoretical occupancy", f"{100 * share:.0f} %"),)
    return FactGroup(
        LAST_RUN,
        (
            Fact("Grid", _by(report.grid), "blocks"),
            Fact("Block", _by(report.block), "threads"),
            Fact("Dynamic shared memory", f"{report.shared_bytes:,}", "bytes a block"),
            *(resources(report.resources) if report.resources else ()),
            *occupancy,
            *((Fact("Compiled by", report.compiler),) if report.compiler else ()),
        ),
    )


def planned(plan: PlannedLaunch, request: Request) -> FactGroup:
    launch = plan.launch
    source = request.source
    size = "×".join(str(side) for side in source.shape[-2::-1])
    tile = "strides over all" if launch.tile is None else _by(launch.tile)
    return FactGroup(
        f"Launch for {size}, {source.mode}",
        (
            Fact("Kernel", launch.kernel),
            Fact("Grid", _by(plan.grid), "blocks"),
            Fact("Block", _by(launch.block), "threads"),
            Fact("Output of a block", tile, "" if launch.tile is None else "pixels"),
            Fact("Dynamic shared memory", f"{launch.shared_bytes:,}", "bytes a block"),
            *(
                Fact(f"{name} in constant memory", f"{values.nbytes:,}", "bytes")
                for name, values in launch.constants.items()
            ),
            *(
                Fact(f"Table {number} in global memory", f"{table.nbytes:,}", "bytes")
                for number, table in enumerate(launch.tables, 1)
            ),
            Fact("Reads the image through", "a texture" if launch.texture else "global memory"),
            Fact("Least traffic", _plain(launch.bytes_per_sample), "bytes a sample"),
            Fact("Arithmetic", _plain(launch.operations_per_sample), "operations a sample"),
        ),
    )


def resources(resources: Resources) -> tuple[Fact, ...]:
    constant = Fact("Constant bank", f"{resources.constant_bytes:,}", "bytes")
    return (
        Fact("Registers", str(resources.registers), "a thread"),
        Fact("Spilled registers", f"{resources.spill_bytes:,}", "bytes a thread"),
        Fact("Stack", f"{resources.stack_bytes:,}", "bytes a thread"),
        Fact("Static shared memory", f"{resources.shared_bytes:,}", "bytes a block"),
        *((constant,) if resources.constant_bytes else ()),  # newer assemblers do not report it
    )


def _plain(number: float) -> str:
    """Return a number of four digits or more, never with an exponent."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _by(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)


def _lines_of(
    request: Request, level: Level, kernel: str, token: CancelToken
) -> dict[str, tuple[SourceLine, ...]]:
    """Return the lines of a kernel that use memory, by use, of a warp in the middle of the grid."""
    small = with_side(request, _SIDE_TRACED)
    for work in (small, request):  # a small picture may have other kernels
        launches = list(plans(work, level))
        found = [n for n, each in enumerate(launches) if each.launch.kernel == kernel]
        if found:
            break
    if found[0] and not isinstance(request.source, Image):  # all of them would run for it
        raise AppError("The launches before this one would take too long.", "Open a picture.")
    tracer = Tracer(threads=1)
    try:
        columns, rows, *_ = (*launches[found[0]].grid, 1)
        block = rows // 2 * columns + columns // 2
        trace = tracer.trace(
            work, level, block, launch=found[0], token=token, most=_RECORDS, threads=range(WARP)
        )
        return memory_lines(trace)
    finally:
        tracer.close()


def _in_links(uses: Mapping[str, Sequence[SourceLine]]) -> str:
    """Return ``Marked: writes shared memory levels.cuh 60; barrier levels.cuh 63``, as links."""
    parts = []
    for use, lines in uses.items():
        links, file = [], ""
        for each in lines[:_MOST_LINKS]:
            name = f"{each.file} " * (each.file != file)
            links.append(f'{name}<a href="{each}">{each.line}</a>')
            file = each.file
        more = f" and {len(lines) - _MOST_LINKS} more" if len(lines) > _MOST_LINKS else ""
        parts.append(f"<b>{use}</b> {', '.join(links)}{more}")
    return f"Marked: {'; '.join(parts)}." if parts else ""


_COMPILE, _LINES = "gpu-compile-report", "kernel-lines"
_SIDE_TRACED = 128  # of a picture whose middle block needs no border
_RECORDS = 1 << 20  # of a trace: 24 MiB
_FILL = 110  # opacity of the ground of a marked line
_MOST_LINKS = 4
_ORIGINAL = "original"

_SIDE = 42
"""Least width of the facts, in characters: a launch of three sizes with its unit is readable."""


class KernelViewer(ToolWindow):
    """Shows kernels; stays open next to the window, which calls `refresh` after runs.

    `launches`: the last launch of each kernel, by its name. `edits`: the user's own versions.
    """

    def __init__(
        self,
        background: Background,
        launches: Mapping[str, LaunchReport],
        edits: Edits,
        parent: QWidget | None = None,
        has_card: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__("kernelViewer", "Kernel", parent, help_page="gpu-levels#reading-a-kernel")
        self._has_card = has_card
        self.setSizeGripEnabled(True)
        self._background = background
        self._request: Request | None = None
        self._plan: PlannedLaunch | None = None
        self._focused: QWidget | None = None
        self._difference: DifferenceView | None = None
        self._launches = launches

        self._headline = headline("")
        self._help = text_label("", "levelHelp")
        self._token = CancelToken()
        self._uses = text_label("", "kernelUses", "note")
        self._uses.setTextFormat(Qt.TextFormat.RichText)
        self._uses.linkActivated.connect(self._follow_link)

        self._tabs = SourceTabs("kernelFiles")
        self.panel = EditPanel(background, edits, self._tabs)
        self.panel.chosen.connect(self._on_version)
        self.panel.edited.connect(self._on_edited)
        self.panel.compiled.connect(lambda r: self._add_resources(r.resources, r.compiler))
        self.panel.message_wanted.connect(self._show_place)
        top, side = self._make_top(), self._make_side()
        splitter = tool_splitter(self._tabs, side, name="kernelSplitter", stretch=(3, 2))
        box = close_box(self)
        add_button(box, "copyButton", "Copy &source", "Copy the file in view", self.copy_source)
        add_button(box, "copyFactsButton", "Copy &facts", "Copy the table", self._copy_facts)
        below = self.panel.find_bar, self.panel, box
        in_column(self._headline, top, self._help, self._uses, (splitter, 1), *below, of=self)
        unit = self.fontMetrics().averageCharWidth()
        self.take_size(210 * unit, 40 * self.fontMetrics().height())
        splitter.setSizes([152 * unit, 58 * unit])
        self.panel.make_keys(self)

    def _make_top(self) -> QHBoxLayout:
        tip = "Another memory level of the same filter"
        self._level = choice_box("kernelLevel", "Level", (), self._show_level, tip=tip)
        tip = "Another level; differing lines of the kernel and facts of the launch are marked"
        show = partial(self._show_difference, raised=True)
        self._other = choice_box("kernelOther", "Compare with level", (), show, tip=tip)
        version = self.panel.version_box
        return in_row(
            *(label_of("&Level", self._level), self._level),
            *(label_of("Vers&ion", version), version),
            *(label_of("Compare &with", self._other), self._other),
            1,
        )

    def _make_side(self) -> QWidget:
        self._facts = FactTable("kernelFacts", "Launch and resources of the kernel")
        self._state = text_label("", "kernelState")
        cards = " and ".join(map(with_generation, REPORTED))
        tip = f"Compile this kernel for {cards} and see its registers and occupancy; needs no GPU"
        self._compile = push_button("Compile &report", "compileReport", self._on_compile, tip=tip)
        side = QWidget()
        side.setMinimumWidth(_SIDE * self.fontMetrics().averageCharWidth())
        column = in_column((self._facts, 1), self._state, of=side, margins=0)
        column.addWidget(self._compile, 0, Qt.AlignmentFlag.AlignLeft)
        return side

    def show_request(self, request: Request) -> None:
        self.panel.show_subject(None)
        self._request = request
        spec = request.step.filter
        self._headline.setText(spec.describe(request.step.parameters))
        self.setWindowTitle(f"Kernel – {spec.name}")
        self._difference = None
        self._tabs.empty()
        self._tabs.leave_out(())
        blocker = QSignalBlocker(self._level)
        self._level.clear()
        for place, level in enumerate(spec.levels(Device.GPU)):
            self._level.addItem(level.name, level.id)
            self._level.setItemData(place, level.help, Qt.ItemDataRole.ToolTipRole)
        wanted = self._level.findData(request.options.level)
        self._level.setCurrentIndex(wanted if wanted >= 0 else self._level.count() - 1)
        blocker.unblock()
        self._offer_others()
        self._plan = None
        self._facts.clear_groups()
        usable = bool(spec.levels(Device.GPU))
        for widget in (self._level, self._other, self._tabs, self._facts):
            widget.setEnabled(usable)
        self._compile.setEnabled(usable)
        if not usable:
            self._state.setText("This filter has no CUDA kernel: it runs on the CPU only.")
            self._stop_finding()
            return
        files = source_files(spec.id)
        self.panel.view, *_ = [self._tabs.add(file.name, file.text) for file in files]
        self._show_level()

    def leave(self) -> None:
        self._background.forget(_COMPILE)
        self._stop_finding()
        self.panel.stop()
        self.panel.keep()

    def refresh(self) -> None:
        if self._plan is not None:
            self._show_last_run(self._plan)

    def copy_source(self) -> None:
        view = self._tabs.currentWidget()
        if isinstance(view, CodeView):
            QGuiApplication.clipboard().setText(view.toPlainText())

    def _copy_facts(self) -> None:
        QGuiApplication.clipboard().setText(self._facts.text())

    def _show_level(self) -> None:
        request = self._request
        assert request is not None
        level = request.step.filter.levels(Device.GPU)[self._level.currentIndex()]
        self._background.forget(_COMPILE)
        self._compile.setEnabled(True)
        self._facts.clear_groups()
        self._plan = plan(request, level)
        self._help.setText(" ".join(filter(None, (level.help, self._plan.notice))))
        step, launch = request.step, self._plan.launch
        file, *_ = source_files(step.filter.id)
        radius = step.filter.radius(step.parameters)
        self.panel.show_subject(
            TrialSubject(
                *(step.filter.id, level.id, file.name, file.text),
                *(launch.kernel, launch.defines, lambda: [work_for(request, level)]),
                cases=lambda: cases_for(request, level),
                small=lambda: small_work_for(request, level),
                card=(lambda: card_work_for(request, level)) if self._has_card() else None,
                template=template_for(level.id, launch, radius),
                parameters=step.parameters,
            )
        )

    def _on_version(self, name: str) -> None:
        self._compile.setVisible(not name)
        self._offer_others()
        self._show_difference(raised=False)
        self._show_facts()
        self._show_kernel(in_place=False)
        self._find_lines()
        if name and self.panel.view is not None:
            self.panel.view.setFocus()

    def _files(self) -> tuple[SourceFile, ...]:
        assert self._request is not None
        first, *headers = source_files(self._request.step.filter.id)
        view = self.panel.view
        if isinstance(view, CodeEditor):
            first = SourceFile(first.name, view.toPlainText())
        return (first, *headers)

    def _on_edited(self) -> None:
        self._show_facts()
        self._show_kernel(in_place=True)
        if self._difference is not None:
            self._show_difference(raised=False)

    def _show_facts(self) -> None:
        """Show the planned launch, and the last one of the program's own kernel."""
        assert self._request is not None
        assert self._plan is not None
        self._facts.clear_groups()
        self._facts.set_group(planned(self._plan, self._request))
        defines = sorted(self._plan.launch.defines.items())
        self._facts.set_group(
            FactGroup("Specialisation", tuple(Fact(name, value) for name, value in defines))
        )
        self._show_last_run(self._plan)

    def _show_kernel(self, *, in_place: bool) -> None:
        """Mark the kernel in its file, dim those left out by macros; `in_place`: nothing moves."""
        assert self._plan is not None
        launch, files = self._plan.launch, self._files()
        active = active_lines(files, launch.defines)
        found = find_kernel(files, launch.kernel, launch.defines)
        first, unused = 0, []
        for number in range(self._tabs.count()):
            view = self._tabs.widget(number)
            assert isinstance(view, CodeView)
            if view is self._difference:
                continue
            name = self._tabs.tabText(number)
            if not any(active[name]) and not (in_place and self._tabs.currentIndex() == number):
                unused.append(number)
            here = found is not None and found.file == name
            if in_place and isinstance(view, CodeEditor):
                view.show_active(active[name])
            elif not in_place:
                kernel = (found.start, found.stop) if found and here else None
                view.show_place(kernel, active[name])
            dimmed = " Dimmed lines are left out by the macros of the launch."
            self._tabs.setTabToolTip(number, f"{name}.{dimmed if view.dimmed_lines else ''}")
            first = number if here else first
        self._tabs.leave_out(unused)
        unmoved = self._difference is not None and self._tabs.currentWidget() is self._difference
        if not in_place and not unmoved:
            self._tabs.setCurrentIndex(first)

    def _find_lines(self) -> None:
        """Mark the lines that use the memory of the level, once a warp has been traced."""
        self._stop_finding()
        self._show_lines({})
        # Two lines: nothing moves when they are there.
        self._uses.setMinimumHeight(2 * self._uses.fontMetrics().lineSpacing())
        request, planned_ = self._request, self._plan
        assert request is not None
        assert planned_ is not None
        if self.panel.version:
            self._uses.setText("X-ray shows which memory your version uses.")
            return
        self._uses.setText("Finding the lines that use memory…")
        level = request.step.filter.levels(Device.GPU)[self._level.currentIndex()]
        token = self._token = CancelToken()

        def show(found: Mapping[str, Sequence[SourceLine]]) -> None:
            self._uses.setText(_in_links(found))
            self._show_lines(found)

        def fail(error: Exception) -> None:
            if (failure := expected(error)) is not None:
                self._uses.setText(
                    f"Lines are not marked: {failure.message} {failure.hint}".rstrip()
                )

        work = partial(_lines_of, request, level, planned_.launch.kernel, token)
        self._background.start(_LINES, work, show, fail)

    def _stop_finding(self) -> None:
        self._token.cancel()
        self._background.forget(_LINES)
        self._uses.clear()

    def _show_lines(self, uses: Mapping[str, Sequence[SourceLine]]) -> None:
        fill = QColor(colour(self._level.currentData()))
        fill.setAlpha(_FILL)
        lines = {(each.file, each.line - 1) for found in uses.values() for each in found}
        for number in range(self._tabs.count()):
            view, name = self._tabs.widget(number), self._tabs.tabText(number)
            if isinstance(view, CodeView) and view is not self._difference:
                view.show_lines({line: fill for file, line in lines if file == name})

    def _follow_link(self, place: str) -> None:
        file, _, line = place.rpartition(":")
        self._go_to(file, int(line))

    def _offer_others(self) -> None:
        """Offer levels and, for a version, the original to compare with; keep the choice."""
        levels = range(self._level.count())
        entries: list[tuple[str, str | None]] = [("nothing", None)]
        entries += ((self._level.itemText(n), self._level.itemData(n)) for n in levels)
        entries += [("the original", _ORIGINAL)] * bool(self.panel.version)
        refill(self._other, entries, self._other.currentData())

    def _show_difference(self, *, raised: bool) -> None:
        """Show how the level chosen to compare with differs from this one; raise it if wanted."""
        place = self._tabs.indexOf(self._difference) if self._difference is not None else -1
        if self._difference is not None:
            raised = raised or self._tabs.currentIndex() == place
            self._tabs.removeTab(place)
            self._difference.deleteLater()
            self._difference = None
        if self._request is None or self._other.currentData() is None:
            return
        lines, (first, second) = self._differences(self._request)
        self._difference = DifferenceView(lines)
        self._difference.go_to_first_change()
        self._tabs.insertTab(0, self._difference, f"{first} → {second}")
        self._tabs.setTabToolTip(0, f"− {first}, + {second}")
        if raised:
            self._tabs.setCurrentIndex(0)

    def _differences(self, request: Request) -> tuple[list[DifferenceLine], tuple[str, str]]:
        if self._other.currentData() == _ORIGINAL:
            before, after = source_files(request.step.filter.id)[0], self._files()[0]
            texts = (file.text.split("\n") for file in (before, after))
            return list(_of_texts(*texts)), (ORIGINAL, self.panel.version)
        levels = request.step.filter.levels(Device.GPU)
        first, second = levels[self._level.currentIndex()], levels[self._other.currentIndex() - 1]
        sides = (
            [(each, planned(each, request).facts) for each in plans(request, level)]
            for level in (first, second)
        )
        return difference(self._files(), *sides), (first.name, second.name)

    def _show_last_run(self, plan: PlannedLaunch) -> None:
        if self.panel.version:
            where = "on the GPU" if self._has_card() else "without a GPU"
            self._state.setText(f"Ctrl+Return tries your version {where}.")
            return
        report = self._launches.get(plan.launch.kernel)
        if report is None:
            self._state.setText(
                "Not run on a GPU yet: registers and occupancy come with a run."
                if self._has_card()
                else "Not run: there is no GPU. Compile report has the registers, and the "
                "occupancy that they allow."
            )
            return
        self._state.clear()
        self._facts.set_group(last_run(report))

    def _on_compile(self) -> None:
        assert self._request is not None
        assert self._plan is not None
        has_focus = self.focusWidget() is self._compile  # a disabled button gives it to another
        self._compile.setEnabled(False)
        self._focused = self.focusWidget() if has_focus else None
        self._state.setText("Compiling…")
        self._background.start(
            _COMPILE,
            partial(compile_report, self._request.step.filter.id, self._plan.launch),
            self._on_compiled,
            self._on_failed,
        )

    def _on_compiled(self, report: dict[str, Resources | None]) -> None:
        self._allow_compiling()
        self._state.clear()
        self._add_resources(report, reporter())

    def _allow_compiling(self) -> None:
        self._compile.setEnabled(True)
        if self._focused is not None and self._focused is self.focusWidget():
            self._compile.setFocus()

    def _add_resources(self, report: Mapping[str, Resources | None], compiler: str) -> None:
        newest_first = sorted(report, key=lambda each: (len(each), each), reverse=True)
        for target in newest_first:  # times are recorded on newer ones
            found = report[target]
            facts = (*resources(found), *self._occupancy(target, found)) if found else _NO_REPORT
            facts = (Fact("Compiled by", compiler), *facts)
            self._facts.set_group(FactGroup(f"Compiled for {with_generation(target)}", facts))

    def _occupancy(self, target: str, found: Resources) -> Iterator[Fact]:
        assert self._plan is not None
        launch = self._plan.launch
        shared = found.shared_bytes + launch.shared_bytes
        if text := occupancy_on(target, math.prod(launch.block), found.registers, shared):
            yield Fact("Occupancy, computed", text)

    def _show_place(self, message: CompilerMessage) -> None:
        self._go_to(message.file, message.line)

    def _go_to(self, file: str, line: int) -> None:
        for number in range(self._tabs.count()):
            view = self._tabs.widget(number)
            if isinstance(view, CodeView) and self._tabs.tabText(number) == file:
                self._tabs.show_place(number)
                view.go_to_line(line - 1)

    def _on_failed(self, error: Exception) -> None:
        self._allow_compiling()
        if not isinstance(error, AppError):
            raise error  # a bug: the window's hook reports it
        self._state.setText(str(error))
