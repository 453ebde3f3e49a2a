"""Runs one request from start to end, on the calling thread."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from app.engine.backend import Backend
from app.engine.control import CancelToken, Progress, no_progress
from app.engine.request import Device, Request, Result
from app.engine.timing import Stopwatch
from app.errors import DeviceUnavailable, InvalidParameter, OutOfMemory
from app.filters.spec import Level

_logger = logging.getLogger(__name__)


def execute(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
) -> Result:
    """Compute `request` on the device it asks for.

    Parameters
    ----------
    backends : mapping
        Backends by id; ``cpu`` is always there.

    Raises
    ------
    AppError
        For everything the user can mend; an explicit choice of a device never falls back.
    Cancelled
        If `token` was set meanwhile.
    """
    token = token or CancelToken()
    backend, notices = _choose(request, backends)
    level = _level(request, backend)
    _logger.info(
        "%s: %s, %s %s", request.image.describe(), request.describe(), backend.name, level.name
    )
    stopwatch = Stopwatch()
    try:
        image = backend.run(request, level, stopwatch, token, progress)
    except MemoryError:
        raise OutOfMemory(
            f"There is not enough memory to filter {request.image.describe()}.",
            "Close other programs or use a smaller image.",
        ) from None
    result = Result(
        request,
        image,
        backend.id,
        level.id,
        stopwatch.stages,
        (*notices, *stopwatch.notices),
        tuple(stopwatch.metrics),
        stopwatch.launch,
    )
    _logger.info(
        "Done in %.3f ms, %.1f megapixels/s", result.seconds * 1e3, result.megapixels_per_second
    )
    return result


def _choose(request: Request, backends: Mapping[str, Backend]) -> tuple[Backend, tuple[str, ...]]:
    """Return the backend for a request, and what to tell the user about the choice."""
    if request.device is not Device.AUTO:
        backend = backends.get(request.device.value)
        if backend is None:
            raise DeviceUnavailable(f"This program has no {request.device.upper()} backend.")
        state = backend.availability()
        if not state.available:
            raise DeviceUnavailable(
                f"The {backend.name} cannot be used: {state.summary}",
                "Choose CPU or Auto; “info” lists what a GPU needs.",
            )
        return backend, ()
    if request.level is not None:
        for backend in backends.values():
            if backend.availability().available and any(
                level.id == request.level for level in backend.levels(request.filter)
            ):
                return backend, ()
    return backends[Device.CPU.value], ()


def _level(request: Request, backend: Backend) -> Level:
    levels = backend.levels(request.filter)
    if request.level is None:
        return levels[-1]
    for level in levels:
        if level.id == request.level:
            return level
    offered = ", ".join(level.id for level in levels)
    raise InvalidParameter(
        f"{request.filter.name} has no level “{request.level}” on the {backend.name}.",
        f"Use one of {offered}.",
    )
