"""A backend under the tests' control, and a window on it."""

from __future__ import annotations

import threading

import numpy as np

from app.engine.backend import Availability
from app.engine.control import CancelToken, Progress
from app.engine.image import Image
from app.engine.request import Request
from app.engine.timing import Stopwatch
from app.filters.spec import CPU_LEVELS, FilterSpec, Level

NO_GPU = Availability(False, "No NVIDIA driver was found.", ("Install it.",))


class FakeCpu:
    """Inverts the picture; waits in the middle until the test lets it go on."""

    id = "cpu"
    name = "CPU"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Event()
        self.deaf = False
        """Whether it does not look at the token, as while compiling."""
        self.error: Exception | None = None
        self.requests: list[Request] = []

    def availability(self) -> Availability:
        return Availability(True, "test processor")

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return CPU_LEVELS

    def run(
        self,
        request: Request,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> Image:
        self.requests.append(request)
        progress("compute", 0.5)
        self.entered.set()
        while not self.go.wait(0.005):
            if not self.deaf:
                token.check()
        if self.error is not None:
            raise self.error
        shape = request.filter.output_shape(
            request.image.planes.shape, request.parameters, request.border
        )
        with stopwatch.stage("compute"):
            y, x = (
                (a - b) // 2 for a, b in zip(request.image.planes.shape[:2], shape[:2], strict=True)
            )
            cut = request.image.planes[y : y + shape[0], x : x + shape[1]]
            return Image.from_array(np.ascontiguousarray(255 - cut), request.image.title)

    def close(self) -> None:
        pass


class FakeGpu(FakeCpu):
    """A GPU that is there or not, as the test wants."""

    id = "gpu"
    name = "GPU"

    def __init__(self, state: Availability = NO_GPU) -> None:
        super().__init__()
        self.state = state

    def availability(self) -> Availability:
        return self.state

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.gpu_levels
