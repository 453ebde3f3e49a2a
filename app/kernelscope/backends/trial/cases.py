"""The pictures that a kernel is tried on, and the results, as files of parent and child."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.trial.plan import TrialPlan
from kernelscope.base import json_fields

_OTHERS = "others.json"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Work:
    """The data of a case, for a target that runs kernels."""

    source: NDArray[Any]  # of the shape that both plans are for
    # Of the kernel that is tried, and of the program's own.
    plan: TrialPlan
    reference: TrialPlan
    title: str = ""  # of the case, for reports
    others: Mapping[str, TrialPlan] = field(default_factory=dict)
    """Further plans of the program's, which a card times; by the names for it."""


class CaseFiles:
    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder / f"case-{number}"

    def write(self, work: Work) -> None:
        self._folder.mkdir()
        self._save("source", work.source)
        work.plan.write(self._folder, "plan")
        work.reference.write(self._folder, "reference-plan")
        (self._folder / _OTHERS).write_text(json.dumps([*work.others]), encoding="utf-8")
        for number, other in enumerate(work.others.values()):
            other.write(self._folder, f"other-{number}")

    def source(self) -> NDArray[Any]:
        source: NDArray[Any] = np.load(self._folder / "source.npy", allow_pickle=False)
        return source

    def plan(self) -> TrialPlan:
        return TrialPlan.read(self._folder, "plan")

    def reference(self) -> TrialPlan:
        return TrialPlan.read(self._folder, "reference-plan")

    def others(self) -> Iterator[tuple[str, TrialPlan]]:
        """Yield further plans of the program's, which are timed, with their names."""
        names = json_fields.read(self._folder / _OTHERS, _MOST_BYTES)
        for number, name in enumerate(names.elements()):
            yield name.text(), TrialPlan.read(self._folder, f"other-{number}")

    def save_output(self, output: NDArray[Any]) -> None:
        self._save("output", output)

    def save_reference(self, output: NDArray[Any]) -> None:
        """Save the result of the program's own kernel."""
        self._save("reference", output)

    def results(self, work: Work) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return both results that the process left; None unless they are those of the plans."""
        output = self._result("output", work.plan)
        reference = self._result("reference", work.reference)
        return None if output is None or reference is None else (output, reference)

    def _save(self, name: str, array: NDArray[Any]) -> None:
        np.save(self._folder / f"{name}.npy", array, allow_pickle=False)

    def _result(self, name: str, plan: TrialPlan) -> NDArray[Any] | None:
        try:
            array: NDArray[Any] = np.load(self._folder / f"{name}.npy", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        task = plan.task
        return array if (array.shape, array.dtype) == (task.output_shape, task.dtype) else None
