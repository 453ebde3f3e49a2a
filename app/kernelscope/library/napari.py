"""The filters as widgets of napari, an image viewer, which makes them from these functions.

``kernelscope/napari.yaml``, which ``.ci/generate.py`` writes, names a function of this module for
each filter. napari makes a widget from the signature: an image layer, the parameters, a button to
run. The filter runs on a thread of napari's, and its result becomes a new layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.base.errors import AppError, InvalidImage
from kernelscope.engine.step import ESTIMATE, default_text
from kernelscope.images.volume import AXES
from kernelscope.library.functions import function_of
from kernelscope.library.heads import noise, phantom
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import IntParameter, Parameter
from kernelscope.schema.samples import Kind

LayerData = tuple[NDArray[Any], dict[str, Any], str]
"""Samples, properties and kind of a layer, as napari takes them."""

_LAYER = Annotated["napari.layers.Image", {"label": "Image"}]  # type: ignore[name-defined]  # noqa: F821
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_NAMED = inspect.Parameter.KEYWORD_ONLY


def __getattr__(name: str) -> Any:
    """Return the function for the widget of a filter."""
    for kind in Kind:
        spec = filters.discover(kind).get(name)
        if spec is not None:
            return widget_of(spec)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def widget_of(spec: FilterSpec) -> Callable[..., Any]:
    """Return a function of a layer and the parameters of a filter, for magicgui.

    It returns a worker of napari, which brings the result to the thread of the viewer. An image or
    a value that is refused becomes a notification.
    """
    # Only napari asks for a widget.
    from napari.qt.threading import FunctionWorker, thread_worker
    from napari.types import LayerDataTuple
    from napari.utils.notifications import show_error

    def function(image: Any, **values: Any) -> Any:
        refusals: list[AppError] = []

        def work() -> LayerData | None:
            try:
                read = {each.name: _read(each, values[each.name]) for each in spec.parameters}
                return filtered(spec, image, values | read)
            except AppError as error:
                refusals.append(error)
                return None  # which adds no layer

        def report() -> None:
            for error in refusals:
                show_error(str(error))

        return thread_worker(work, start_thread=True, connect={"finished": report})()

    result = FunctionWorker[LayerDataTuple]
    layer = inspect.Parameter("image", _POSITIONAL, annotation=_LAYER)
    controls = [
        inspect.Parameter(name, _NAMED, default=default, annotation=annotation)
        for name, default, annotation in _controls(spec)
    ]
    function.__name__ = function.__qualname__ = spec.id
    function.__doc__ = f"{spec.name}. {spec.summary}"
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [layer, *controls], return_annotation=result
    )
    function.__annotations__ = {"image": _LAYER, "return": result} | {
        each.name: each.annotation for each in controls
    }
    return function


def filtered(spec: FilterSpec, layer: Any, values: Mapping[str, Any]) -> LayerData:
    """Return the result of a filter for an image layer, at the place of that layer.

    `layer`: a picture, grey or RGB, or a volume, whose slices filters for pictures take. `values`:
    arguments of the function of the filter. Its `axis` counts for volumes only.
    """
    data = layer.data[0] if layer.multiscale else layer.data
    sides = 2 if layer.rgb else np.ndim(data)
    if sides != 3 and (sides != 2 or spec.kind is Kind.VOLUME):
        raise InvalidImage(
            f"{layer.name}: {spec.name} cannot filter an image of {sides} dimensions.",
            "Choose another layer.",
        )
    given = dict(values)
    if spec.kind is Kind.PICTURE and sides == 2:
        given["axis"] = None
        given["alpha"] = layer.rgb and np.shape(data)[-1] == 4
    result = function_of(spec)(data, **given)
    rgb = sides == 2 and result.ndim == 3
    properties = {"name": f"{layer.name} · {spec.name}", "rgb": rgb}
    shift = (np.array(np.shape(data)[:sides]) - result.shape[:sides]) / 2  # of a smaller result
    return result, properties | _placed(layer, shift), "image"


def _placed(layer: Any, shift: NDArray[np.float64]) -> dict[str, Any]:
    """Return the properties that place a result, which begins `shift` samples after its layer.

    napari applies scale, then shear and rotation, then the translation, and at last the affine.
    """
    shear = np.asarray(layer.shear, float)
    if shear.ndim == 1:  # the part above the diagonal
        shear, above = np.eye(len(layer.scale)), shear
        shear[np.triu_indices(len(shear), 1)] = above
    linear = np.asarray(layer.rotate) @ shear @ np.diag(layer.scale)
    found = {
        "scale": tuple(layer.scale),
        "rotate": layer.rotate,
        "shear": layer.shear,
        "translate": tuple(np.asarray(layer.translate) + linear @ shift),
        "affine": layer.affine.affine_matrix,
    }
    for name in ("units", "axis_labels"):
        if hasattr(layer, name):
            found[name] = getattr(layer, name)
    return found


def head() -> list[LayerData]:
    """Return a head of MRI with noise and without, as sample layers."""
    truth = phantom((91, 109, 91))
    noisy = noise(truth)
    return [
        (truth, {"name": "head, T1w, without noise"}, "image"),
        (noisy, {"name": "head, T1w, Rician noise"}, "image"),
    ]


def _controls(spec: FilterSpec) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, default and type of the controls of a filter.

    Whole numbers have a spin box, choices a list. Other values are text, as on the command line: a
    box for real numbers would round them, and none has a place for an estimate.
    """
    for parameter in spec.parameters:
        how = {"label": parameter.label, "tooltip": f"{parameter.help} ({parameter.allowed()})"}
        if parameter.named_values():
            choices = [(each.label, each.value) for each in parameter.named_values()]
            kind: Any = Annotated[str, {**how, "choices": choices}]
        elif isinstance(parameter, IntParameter) and not _is_text(parameter):
            limits = {"min": parameter.minimum, "max": parameter.maximum, "step": parameter.step}
            kind = Annotated[int, how | limits]
        else:
            kind = Annotated[str, how]
        yield parameter.name, _shown(parameter), kind
    if spec.kind is Kind.PICTURE:
        if len(spec.borders) > 1:
            borders = [str(border) for border in spec.borders]
            yield "border", borders[0], Annotated[str, {"label": "Border", "choices": borders}]
        yield "grey", False, Annotated[bool, {"label": "Convert to grey first"}]
        text = "Slices of volumes, perpendicular to"
        yield "axis", AXES[0], Annotated[str, {"label": text, "choices": list(AXES)}]
    devices = [str(device) for device in Device]
    yield "device", devices[0], Annotated[str, {"label": "Device", "choices": devices}]


def _is_text(parameter: Parameter) -> bool:
    is_spun = isinstance(parameter, IntParameter) and not parameter.has_estimate
    return not parameter.named_values() and not is_spun


def _shown(parameter: Parameter) -> Any:
    """Return the default of a control."""
    return default_text(parameter) if _is_text(parameter) else parameter.default


def _read(parameter: Parameter, value: Any) -> Any:
    """Return the value that a control stands for."""
    if not _is_text(parameter):
        return value
    if parameter.has_estimate and value.strip() == ESTIMATE:
        return ESTIMATE
    return parameter.parse(value)
