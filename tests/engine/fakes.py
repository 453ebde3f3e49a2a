"""A backend that tests control."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import CPU_LEVELS, Level

Body = Callable[[Request, CancelToken, Progress], object]


class FakeBackend:
    """Runs `body` and returns the image of the request as it is."""

    def __init__(
        self,
        id: str = "cpu",
        body: Body = lambda request, token, progress: None,
        available: bool = True,
        levels: tuple[Level, ...] = CPU_LEVELS,
        mse: float | None = None,
    ) -> None:
        self.id = id
        self.name = id.upper()
        self.body = body
        self.closed = 0
        self.state = Availability(available, f"fake {self.name}")
        self._levels = levels
        self._mse = mse

    def availability(self) -> Availability:
        return self.state

    def facts(self) -> Iterator[FactGroup]:
        return iter(())

    def load(self) -> tuple[Fact, ...]:
        return ()

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return self._levels

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Image:
        with context.log.stage("compute"):
            self.body(request, context.token, context.progress)
        return request.image

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        return self._mse

    def close(self) -> None:
        self.closed += 1


def request(**options: Any) -> Request:
    """Return a request for the mean of a small image."""
    return Request.create(Image.from_array(np.zeros((4, 4), np.uint8)), "mean", **options)
