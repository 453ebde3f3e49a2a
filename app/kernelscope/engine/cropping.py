"""Computes a region of a result from a crop of its picture."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernelscope.engine.region import Window, window
from kernelscope.engine.request import Measurement, Request
from kernelscope.engine.result import Result
from kernelscope.images.image import Image
from kernelscope.spec.crop import FIRST_ROW


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
    assert region is not None
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
