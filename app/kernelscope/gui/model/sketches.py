"""Sketches: small pictures of the effect that each filter would have on the picture that is open.

A sketch must be true of its filter. A reduced picture has less noise and finer edges than the
picture itself, so that a median of 3×3 would look like one of 21×21 on it. A sketch is therefore a
part of the result, pixel for pixel, from the middle of the view. Only a filter that draws a pattern
of the picture's size is shown on the whole picture, reduced::

    scene (picture, centre), step  --sketch-->  Sketch   the part, or how long it would take

Sketches are computed on one thread, and given up when they take too long; the part that was done
by then gives the estimate of the cost.

Run as a program, it compiles their code ahead. Numba compiles one function at a time in a process:
while a filter is compiled for a thumbnail, which takes up to 20 s the first time on a computer, no
other filter could start. The other process compiles with low priority, and the window loads the
code from the cache on the disk in a few milliseconds::

    window   {"key": "...", "recipe": "...", "dtype": "uint8", "channels": 1}  -->  this process
    window   <--  "..."  the key, once that code is in the cache
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TextIO
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base import jit
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.base.parallel import core_count
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, settings_of
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import estimate
from kernelscope.gui.model.freshness import pixels_of
from kernelscope.images.image import Image
from kernelscope.images.reduction import LARGEST_FACTOR, reduced
from kernelscope.schema.samples import Kind

WIDTH, HEIGHT = 72, 54  # pixels of a sketch, at most

PATIENCE = 0.25
"""Seconds of computing that a sketch may take: twenty such filters are shown within 5 s."""

_ESTIMATED_FROM = 256
"""Side of the part in the middle of the view from which strengths are estimated."""

_PICTURES = 4  # pictures whose sketches are kept

_OPTIONS = RunOptions(device=Device.CPU)


@dataclass(frozen=True, eq=False)
class ViewedPicture:
    image: Image  # the open picture, or a slice of the open volumes
    centre: tuple[int, int]  # column and row in the middle of the view
    anchor: object  # the open picture: sketches are kept as long as it is open
    name: str = ""  # of the image among those of the anchor

    @property
    def key(self) -> tuple[str, tuple[int, int]]:
        """Scenes of one anchor with equal keys give the same sketches."""
        return self.name, self.centre


@dataclass(frozen=True, eq=False)
class Sketch:
    """The answer for one filter: the samples of the result, None without a picture."""

    planes: NDArray[Any] | None = None
    place: str = ""  # the part of the picture that it shows
    problem: str = ""  # why there is no picture
    cost: float | None = None
    """Seconds that the whole picture should take here, where that is the problem."""


class _Deadline(CancelToken):
    """Ends a run after some seconds of computing, and estimates how many it would have taken."""

    def __init__(self, other: CancelToken, seconds: float) -> None:
        super().__init__()
        self._other, self._seconds = other, seconds
        self._first: tuple[float, float] | None = None
        self.expected: float | None = None
        """Seconds for the whole run, once the deadline has passed."""

    def progress(self, stage: str, fraction: float) -> None:
        if stage != "compute":
            return
        now = time.perf_counter()
        if self._first is None:
            self._first = now, fraction
            return
        begun, before = self._first
        if now - begun > self._seconds and fraction > before:
            self.expected = (now - begun) / (fraction - before)
            self.cancel()

    @property
    def cancelled(self) -> bool:
        return super().cancelled or self._other.cancelled

    def check(self) -> None:
        self._other.check()
        super().check()


def sketch(
    scene: ViewedPicture,
    step: Step,
    backend: Backend,
    token: CancelToken,
    patience: float = PATIENCE,
) -> Sketch:
    """Return the sketch of a step by one thread of a CPU backend; takes a while, or `Cancelled`."""
    if step.filter.kind is Kind.VOLUME:
        return Sketch(problem="Filters volumes as a whole: Run (F5) computes it.")
    try:
        step = _with_estimates(scene, step)
        token.check()
        if step.filter.whole(step.parameters):
            return _of_whole(scene, step, backend, token, patience)
        request, place = _request(scene, step)
        planes, seconds = _run(request, backend, token, patience)
    except AppError as error:
        return Sketch(problem=error.message)
    if planes is None:
        whole = Request(scene.image, step, _OPTIONS)
        growth = pixels_of(whole) / pixels_of(request)
        return Sketch(problem="Too slow for a thumbnail.", cost=seconds * growth / core_count())
    return Sketch(planes, place)


def _run(
    request: Request, backend: Backend, token: CancelToken, patience: float
) -> tuple[NDArray[Any] | None, float]:
    """Return the result, None if it would take more than `patience` seconds, and its seconds."""
    deadline = _Deadline(token, patience)
    backends = {Device.CPU.value: backend}
    try:
        result = execute(request, backends, deadline, deadline.progress, learn=False)
    except Cancelled:
        if deadline.expected is None:
            raise
        return None, deadline.expected
    return result.image.planes, result.seconds


def _of_whole(
    scene: ViewedPicture, step: Step, backend: Backend, token: CancelToken, patience: float
) -> Sketch:
    """Return the sketch, or the cost, of a filter of all pairs of pixels from a reduced picture."""
    small = _reduced(scene.image)
    planes, seconds = _run(Request(small, step, _OPTIONS, live=True), backend, token, patience)
    if small is scene.image and planes is not None:
        return Sketch(planes, "the whole picture")
    growth = scene.image.width * scene.image.height / (small.width * small.height)
    cost = seconds * growth**2
    if cost <= patience:
        whole, _ = _run(Request(scene.image, step, _OPTIONS, live=True), backend, token, 2 * cost)
        if whole is not None:
            part, place = _middle(scene, whole.shape)
            return Sketch(part.of(whole), place)
    return Sketch(problem="Every pixel looks at the whole picture.", cost=cost / core_count())


def kind_of_sketch(scene: ViewedPicture, step: Step) -> str:
    """Return a text that is equal for sketches that need the same compiled code."""
    if step.filter.kind is Kind.VOLUME:
        return step.filter.id
    request = Request(scene.image, replace(step, border=step.filter.borders[0]), _OPTIONS)
    # The size of the picture is part of the kind of some; code does not depend on it.
    kind = request.cost_key.split(", whole,")[0]
    return ", ".join((kind, step.border, *step.estimates))


def _request(scene: ViewedPicture, step: Step) -> tuple[Request, str]:
    whole = Request(scene.image, step, _OPTIONS, live=True)
    if step.filter.uncroppable(step.parameters):
        small = _reduced(scene.image)
        request = Request(small, step, _OPTIONS, live=True)
        return request, f"the whole picture, reduced to {small.width}×{small.height} pixels"
    region, place = _middle(scene, whole.whole_shape)
    return replace(whole, region=region), place


def _middle(scene: ViewedPicture, shape: tuple[int, ...]) -> tuple[Region, str]:
    height, width = shape[:2]
    rows, columns = min(HEIGHT, height), min(WIDTH, width)
    shift = (scene.image.width - width) // 2, (scene.image.height - height) // 2
    left = _within(scene.centre[0] - shift[0] - columns // 2, width - columns)
    top = _within(scene.centre[1] - shift[1] - rows // 2, height - rows)
    return (
        Region(top, left, rows, columns),
        f"{columns}×{rows} pixels from the middle of the view, as they are",
    )


def _within(first: int, last: int) -> int:
    return max(0, min(first, last))


def _reduced(image: Image) -> Image:
    factor = max(1, math.ceil(image.width / WIDTH), math.ceil(image.height / HEIGHT))
    if factor > LARGEST_FACTOR:
        step = math.ceil(factor / LARGEST_FACTOR)
        return _reduced(Image.from_array(image.pixels[::step, ::step].copy(), image.title))
    if factor == 1:
        return image
    return Image.from_array(reduced(image.planes, factor), image.title)


def _with_estimates(scene: ViewedPicture, step: Step) -> Step:
    """Return the step with numbers for all parameters, estimated from the middle of the view."""
    names = step.estimates
    if not names:
        return step
    side, image = _ESTIMATED_FROM, scene.image
    left = _within(scene.centre[0] - side // 2, image.width - side)
    top = _within(scene.centre[1] - side // 2, image.height - side)
    part = image.pixels[top : top + side, left : left + side]
    middle = Image.from_array(part.copy(), image.title)
    request = Request(middle, replace(step, border=step.filter.borders[0]), _OPTIONS)
    return step.with_numbers(estimate(request, names)).fixed


class Sketches:
    """The sketches of the last pictures, by filter and settings."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, tuple[object, dict[Hashable, Sketch]]]
        self._known = WeakKeyDictionary()  # by the anchor of a scene: its key, and the sketches

    def of(self, scene: ViewedPicture, step: Step) -> Sketch | None:
        key, sketches = self._known.get(scene.anchor, (None, {}))
        return sketches.get(settings_of(step, scene.image)) if key == scene.key else None

    def keep(self, scene: ViewedPicture, step: Step, sketch: Sketch) -> None:
        key, sketches = self._known.pop(scene.anchor, (None, {}))
        sketches = sketches if key == scene.key else {}
        sketches[settings_of(step, scene.image)] = sketch
        self._known[scene.anchor] = scene.key, sketches
        while len(self._known) > _PICTURES:
            del self._known[next(iter(self._known))]


_NOISE_SIDE = 80
"""Side of the picture that is filtered: its values do not matter, but they must differ."""

_HURRY = 0.02  # seconds of computing for each filter ahead: only its code matters

_NICENESS = 15


def order(scene: ViewedPicture, step: Step) -> str:
    planes = scene.image.planes
    return json.dumps(
        {
            "key": kind_of_sketch(scene, step),
            "recipe": Recipe((step,)).to_json(),
            "dtype": planes.dtype.name,
            "channels": planes.shape[2],
        }
    )


def serve(orders: Iterable[str], answers: TextIO) -> None:
    """Compile for each line of `orders`, and write its key when that is done."""
    backend = CpuBackend(threads=1)
    try:
        for line in orders:
            asked = json.loads(line)
            (step,) = Recipe.from_json(asked["recipe"]).steps
            scene = _stand_in(asked["dtype"], asked["channels"])
            sketch(scene, step, backend, CancelToken(), _HURRY)
            answers.write(f"{asked['key']}\n")
            answers.flush()
    finally:
        backend.close()


def _stand_in(dtype: str, channels: int) -> ViewedPicture:
    """Return a picture of noise, for which the same code is compiled as for others of its type."""
    noise = np.random.default_rng(0).random((_NOISE_SIDE, _NOISE_SIDE, channels), np.float32)
    white = 1 if dtype == "float32" else np.iinfo(dtype).max
    image = Image.from_array((noise * white).astype(dtype), "noise")
    return ViewedPicture(image, (_NOISE_SIDE // 2, _NOISE_SIDE // 2), image)


if __name__ == "__main__":
    with contextlib.suppress(AttributeError, OSError):  # there is no such thing on Windows
        os.nice(_NICENESS)
    jit.load_numba()  # decides on the place of the cache
    if jit.can_cache():  # or nobody could use the code
        serve(sys.stdin, sys.stdout)
