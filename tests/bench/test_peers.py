"""Libraries compute the same as the filters: otherwise ratios would be meaningless."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.base.errors import AppError
from kernelscope.bench import peers
from kernelscope.bench.data import Content, Data
from kernelscope.bench.peers import plain_c
from kernelscope.bench.presets import cases
from kernelscope.bench.rows import Difference
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.schema.borders import Border

ROUNDED = {
    ("SciPy", "mean"): 2,  # cut off, along each axis
    ("SciPy", "sobel"): 1,  # of half a level
    ("SciPy", "mask"): 1,
    ("OpenCV", "gaussian"): 1,
    ("OpenCV", "weighted_mean"): 1,
    ("OpenCV", "greyscale"): 1,
    ("OpenCV", "nlm"): 1,  # whole-number weights
    ("scikit-image", "nlm"): 25,  # weights below exp(-5) count as none
}
"""Where a library rounds otherwise: the largest difference in levels."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "filter_id"),
    [
        (library.name, name)
        for library in peers.discover().values()
        if not library.on_card
        for name in library.makers
    ],
)
def test_equal_results(library: str, filter_id: str, backends: dict[str, Backend]) -> None:
    if library.startswith("C ") and not plain_c.compiler():
        pytest.skip("there is no C compiler")
    spec = filters.get(filter_id)
    defaults = spec.bench
    image = Data(Content.NOISE, (40, 33), defaults.channels).make()
    compared = 0
    for parameters in cases(spec, [3, 5]):
        request = Request.create(
            image, filter_id, parameters, border=defaults.border, device=Device.CPU
        )
        found = peers.counterpart(
            library, filter_id, request.image.pixels, request.step.parameters, defaults.border
        )
        if found is None:
            continue
        compared += 1
        ours = execute(request, backends).image.pixels
        difference = Difference.between(ours, found.result())
        assert difference.largest <= ROUNDED.get((library, filter_id), 0), (parameters, difference)
        assert 0 < found.seconds(cold=True) < 10
    assert compared


@pytest.mark.parametrize("divisor", ["one", "count", "sum"])
@pytest.mark.parametrize("library", ["OpenCV", "SciPy"])
def test_divisors_of_the_mask(library: str, divisor: str, backends: dict[str, Backend]) -> None:
    image = Data(Content.NOISE, (20, 21)).make()
    mask = ((1, 2, 1), (2, 4, 2), (1, 2, 2))
    request = Request.create(image, "mask", {"mask": mask, "divisor": divisor}, device=Device.CPU)
    found = peers.counterpart(
        library, "mask", request.image.pixels, request.step.parameters, Border.REFLECT
    )
    assert found is not None
    ours = execute(request, backends).image.pixels
    assert Difference.between(ours, found.result()).largest <= 1


@pytest.mark.parametrize(
    ("library", "filter_id", "changes", "border"),
    [
        ("OpenCV", "median", {}, Border.REFLECT),
        ("OpenCV", "mean", {}, Border.WRAP),
        ("SciPy", "mean", {}, Border.REDUCE),
        ("SciPy", "mean", {}, Border.KEEP),
        ("OpenCV", "nlm", {}, Border.MIRROR),
        ("scikit-image", "nlm", {"weights": "uniform", "search": "image"}, Border.MIRROR),
        ("SciPy", "sobel", {"form": "directions"}, Border.REFLECT),
        ("SciPy", "sobel", {"form": "winner"}, Border.REFLECT),
        ("OpenCV", "sobel", {"form": "angle"}, Border.REFLECT),
        ("OpenCV", "greyscale", {"rounding": "floor"}, Border.REFLECT),
        ("SciPy", "mask", {"negative": "offset"}, Border.REFLECT),
        ("OpenCV", "laplace", {"negative": "clip"}, Border.REFLECT),
    ],
)
def test_what_libraries_do_not_have(
    library: str, filter_id: str, changes: dict[str, Any], border: Border
) -> None:
    values = filters.get(filter_id).validate(changes)
    pixels = np.zeros((8, 8, 3) if filter_id == "greyscale" else (8, 8), np.uint8)
    assert peers.counterpart(library, filter_id, pixels, values, border) is None


@pytest.mark.parametrize(
    "pixels",
    [np.zeros((8, 8), np.uint16), np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), np.float32)],
    ids=["16 bit", "colour", "float"],
)
def test_only_grey_bytes_are_compared(pixels: Any) -> None:
    assert peers.counterpart("SciPy", "mean", pixels, {"size": 3}, Border.REFLECT) is None


def test_versions_of_what_is_there() -> None:
    found = peers.versions()
    assert {"OpenCV", "SciPy", "scikit-image"} <= set(found)
    assert found["SciPy"].startswith("1.")


def test_without_a_c_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_c, "compiler", lambda: "")
    assert plain_c.version.__wrapped__() == ""
    with pytest.raises(AppError, match="There is no C compiler"):
        plain_c.library.__wrapped__(np.dtype(np.uint8))


def test_npp_needs_cupy() -> None:
    npp = replace(peers.discover()["NPP"], module="no_such_module")
    assert npp.missing() == "CuPy, through which NPP runs, is not installed."


def test_libraries_are_found_in_the_order_of_tables() -> None:
    loops = "C -O2", "C -O2, size known"
    assert peers.names() == ("OpenCV", "SciPy", "scikit-image", *loops, "NPP", "CuPy")
    on_card = [each.name for each in peers.libraries("gpu", "mean")]
    on_host = [each.name for each in peers.libraries("cpu", "mean")]
    assert (on_host, on_card) == (["OpenCV", "SciPy", *loops], ["NPP", "CuPy"])


def test_only_npp_is_compared_inside() -> None:
    """Its filters have one border; all others are compared up to the rim."""
    assert [each.name for each in peers.discover().values() if each.inside_only] == ["NPP"]
