"""Numbers of the form that are estimated from the input before a live run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelscope.engine.request import Request
from kernelscope.engine.steps import estimate
from kernelscope.gui.session.session import Session
from kernelscope.gui.work.background import Background


class Estimates:
    """Estimates the numbers of the form that are marked so, once for each input and settings.

    - `session`: has the numbers.
    - `background`: runs the estimate.
    """

    def __init__(self, session: Session, background: Background) -> None:
        self._session, self._background = session, background
        self._known: object = None
        """The input and the settings to which the numbers in the form belong."""
        self._pending: object = None
        """Those of the numbers that are being estimated; None while none are."""

    @property
    def pending(self) -> bool:
        """Whether numbers are being estimated."""
        return self._pending is not None

    def begin(
        self, wanted: Request, then: Callable[[], None], failed: Callable[[Exception], None]
    ) -> bool:
        """Return whether numbers have to be estimated first; ``then()`` follows."""
        names = wanted.step.estimates
        if not names:
            return False
        key = _key(wanted)
        if key == self._known:
            return False
        if key == self._pending:
            return True  # moving the view meanwhile asks again
        self._pending = key

        def show(values: dict[str, float]) -> None:
            self._pending = None
            current = self._session.subject.wanted()
            if current is not None and _key(current) == key:
                self._known = key
                self._session.set_estimates(wanted.step.filter.id, values)
            then()

        def give_up(error: Exception) -> None:
            self._pending = None
            failed(error)

        self._background.start("live-estimate", lambda: estimate(wanted, names), show, give_up)
        return True


def _key(wanted: Request) -> object:
    return replace(wanted, estimated=False).work
