"""The CUDA backend as the engine sees it."""

from __future__ import annotations

import functools

from app.backends.cuda.probe import probe
from app.engine.backend import Availability
from app.engine.control import CancelToken, Progress
from app.engine.image import Image
from app.engine.request import Request
from app.engine.timing import Stopwatch
from app.errors import DeviceUnavailable
from app.filters.spec import GPU_LEVELS, FilterSpec, Level


class CudaBackend:
    """One NVIDIA GPU. This version finds out what is missing and runs nothing yet."""

    id = "gpu"
    name = "GPU"

    @functools.cached_property
    def _availability(self) -> Availability:
        return probe()

    def availability(self) -> Availability:
        return self._availability

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return GPU_LEVELS

    def run(
        self,
        request: Request,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> Image:
        raise DeviceUnavailable(self.availability().summary)

    def close(self) -> None:
        """Nothing is held yet."""
