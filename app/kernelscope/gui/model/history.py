"""The last inputs with what led to them, to go back and forth between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.form_state import FormState
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume

MOST_MOMENTS = 20

MOST_BYTES = 1 << 30
"""Most pixels and voxels to keep alive; what is shown stays in any case."""

Opened = TypeVar("Opened", Image, Scan)
"""What is filtered."""

Judge = TypeVar("Judge", Image, Volume)
"""What others are judged by."""


class Origin(StrEnum):
    """Why a picture or volume is the reference, in words for the user."""

    TRUTH = "the truth"
    NOISE = "before noise"
    CHOSEN = "chosen"
    KEPT = "kept from before"


@dataclass(frozen=True, eq=False)
class Reference(Generic[Judge]):
    """The picture or volume that others are judged by."""

    image: Judge
    origin: Origin


@dataclass(frozen=True, eq=False)
class Moment(Generic[Opened]):
    """An input and all that belongs to it.

    Attributes
    ----------
    source : Image or Scan
    name : str
        What brought this input, for “Undo …”: a filter or “Open a.png”.
    steps : tuple of Request
        The runs from what was opened to this one.
    reference : Reference, optional
        Of a picture.
    result : Result, optional
        The last run on this input.
    references : mapping
        Of volumes, each of which has its own.
    form : FormState, optional
        The settings of the result; without one those that stood there when it was left.
    """

    source: Opened
    name: str
    steps: tuple[Request, ...] = ()
    reference: Reference[Image] | None = None
    result: Result | None = None
    references: Mapping[Volume, Reference[Volume]] = field(default_factory=dict)
    form: FormState | None = None

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Yield what has to stay in memory."""
        yield from self.source.arrays()
        if self.reference is not None:
            yield from self.reference.image.arrays()
        yield from (each.image.voxels for each in self.references.values())
        if self.result is not None:
            yield from self.result.output.arrays()

    def describe_steps(self) -> str:
        """Return ``after Gaussian noise, Median``; empty for what was opened."""
        names = ", ".join(each.step.filter.name for each in self.steps)
        return f"after {names}" if names else ""


class History(Generic[Opened]):
    """The moments, oldest first, and which of them is shown."""

    def __init__(self) -> None:
        self._moments: list[Moment[Opened]] = []
        self._place = -1
        self.form: Callable[[], FormState | None] = lambda: None
        """Returns the settings as they are now."""

    @property
    def current(self) -> Moment[Opened] | None:
        """What is shown."""
        return self._moments[self._place] if self._moments else None

    @property
    def undo_name(self) -> str:
        """What `undo` takes back; empty if there is nothing."""
        return self._moments[self._place].name if self._place > 0 else ""

    @property
    def redo_name(self) -> str:
        """What `redo` does again; empty if there is nothing."""
        following = self._moments[self._place + 1 :]
        return following[0].name if following else ""

    @property
    def state(self) -> tuple[list[Moment[Opened]], int]:
        """Everything there is, to come back to when a picture cannot be shown."""
        return list(self._moments), self._place

    @state.setter
    def state(self, state: tuple[list[Moment[Opened]], int]) -> None:
        moments, self._place = state
        self._moments = list(moments)

    def push(self, moment: Moment[Opened]) -> None:
        """Go on to `moment`; what was taken back before is forgotten."""
        self._leave()
        del self._moments[self._place + 1 :]
        self._moments.append(moment)
        self._place += 1
        self._trim()

    def amend(self, **changes: object) -> None:
        """Change attributes of the current moment."""
        self._moments[self._place] = replace(self._moments[self._place], **changes)  # type: ignore[arg-type]
        self._trim()

    def undo(self) -> None:
        """Go one moment back; `undo_name` says whether there is one."""
        self._leave()
        self._place -= 1

    def redo(self) -> None:
        """Go one moment on; `redo_name` says whether there is one."""
        self._leave()
        self._place += 1

    def moment_of(self, source: Opened) -> Moment[Opened] | None:
        """Return the oldest moment with this input, if it is still known."""
        found = (moment for moment in self._moments if moment.source is source)
        return next(found, None)

    def _leave(self) -> None:
        """Keep with a moment that has no result the settings that are about to make one."""
        current = self.current
        if current is not None and current.result is None:
            self._moments[self._place] = replace(current, form=self.form() or current.form)

    def _trim(self) -> None:
        """Forget the oldest moments, then the furthest ones ahead, until the rest is small."""
        while len(self._moments) > 1 and not self._is_small():
            if self._place > 0:
                del self._moments[0]
                self._place -= 1
            else:
                del self._moments[-1]

    def _is_small(self) -> bool:
        sizes = {id(array): array.nbytes for moment in self._moments for array in moment.arrays()}
        return len(self._moments) <= MOST_MOMENTS and sum(sizes.values()) <= MOST_BYTES
