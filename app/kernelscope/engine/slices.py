"""Filters of pictures, slice by slice over volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.request import Device, Request
from kernelscope.errors import InvalidParameter
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import AXES, Volume
from kernelscope.spec.blocks import Block
from kernelscope.spec.filter import Border, IntParameter

STAGE = "slices"
"""What progress is reported as."""


@dataclass(frozen=True, eq=False)
class SliceRequest(Request):
    """A request to run a filter of pictures on each slice of a scan; see `by_slices`.

    Attributes
    ----------
    axis : int
        Slices lie across this axis of the voxels: 0, 1 or 2 for z, y or x.
    """

    axis: int = 0

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.scan.planes.shape

    def describe(self, estimates: Mapping[str, Any] | None = None, *, brief: bool = False) -> str:
        return (
            f"{super().describe(estimates, brief=brief)}, slice by slice across {AXES[self.axis]}"
        )


def by_slices(
    scan: Scan,
    filter_id: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    axis: int = 0,
    border: Border = Border.REFLECT,
    device: Device = Device.AUTO,
    level: str | None = None,
    repeat: int = 1,
    memory_limit: int | None = None,
    reference: Volume | None = None,
    block: Block | None = None,
) -> SliceRequest:
    """Return a checked request; the arguments are those of `Request.create`.

    Raises
    ------
    InvalidParameter
        As `Request.create`, and for what slices cannot become: smaller, as border ``valid``
        makes them, or coloured.
    """
    if border is Border.VALID:
        raise InvalidParameter(
            "Slices have to keep their size, and border “valid” makes them smaller.",
            "Choose another border.",
        )
    first = picture_of(scan.volumes[0], axis, 0)
    one = Request.create(first, filter_id, parameters, border=border, block=block)
    if one.output_shape[2] > 1:
        raise InvalidParameter(
            f"{one.describe()}, makes colours, and slices have to stay grey.",
            "Choose other settings.",
        )
    return SliceRequest(
        scan,
        one.filter,
        one.parameters,
        border,
        device,
        level,
        repeat=repeat,
        memory_limit=memory_limit,
        reference=reference,
        block=block,
        axis=axis,
    )


def filter_slices(
    request: SliceRequest,
    run: Callable[[Request, Progress], Image],
    token: CancelToken,
    progress: Progress,
) -> Scan:
    """Return the scan with every slice of every volume filtered by `run`.

    A slice is a picture on which the brightest voxel of its volume is white: bytes stay as
    they are, everything else is scaled to floats up to 1 and back. The result has the types
    and the headers of the scan.

    Raises
    ------
    AppError
        What `run` raises.
    Cancelled
        If `token` was set meanwhile.
    """
    volumes = request.scan.volumes
    total = sum(volume.voxels.shape[request.axis] for volume in volumes)
    done = 0

    def report(stage: str, fraction: float) -> None:
        if stage == "compile" and not done:
            progress(stage, fraction)
        else:
            progress(STAGE, (done + (fraction if stage == "compute" else 0)) / total)

    results = []
    for volume in volumes:
        output: NDArray[Any] | None = None
        for index in range(volume.voxels.shape[request.axis]):
            token.check()
            picture = picture_of(volume, request.axis, index)
            filtered = run(_one(request, picture, done), report).planes[:, :, 0]
            if output is None:
                output = np.empty(volume.voxels.shape, filtered.dtype)
            np.moveaxis(output, request.axis, 0)[index] = filtered
            done += 1
        assert output is not None  # a volume has slices
        if output.dtype == np.float32:
            output *= _white(volume)
        results.append(volume.with_voxels(output))
    return Scan(tuple(results))


def _one(request: SliceRequest, picture: Image, number: int) -> Request:
    """Return the request for one slice; noise is to be new in every one."""
    parameters = dict(request.parameters)
    seed = next((p for p in request.filter.parameters if p.name == "seed"), None)
    if isinstance(seed, IntParameter):
        parameters["seed"] = (parameters["seed"] + number) % (seed.maximum + 1)
    return Request(
        picture,
        request.filter,
        MappingProxyType(parameters),
        request.border,
        request.device,
        request.level,
        repeat=request.repeat,
        memory_limit=request.memory_limit,
        cold=request.cold,
        block=request.block,
    )


def picture_of(volume: Volume, axis: int, index: int) -> Image:
    """Return a slice as it is filtered; see `filter_slices`."""
    pixels = np.ascontiguousarray(volume.voxels.take(index, axis))
    if pixels.dtype != np.uint8:
        pixels = pixels.astype(np.float32) / _white(volume)
    return Image.from_array(pixels, f"{volume.title}, slice {index + 1}")


def _white(volume: Volume) -> np.float32:
    """Return the value that counts as white where voxels are not bytes."""
    return np.float32(volume.value_range[1] if volume.value_range[1] > 0 else 1)
