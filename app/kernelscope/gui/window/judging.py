"""Compares the output in front with its reference, in the background, for the panel *Quality*."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QDockWidget

from kernelscope.engine.result import Judgement
from kernelscope.gui.docks.quality_panel import QualityPanel
from kernelscope.gui.model.comparison import Evaluation
from kernelscope.gui.model.gallery import judge_run
from kernelscope.gui.session.session import KIND, Session
from kernelscope.gui.session.subject import COMPONENT, MOMENT_SHOWN, REFERENCE, REFERENCED
from kernelscope.gui.work.background import Background


class Judging:
    """Evaluates the shown result once, while the panel is visible (not behind a tab)."""

    def __init__(
        self, session: Session, panel: QualityPanel, dock: QDockWidget, background: Background
    ) -> None:
        self._session, self._panel, self._dock = session, panel, dock
        self._background = background
        self._seen = False
        session.when({REFERENCED}, self._show)
        session.when({KIND, MOMENT_SHOWN, REFERENCE, COMPONENT}, self._fill)
        dock.visibilityChanged.connect(self._on_seen)

    def _show(self) -> None:
        """Bring the figures to the front once there are any, unless the user closed them."""
        if not self._dock.isHidden():
            self._dock.raise_()

    def _on_seen(self, seen: bool) -> None:
        self._seen = seen
        self._fill()

    def _fill(self) -> None:
        panel, subject = self._panel, self._session.subject
        judged = subject.to_judge
        if not self._seen or judged is None or panel.subject == judged:
            return
        part, result, reference = judged
        correlation = result.correlation if result is not None else None
        panel.subject = subject.judging = judged
        panel.begin(part)
        title, origin = (reference.image.title, reference.origin) if reference else ("", "")
        if reference is not None:
            panel.show_comparing(title)

        def show(evaluation: Evaluation) -> None:
            figures, histograms = evaluation
            if figures.after is not None:
                subject.keep_judgement(judged, Judgement(figures.before, figures.after))
            panel.show_judged(title, origin, figures, correlation)
            panel.show_histograms(histograms)

        def failed(error: Exception) -> None:
            panel.subject = None
            self._background.report(error)

        self._background.start("judge", subject.evaluation(), show, failed)

    def judge_output(self) -> None:
        """Evaluate the output without the panel."""
        subject = self._session.subject
        part, result, reference = judged = subject.to_judge or (None, None, None)
        if part is None or result is None or reference is None or judged == subject.judging:
            return
        subject.judging = judged
        self._background.start(
            "judge output",
            lambda: judge_run(result, part, reference.image),
            partial(subject.keep_judgement, judged),
        )
