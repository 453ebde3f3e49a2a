"""The widgets of napari: their manifest, and filters on layers.

The last two tests need napari and magicgui; importing them warns, which ends other runs of tests::

    python -m pytest -o filterwarnings=default tests/library/test_napari.py
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.library import manifest, napari
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.samples import Kind
from tests.patience import PATIENCE

SPECS = [spec for kind in Kind for spec in filters.discover(kind).values()]


@dataclass
class Layer:
    """An image layer of napari, as far as the filters look at it."""

    data: Any
    rgb: bool = False
    multiscale: bool = False
    name: str = "cells"
    scale: Any = (1.0, 1.0)
    translate: Any = (0.0, 0.0)


def random(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(4).integers(0, 255, shape, np.uint8)


def run(name: str, layer: Any, **values: Any) -> tuple[NDArray[Any], dict[str, Any], str]:
    """Return the result of a widget with `values` in its controls."""
    function = getattr(napari, name)
    controls = inspect.signature(function).parameters.values()
    given = {each.name: each.default for each in controls if each.name != "image"} | values
    done: tuple[NDArray[Any], dict[str, Any], str] = function(layer, **given).result(PATIENCE)
    return done


def test_manifest_is_that_of_the_specs() -> None:
    """If not: python -m kernelscope.library."""
    assert manifest.FILE.read_text(encoding="utf-8") == manifest.text()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_widget_as_it_opens_has_the_result_of_the_function(spec: FilterSpec) -> None:
    is_volume = spec.kind is Kind.VOLUME
    data = random(5, 8, 9) if is_volume else random(16, 17)
    result, properties, kind = run(
        spec.id, Layer(data, scale=(1,) * data.ndim, translate=(0,) * data.ndim)
    )
    np.testing.assert_array_equal(result, getattr(ks, spec.id)(data), strict=True)
    assert kind == "image"
    assert properties["name"] == f"cells · {spec.name}"
    assert properties["rgb"] == (result.ndim == 3 and not is_volume)


def test_colours_and_slices() -> None:
    colours = random(12, 13, 3)
    result, properties, _ = run("median", Layer(colours, rgb=True), size=5, border="wrap")
    np.testing.assert_array_equal(result, ks.median(colours, size=5, border="wrap"))
    assert properties["rgb"]

    volume = random(7, 8, 3)
    layer = Layer(volume, scale=(2, 1, 1), translate=(0, 0, 0))
    result, properties, _ = run("median", layer, axis="y")
    np.testing.assert_array_equal(result, ks.median(volume, axis="y"))
    assert (properties["rgb"], properties["scale"]) == (False, (2, 1, 1))


def test_a_smaller_result_stays_in_place() -> None:
    layer = Layer(random(20, 20), scale=(2.0, 3.0), translate=(10.0, 0.0))
    result, properties, _ = run("mean", layer, size=5, border="valid")
    assert result.shape == (16, 16)
    assert properties["translate"] == (14.0, 6.0)


def test_numbers_are_text_like_on_the_command_line() -> None:
    image = random(16, 17)
    result, _, _ = run("nlm", Layer(image), filter_sigma="0.05", patch_sigma="1,5")
    np.testing.assert_array_equal(result, ks.nlm(image, filter_sigma=0.05, patch_sigma=1.5))
    with pytest.raises(ks.InvalidParameter, match="“x” is not a number"):
        run("nlm", Layer(image), patch_sigma="x")


def test_the_first_level_of_a_pyramid_is_filtered() -> None:
    image = random(16, 17)
    result, _, _ = run("median", Layer([image, image[::2, ::2]], multiscale=True))
    np.testing.assert_array_equal(result, ks.median(image))


@pytest.mark.parametrize(
    ("name", "layer", "message"),
    [
        ("mri_nlm", Layer(random(8, 9)), "cells: MRI NLM cannot filter an image of 2 dimensions"),
        ("mri_nlm", Layer(random(8, 9, 3), rgb=True), "cells: MRI NLM cannot filter"),
        ("median", Layer(random(2, 3, 8, 9)), "cells: Median cannot filter an image of 4 dim"),
    ],
)
def test_layers_that_do_not_go_with_a_filter(name: str, layer: Layer, message: str) -> None:
    with pytest.raises(ks.InvalidImage, match=message):
        run(name, layer)


def test_only_filters_are_found() -> None:
    with pytest.raises(AttributeError, match="no_such_filter"):
        napari.no_such_filter  # noqa: B018
    assert [layer[2] for layer in napari.head()] == ["image", "image"]


@pytest.mark.slow
def test_napari_finds_the_filters() -> None:
    npe2 = pytest.importorskip("npe2")
    found = npe2.PluginManifest.from_file(manifest.FILE)
    found.validate_imports()
    commands = {each.command for each in found.contributions.widgets}
    assert commands == {f"kernelscope.{spec.id}" for spec in SPECS}


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
@pytest.mark.filterwarnings("ignore")  # of other people's code
def test_napari_makes_widgets(spec: FilterSpec, request: pytest.FixtureRequest) -> None:
    layers = pytest.importorskip("napari.layers")
    magicgui = pytest.importorskip("magicgui")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    request.getfixturevalue("qapp")
    widget = magicgui.magic_factory(getattr(napari, spec.id))()
    names = [each.name for each in widget if each.name != "call_button"]
    assert names == list(inspect.signature(getattr(napari, spec.id)).parameters)
    data = random(5, 8, 9) if spec.kind is Kind.VOLUME else random(16, 17)
    future = widget(image=layers.Image(data, name="cells", scale=[2] * data.ndim))
    layer = layers.Layer.create(*future.result(PATIENCE))
    np.testing.assert_array_equal(layer.data, getattr(ks, spec.id)(data), strict=True)
    assert tuple(layer.scale) == (2,) * data.ndim
    widget.close()
