"""Computes a region of a result from a crop of its picture, and prepares boxes of volumes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region, Window, window
from kernelscope.engine.request import Measurement, Request
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.errors import InvalidParameter
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.spec.crop import FIRST_ROW, PART, Box


class Crops:
    """The last crop of each picture: the same object for the same window.

    A GPU recognises it and does not upload it again. Entries are removed with their pictures.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: weakref.WeakKeyDictionary[Image, tuple[range, range, Image]]
        self._last = weakref.WeakKeyDictionary()

    def of(self, image: Image, part: Window) -> Image:
        """Return the `part` of `image`; the image itself if that is all of it."""
        if (part.rows, part.columns) == (range(image.height), range(image.width)):
            return image
        with self._lock:
            rows, columns, crop = self._last.get(image, (None, None, image))
            if (rows, columns) != (part.rows, part.columns):
                crop = Image.from_array(part.take(image.planes), image.title)
                self._last[image] = (part.rows, part.columns, crop)
        return crop


_crops = Crops()


def execute_region(request: Request, run: Callable[[Request], Result]) -> Result:
    """Return the region of the result of `request`, which has one, computed by `run`.

    Its times are those of the crop. It is not compared with a reference.
    """
    step, region = request.step, request.region
    assert isinstance(region, Region)
    image, spec = request.image, step.filter
    radius = spec.radius(step.parameters)
    part = window(region, image.planes.shape, radius, step.border, spec.crop)
    measured = request.measured
    if spec.crop.rows:
        values = measured.values if measured else {}
        measured = Measurement({**values, FIRST_ROW: part.rows.start}, 0.0)
    crop = Request(
        _crops.of(image, part), step, request.options, measured=measured, live=request.live
    )
    result = run(crop)
    planes = np.ascontiguousarray(part.inside.of(result.output.planes))
    return replace(result, request=request, output=Image.from_array(planes, image.title))


class Resolved:
    """The last parameters of each scan with what depends on its voxels, such as sigma.

    A box of a volume is filtered with those of the whole: its own voxels would give others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: weakref.WeakKeyDictionary[Scan, tuple[Step, Mapping[str, Any]]]
        self._last = weakref.WeakKeyDictionary()

    def of(self, request: Request) -> Mapping[str, Any]:
        """Return the resolved parameters of a request; the first time takes a while."""
        scan, step = request.scan, request.step
        with self._lock:
            known, values = self._last.get(scan, (None, {}))
            if known != step:
                values = step.filter.resolve(scan.planes, request.known)
                self._last[scan] = (step, values)
        return values


_resolved = Resolved()


def resolved_for(request: Request, box: Box) -> Request:
    """Return `request` with everything that its plan needs to compute a box alone."""
    return replace(request, measured=Measurement({**_resolved.of(request), PART: box}, 0.0))


def check_box(request: Request, backend: Backend) -> None:
    """Refuse a box of a volume that a backend computes only as a whole.

    Raises
    ------
    InvalidParameter
        On a GPU, except for filters that run slice by slice.
    """
    if isinstance(request.region, Box) and not request.by_slices and backend.id != Device.CPU:
        raise InvalidParameter(
            f"The {backend.name} filters volumes as a whole, so no slice is shown before a run.",
            "Run (F5) computes it; so does Live on the CPU, slice by slice.",
        )
