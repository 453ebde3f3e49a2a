"""Metadata of OME-Zarr (OME-NGFF 0.4 in Zarr 2, 0.5 in Zarr 3), as data.

A group holds a picture or volumes at several resolutions; its attributes name the axes of all, and
the path and the scale of each, the finest first. See https://ngff.openmicroscopy.org.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelscope.files.formats import Unreadable
from kernelscope.images.volume import Spacing

LATEST = "0.5"
VERSIONS = {"0.4": 2, LATEST: 3}
"""Versions of the metadata, and those of Zarr that they belong to."""

_MILLIMETRES = {
    "angstrom": 1e-7,
    "nanometer": 1e-6,
    "micrometer": 1e-3,
    "millimeter": 1.0,
    "centimeter": 10.0,
    "meter": 1e3,
}
_AXES = ("t", "c", "z", "y", "x")


@dataclass(frozen=True)
class Multiscale:
    """The finest resolution of a picture.

    Attributes
    ----------
    version : str
        A key of `VERSIONS`.
    axes : tuple of str
        Names, of t, c, z, y and x, in the order of the array.
    path : str
        Place of the array in the group.
    spacing : tuple of float, optional
        Distance of samples along z, y and x in millimetres; None if the units are not stated.
    """

    version: str
    axes: tuple[str, ...]
    path: str
    spacing: Spacing | None


def parsed(attributes: Mapping[str, Any]) -> Multiscale:
    """Return the first picture that the attributes of a group describe.

    Raises
    ------
    Unreadable
        If there is none, or of a version or with axes that are not known.
    """
    if "plate" in attributes or "bioformats2raw.layout" in attributes:
        raise Unreadable(
            "it is a collection of pictures.", "Name one of the folders in it, such as NAME/0."
        )
    inner = attributes.get("ome", attributes)
    try:
        found = inner["multiscales"][0]
        version = str(inner.get("version", found.get("version", "")))
        described = found["axes"]
        dataset = found["datasets"][0]
        if version not in VERSIONS:
            known = " and ".join(VERSIONS)
            raise Unreadable(
                f"its metadata are of version {version or 'unknown'}; {known} of OME-Zarr are read."
            )
        axes = tuple(str(axis["name"]) for axis in described)
        if len(set(axes)) != len(axes) or not {"y", "x"} <= set(axes) <= set(_AXES):
            raise Unreadable(f"its axes are {', '.join(axes)}; only t, c, z, y and x are known.")
        steps = _scale(found, len(axes), _scale(dataset, len(axes), [1.0] * len(axes)))
        return Multiscale(version, axes, str(dataset["path"]), _spacing(described, steps))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(
            "its OME metadata are missing or damaged.",
            "Only OME-Zarr is read: a group with “multiscales” in its attributes.",
        ) from error


def _scale(holder: Mapping[str, Any], count: int, steps: list[float]) -> list[float]:
    """Return steps, multiplied by the scale that a data set or a picture states."""
    for each in holder.get("coordinateTransformations", ()):
        if each["type"] == "scale":
            factors = [float(factor) for factor in each["scale"]]
            steps = [a * b for a, b in zip(steps, factors, strict=True)]
    return steps


def _spacing(axes: Sequence[Mapping[str, Any]], steps: Sequence[float]) -> Spacing | None:
    found = {"z": 1.0}
    for axis, step in zip(axes, steps, strict=True):
        if axis["name"] in ("z", "y", "x"):
            unit = _MILLIMETRES.get(str(axis.get("unit", "")))
            if unit is None or not 0 < step * unit < float("inf"):
                return None
            found[axis["name"]] = step * unit
    return found["z"], found["y"], found["x"]


def attributes_of(
    version: str, axes: Sequence[str], spacing: Spacing | None, factors: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Return the attributes of a group with a pyramid.

    Parameters
    ----------
    factors : sequence of sequence of int
        For each level, named 0, 1, ..., the samples of level 0 along each axis that one of its
        samples is the mean of.
    """
    steps = dict(zip(("z", "y", "x"), spacing or (1.0, 1.0, 1.0), strict=True))
    scales = [steps.get(axis, 1.0) for axis in axes]
    datasets = []
    for level, each in enumerate(factors):
        scale = [step * factor for step, factor in zip(scales, each, strict=True)]
        # Samples are points: the mean of two lies half a step behind the first.
        shift = [step * (factor - 1) / 2 for step, factor in zip(scales, each, strict=True)]
        transforms: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
        if level:
            transforms.append({"type": "translation", "translation": shift})
        datasets.append({"path": str(level), "coordinateTransformations": transforms})
    multiscale = {
        "axes": [_axis(name, known=spacing is not None) for name in axes],
        "datasets": datasets,
        "type": "mean",
    }
    if version == LATEST:
        return {"ome": {"version": version, "multiscales": [multiscale]}}
    return {"multiscales": [{"version": version, **multiscale}]}


def _axis(name: str, *, known: bool) -> dict[str, str]:
    if name == "c":
        return {"name": name, "type": "channel"}
    unit = {"unit": "millimeter"} if known else {}
    return {"name": name, "type": "space", **unit}
