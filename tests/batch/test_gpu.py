"""A batch on a card: the bytes of the processor, from one or several queues of kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.big.batch.conductor import Batch
from kernelscope.big.batch.item import FileState
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import find_items
from kernelscope.engine.backend import Backend, close_all
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_recipe
from kernelscope.files import read_image, write_image
from kernelscope.images.image import Image

RECIPE = Recipe((Step.create("median", {"size": 5}), Step.create("sobel", {})))


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 2])
def test_results_are_those_of_the_processor(count: int, tmp_path: Path) -> None:
    """Two backends share the card, as those of two cards share the queue."""
    (tmp_path / "in").mkdir()
    random = np.random.default_rng(0)
    for number in range(24):
        pixels = random.integers(0, 256, (300, 200 + number), np.uint8)
        write_image(Image.from_array(pixels), tmp_path / f"in/{number:02}.bmp")
    items = find_items([tmp_path / "in"], tmp_path / "out").items
    cpu, gpus = CpuBackend(), [CudaBackend() for _ in range(count)]
    first, *more = (dict[str, Backend](gpu=gpu, cpu=cpu) for gpu in gpus)
    journal = Journal(tmp_path / "out", RECIPE)
    try:
        batch = Batch(RECIPE, items, first, RunOptions(Device.GPU), more=more)
        outcomes = batch.run(journal, CancelToken())
        assert {(each.status, each.device) for each in outcomes} == {(FileState.DONE, "GPU tuned")}
        for item in items:
            image = read_image(item.source)
            *_, expected = execute_recipe(RECIPE, image, {"cpu": cpu})
            made = read_image(item.target).pixels
            np.testing.assert_array_equal(made, expected.image.pixels)
    finally:
        journal.close()
        close_all([cpu, *gpus])
