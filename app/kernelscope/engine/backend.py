"""The interface of a backend: a kind of device on which filters run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import Level


@dataclass(frozen=True)
class Availability:
    """Whether a backend can run here, and if not, the reason and possible remedies."""

    available: bool
    summary: str  # one line: the device's name, or the reason it cannot be used
    steps: tuple[str, ...] = ()
    """Steps that make it available, in order; shell commands are enclosed in backticks."""
    devices: tuple[str, ...] = ()
    """Names of all devices of this kind, by their number; empty if there is no choice."""
    chosen: int = 1  # number of devices that share the work on volumes


@dataclass(frozen=True)
class Fact:
    name: str
    value: str
    unit: str = ""


@dataclass(frozen=True)
class FactGroup:
    title: str
    facts: tuple[Fact, ...]


class Backend(Protocol):
    """A kind of device.

    `availability`, `levels`, `facts` and `load` may be called on any thread, everything else is
    called on the worker thread.
    """

    id: str
    name: str

    def availability(self) -> Availability:
        """Return whether this backend can run here; cheap after the first call."""

    def facts(self) -> Iterator[FactGroup]:
        """Yield the facts about the device, the slow ones last."""

    def load(self) -> tuple[Fact, ...]:
        """Return how busy the device is now; empty if that cannot be determined."""

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        """Return the levels of a filter that this backend offers, slowest first."""

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        """Compute `request` at `level`.

        Raises `Cancelled` soon (under a second) after the token was set; `AppError` for every
        problem that the user can fix.
        """

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        """Return the mean squared difference of two images, if the device holds both of them.

        None if the device does not hold both of them, if they have alpha, or if they differ
        in size or mode.
        """

    def close(self) -> None:
        """Release threads and device memory; called once."""


class Closable(Protocol):
    """Holds something that has to be given back."""

    def close(self) -> None:
        """Give it back."""


def close_all(things: Iterable[Closable]) -> None:
    """Close all of them, also if one fails; then raise its error."""
    with ExitStack() as stack:
        for each in reversed(list(things)):
            stack.callback(each.close)
