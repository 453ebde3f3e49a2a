"""The stages of a trial, as its process reports them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelscope.backends.trial.protocol import STAGES, TrialStage


class StageNotes:
    """Notes the stages in the folder, for the parent, and how long each took."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STAGES
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, stage: TrialStage) -> Iterator[None]:
        with self._path.open("a", encoding="utf-8") as handle:
            handle.write(f"{stage}\n")
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
