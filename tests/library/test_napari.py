"""The widgets of napari: their manifest, and filters on layers.

Most tests put modules of their own in the place of napari's. The last ones need napari itself,
with Qt; importing it warns, which ends other runs of tests::

    python -m pytest -o filterwarnings=default tests/library/test_napari.py
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.library import napari
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from tests.patience import PATIENCE

Result = TypeVar("Result")

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
    rotate: Any = None
    shear: Any = None
    affine: Any = None

    def __post_init__(self) -> None:
        sides = len(self.scale)
        if self.rotate is None:
            self.rotate = np.eye(sides)
        if self.shear is None:
            self.shear = np.zeros(sides * (sides - 1) // 2)
        matrix = np.eye(sides + 1) if self.affine is None else self.affine
        self.affine = SimpleNamespace(affine_matrix=matrix)


def random(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(4).integers(0, 255, shape, np.uint8)


class Worker(Generic[Result]):
    """The worker of napari, as far as the widgets use it; it works when it is created."""

    def __init__(self, work: Callable[[], Any], finished: Callable[[], None]) -> None:
        self.result = work()
        finished()


Notes = list[str]


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Put modules in the place of those of napari; return the errors that it would show."""
    shown: Notes = []

    def thread_worker(
        work: Callable[[], Any], start_thread: bool, connect: dict[str, Callable[[], None]]
    ) -> Callable[[], Worker[Any]]:
        assert start_thread
        return lambda: Worker(work, **connect)

    modules: dict[str, dict[str, Any]] = {
        "napari": {},
        "napari.qt": {},
        "napari.qt.threading": {"FunctionWorker": Worker, "thread_worker": thread_worker},
        "napari.types": {"LayerDataTuple": tuple},
        "napari.utils": {},
        "napari.utils.notifications": {"show_error": shown.append},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return shown


def run(name: str, layer: Any, **values: Any) -> Any:
    """Return the result of a widget with `values` in its controls."""
    function = getattr(napari, name)
    controls = inspect.signature(function).parameters.values()
    given = {each.name: each.default for each in controls if each.name != "image"} | values
    return function(layer, **given).result


@pytest.mark.usefixtures("notes")
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


@pytest.mark.usefixtures("notes")
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


def test_rotation_and_affine_of_a_layer_are_kept(notes: Notes) -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    affine = np.array([[1.0, 0.5, 7.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    layer = Layer(
        random(20, 20), scale=(2.0, 3.0), rotate=turn, shear=np.array([0.25]), affine=affine
    )
    _, properties, _ = run("mean", layer, size=5, border="valid")
    np.testing.assert_array_equal(properties["rotate"], turn)
    np.testing.assert_array_equal(properties["shear"], [0.25])
    np.testing.assert_array_equal(properties["affine"], affine)
    # Two samples further along both axes: sheared, (4 + 1.5, 6), and then turned.
    np.testing.assert_allclose(properties["translate"], [-6.0, 5.5])


def test_numbers_are_text_like_on_the_command_line(notes: Notes) -> None:
    image = random(16, 17)
    result, _, _ = run("nlm", Layer(image), filter_sigma="0.05", patch_sigma="1,5")
    np.testing.assert_array_equal(result, ks.nlm(image, filter_sigma=0.05, patch_sigma=1.5))
    chosen, _, _ = run("nlm", Layer(image), patch="5")
    np.testing.assert_array_equal(chosen, ks.nlm(image, patch=5))
    assert run("nlm", Layer(image), patch_sigma="x") is None
    assert "“x” is not a number" in notes[0]


@pytest.mark.usefixtures("notes")
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
def test_layers_that_do_not_go_with_a_filter(
    notes: Notes, name: str, layer: Layer, message: str
) -> None:
    assert run(name, layer) is None
    assert notes[0].startswith(message)
    assert len(notes) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("notes")
def test_only_filters_are_found() -> None:
    with pytest.raises(AttributeError, match="no_such_filter"):
        napari.no_such_filter  # noqa: B018
    assert [layer[2] for layer in napari.head()] == ["image", "image"]


@pytest.mark.slow
def test_napari_finds_the_filters() -> None:
    npe2 = pytest.importorskip("npe2")
    found = npe2.PluginManifest.from_file(Path(ks.__file__).with_name("napari.yaml"))
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
    qtbot = request.getfixturevalue("qtbot")
    widget = magicgui.magic_factory(getattr(napari, spec.id))()
    names = [each.name for each in widget if each.name != "call_button"]
    assert names == list(inspect.signature(getattr(napari, spec.id)).parameters)
    data = random(5, 8, 9) if spec.kind is Kind.VOLUME else random(16, 17)
    worker = widget(image=layers.Image(data, name="cells", scale=[2] * data.ndim))
    results: list[Any] = []
    worker.returned.connect(results.append)
    qtbot.waitUntil(lambda: bool(results), timeout=round(1000 * PATIENCE))
    layer = layers.Layer.create(*results[0])
    np.testing.assert_array_equal(layer.data, getattr(ks, spec.id)(data), strict=True)
    assert tuple(layer.scale) == (2,) * data.ndim
    widget.close()


@pytest.mark.slow
def test_results_and_refusals_in_a_running_napari() -> None:
    """In a process of its own, because a result on the thread of the worker ended it."""
    pytest.importorskip("napari")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("napari_viewer.py"))],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    image = np.random.default_rng(0).integers(0, 255, (16, 17), np.uint8)
    assert outcome == {
        "layers": ["cells", "cells · Median"],
        "sum": int(ks.median(image).sum()),
        "on_main_thread": [True],
        "notes": [
            [
                "Notification",  # an error with its traceback would be an ErrorNotification
                "cells: MRI NLM cannot filter an image of 2 dimensions. Choose another layer.",
            ]
        ],
    }
