"""The last inputs with what led to them, to go back and forth between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from app.engine.image import Image
from app.engine.request import Request, Result

MOST_MOMENTS = 20

MOST_BYTES = 1 << 30
"""Most pixels to keep alive; what is shown stays in any case."""


class Origin(StrEnum):
    """Why a picture is the reference, in words for the user."""

    NOISE = "before noise"
    CHOSEN = "chosen"
    KEPT = "kept from the last picture"


@dataclass(frozen=True, eq=False)
class Reference:
    """The picture that others are judged by."""

    image: Image
    origin: Origin


@dataclass(frozen=True, eq=False)
class Moment:
    """An input and all that belongs to it.

    Attributes
    ----------
    name : str
        What brought this input, for “Undo …”: a filter or “Open a.png”.
    steps : tuple of Request
        The runs from the picture that was opened to this one.
    reference : Reference, optional
    result : Result, optional
        The last run on this input.
    """

    image: Image
    name: str
    steps: tuple[Request, ...] = ()
    reference: Reference | None = None
    result: Result | None = None

    def images(self) -> Iterable[Image]:
        yield self.image
        if self.reference is not None:
            yield self.reference.image
        if self.result is not None:
            yield self.result.image

    def describe_steps(self) -> str:
        """Return ``after Gaussian noise, Median``; empty for a picture as it was opened."""
        names = ", ".join(step.filter.name for step in self.steps)
        return f"after {names}" if names else ""


class History:
    """The moments, oldest first, and which of them is shown."""

    def __init__(self) -> None:
        self._moments: list[Moment] = []
        self._place = -1

    @property
    def current(self) -> Moment | None:
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
    def state(self) -> tuple[list[Moment], int]:
        """Everything there is, to come back to when a picture cannot be shown."""
        return list(self._moments), self._place

    @state.setter
    def state(self, state: tuple[list[Moment], int]) -> None:
        moments, self._place = state
        self._moments = list(moments)

    def push(self, moment: Moment) -> None:
        """Go on to `moment`; what was taken back before is forgotten."""
        self._moments = [*self._moments[: self._place + 1], moment]
        self._place += 1
        self._trim()

    def amend(self, **changes: object) -> None:
        """Change attributes of the current moment."""
        self._moments[self._place] = replace(self._moments[self._place], **changes)  # type: ignore[arg-type]
        self._trim()

    def undo(self) -> None:
        """Go one moment back; `undo_name` says whether there is one."""
        self._place -= 1

    def redo(self) -> None:
        """Go one moment on; `redo_name` says whether there is one."""
        self._place += 1

    def steps_to(self, image: Image) -> tuple[Request, ...]:
        """Return what led to `image`, as far as that is still known."""
        found = (moment.steps for moment in self._moments if moment.image is image)
        return next(found, ())

    def _trim(self) -> None:
        """Forget the oldest moments, then the furthest ones ahead, until the rest is small."""
        while len(self._moments) > 1 and not self._is_small():
            if self._place > 0:
                del self._moments[0]
                self._place -= 1
            else:
                del self._moments[-1]

    def _is_small(self) -> bool:
        sizes = {
            id(image.pixels): image.pixels.nbytes
            for moment in self._moments
            for image in moment.images()
        }
        return len(self._moments) <= MOST_MOMENTS and sum(sizes.values()) <= MOST_BYTES
