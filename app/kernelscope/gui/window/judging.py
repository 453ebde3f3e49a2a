"""Compares the output in front with its reference, in the background."""

from __future__ import annotations

from functools import partial

from kernelscope.engine.result import Judgement
from kernelscope.gui.docks.quality_panel import QualityPanel
from kernelscope.gui.model.comparison import Evaluation
from kernelscope.gui.model.gallery import judge_run
from kernelscope.gui.session.session import Session
from kernelscope.gui.work.background import Background


class Judging:
    """Evaluates the shown result once, with or without showing that in the panel *Quality*."""

    def __init__(
        self,
        session: Session,
        panel: QualityPanel,
        background: Background,
    ) -> None:
        self._session, self._panel = session, panel
        self._background = background

    def fill_panel(self) -> None:
        panel, subject = self._panel, self._session.subject
        judged = subject.to_judge
        if judged is None or panel.subject == judged:
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
