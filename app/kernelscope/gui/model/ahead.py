"""Compiles the code of sketches ahead, in a process of its own.

Numba compiles one function at a time in a process: while a filter is compiled for a thumbnail,
which takes up to 20 s the first time on a computer, no other filter could start, not even one that
is compiled already. Here another process compiles, with low priority, and the window then loads the
code from the cache on the disk in a few milliseconds::

    window   {"key": "...", "recipe": "...", "dtype": "uint8", "channels": 1}  -->  this process
    window   <--  "..."  the key, once that code is in the cache
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from typing import TextIO

import numpy as np

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base import jit
from kernelscope.engine.control import CancelToken
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.gui.model.sketches import ViewedPicture, kind_of_sketch, sketch
from kernelscope.images.image import Image

_SIDE = 80
"""Side of the picture that is filtered: its values do not matter, but they must differ."""

_PATIENCE = 0.02
"""Seconds of computing for each filter: only its code matters."""

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
            sketch(scene, step, backend, CancelToken(), _PATIENCE)
            answers.write(f"{asked['key']}\n")
            answers.flush()
    finally:
        backend.close()


def _stand_in(dtype: str, channels: int) -> ViewedPicture:
    """Return a picture of noise, for which the same code is compiled as for others of its type."""
    noise = np.random.default_rng(0).random((_SIDE, _SIDE, channels), np.float32)
    white = 1 if dtype == "float32" else np.iinfo(dtype).max
    image = Image.from_array((noise * white).astype(dtype), "noise")
    return ViewedPicture(image, (_SIDE // 2, _SIDE // 2), image)


if __name__ == "__main__":
    with contextlib.suppress(AttributeError, OSError):  # there is no such thing on Windows
        os.nice(_NICENESS)
    jit.load_numba()  # decides on the place of the cache
    if jit.can_cache():  # or nobody could use the code
        serve(sys.stdin, sys.stdout)
