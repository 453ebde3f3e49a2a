"""A batch of the window on its way: its order, and its news for another thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelscope.big.batch import Batch, FileState, Handling, Hints, Item, Journal, Pause
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.gui.model.batch_queue import Event
from kernelscope.schema.devices import Device

KEEP, REPLACE = "Keep, and skip files that are done", "Replace"
"""The choices for results that are in the output folder."""

HINTS = Hints(
    own_input="Choose another output folder.",
    there=f"Set Existing results to “{REPLACE}”, or move it.",
    earlier="Choose another output folder.",
    other_recipe=f"Choose another output folder, or set Existing results to “{REPLACE}”.",
    memory="Close other programs.",
    blocks="Filter it on the command line, with “kernelscope apply --memory 2G”.",
)

AS_INPUT = "as each file"
"""The name of the format by which results keep that of their file."""


@dataclass(frozen=True)
class BatchSettings:
    """The settings that the window keeps between starts."""

    out: str = ""  # output folder; empty for one next to the files
    suffix: str = ""  # empty for that of each file
    device: Device = Device.AUTO
    replaces: bool = False  # whether files of the names of results are replaced
    lossy: bool = False  # whether a format may lose something

    def texts(self) -> dict[str, str]:
        return {
            "out": self.out,
            "suffix": self.suffix,
            "device": self.device.value,
            "replaces": "on" if self.replaces else "off",
            "lossy": "on" if self.lossy else "off",
        }

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> BatchSettings:
        """Return stored settings; those that are not there, or not valid, have their defaults."""
        device = texts.get("device", "")
        known = device in tuple(Device)
        return cls(
            texts.get("out", ""),
            texts.get("suffix", ""),
            Device(device) if known else Device.AUTO,
            texts.get("replaces") == "on",
            texts.get("lossy") == "on",
        )


@dataclass(frozen=True)
class BatchOrder:
    recipe: Recipe
    items: tuple[Item, ...]
    out: Path
    settings: BatchSettings
    resumes: bool = True
    """Go on where an earlier batch stopped; a journal of one is forgotten otherwise."""

    def same_work(self, other: BatchOrder | None) -> bool:
        """Return whether `other` would make the same results in the same folder."""
        return other is not None and replace(self, resumes=other.resumes) == other


class BatchRun:
    """A batch whose news another thread takes when it likes.

    `backends`: may be in use by others.
    """

    def __init__(self, order: BatchOrder, backends: Mapping[str, Backend], costs: Costs) -> None:
        self.order, self._backends, self._costs = order, backends, costs
        self.pause = Pause()
        self._token = CancelToken()
        self._news: deque[Event] = deque()

    def work(self) -> None:
        """Run the batch on this thread.

        Raises `AppError`: if the journal belongs to another recipe, or the folder cannot be written
        to.
        """
        order, settings = self.order, self.order.settings
        journal = Journal(
            order.out, order.recipe, resume=order.resumes, anew=not order.resumes, hints=HINTS
        )

        def begun(item: Item, stage: FileState) -> None:
            self._news.append((item, stage))

        try:
            Batch(
                order.recipe,
                order.items,
                self._backends,
                RunOptions(device=settings.device),
                handling=Handling(lossy=settings.lossy),
                overwrite=settings.replaces,
                costs=self._costs,
                hints=HINTS,
            ).run(journal, self._token, self._news.append, begun=begun, pause=self.pause)
        finally:
            journal.close()

    def cancel(self) -> None:
        """Stop; files that are being written are finished."""
        self._token.cancel()

    def news(self) -> Iterator[Event]:
        """Yield the events since the last call, on any thread."""
        while self._news:
            yield self._news.popleft()


def default_out(inputs: Sequence[Path]) -> Path:
    first = inputs[0]
    if first.is_dir():
        return first.with_name(f"{first.name}-filtered")
    return first.parent / "filtered"


def described(recipe: Recipe) -> str:
    """Return a recipe in a line: ``Median: 5×5 → Mean: 3×3, wrap border``."""
    return " → ".join(_described(step) for step in recipe.steps)


def _described(step: Step) -> str:
    usual = step.filter.chips(step.parameters)
    texts = [chip.text for chip in usual if chip.usual and chip.name not in step.estimates]
    settings = ", ".join(filter(None, (*texts, step.caption)))
    return f"{step.name}: {settings}" if settings else step.name
