"""Level *tuned* of volumes, emulated: rows of tiles that share a line, and thin volumes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.mri_nlm import SPEC
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.levels import SERIAL, TUNED
from tests.contract.test_volumes import assert_close, make, run

pytestmark = pytest.mark.slow

THIN = ((1, 1, 1), (1, 40, 3), (40, 2, 1), (2, 3, 70), (3, 5, 59), (5, 9, 31))
"""Slices of one voxel, rows and columns thinner than the halo; blocks with many turns and none."""

CASES: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (1, {"noise": "gaussian", "search_radius": (2, 1, 3)}),
    (1, {"dimensions": "2d", "patch_radius": 2}),
    (1, {"sigma_from": "local", "window_radius": 1}),
    (2, {"sigma": (9.0, 14.0), "search_radius": (5, 2, 1)}),
    (3, {"patch_radius": (1, 2, 1)}),
    (3, {"sigma_from": "adaptive", "noise": "gaussian", "dimensions": "2d"}),
    (4, {"patch_radius": 2, "search_radius": 1}),
]


@pytest.mark.parametrize(("components", "changes"), CASES)
def test_thin_volumes_equal_those_of_the_processor(
    components: int, changes: dict[str, Any], emulator: EmulatorBackend
) -> None:
    parameters = {"search_radius": 2, "sigma_from": "given", "sigma": (20.0,), "beta": 1.0}
    for shape in THIN:
        voxels = make(shape, components)
        scan = Scan(
            tuple(
                Volume.from_array(np.ascontiguousarray(voxels[..., c])) for c in range(components)
            )
        )
        request = Request.create(scan, SPEC.id, {**parameters, **changes})
        wanted = run(SPEC.id, voxels, {**parameters, **changes}, SERIAL.id)
        actual = emulator.run(request, TUNED, RunContext()).planes
        assert_close(actual, wanted, f"{shape}")
