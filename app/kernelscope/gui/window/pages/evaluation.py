"""Figures of an input and its output: computed in the background, shown in the panel *Quality*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from kernelscope.engine.result import Judgement
from kernelscope.gui.docks.quality_panel import QualityPanel
from kernelscope.gui.model.comparison import Judged
from kernelscope.gui.model.history import Reference
from kernelscope.gui.work.background import Background
from kernelscope.images.judging.histogram import Histogram

Evaluation: TypeAlias = tuple[Judged, dict[str, Histogram]]
"""Figures, and the histograms of “input” and “output”."""


class Evaluating(NamedTuple):
    """An evaluation that is shown in a panel when it ends."""

    panel: QualityPanel
    reference: Reference[Any] | None
    keep: Callable[[Judgement], None]
    """Called with the figures of the output, where there are any."""

    def start(
        self,
        evaluate: Callable[[], Evaluation],
        background: Background,
        report: Callable[[Exception], None],
    ) -> None:
        """Evaluate in the background."""
        if self.reference is not None:
            self.panel.show_comparing(self.reference.image.title)

        def failed(error: Exception) -> None:
            self.panel.subject = None
            report(error)

        background.start("judge", evaluate, self._show, failed)

    def _show(self, evaluation: Evaluation) -> None:
        judged, histograms = evaluation
        reference = self.reference
        if judged.after is not None:
            self.keep(Judgement(judged.before, judged.after))
        title, origin = (reference.image.title, reference.origin) if reference else ("", "")
        self.panel.show_judged(title, origin, judged)
        self.panel.show_histograms(histograms)
