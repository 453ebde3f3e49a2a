"""Metadata of OME-Zarr (OME-NGFF 0.4 in Zarr 2, 0.5 in Zarr 3), as data.

A group holds a picture or volumes at several resolutions; its attributes name the axes of all, and
the path and the scale of each, the finest first. See https://ngff.openmicroscopy.org.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures.tiff_description import channel_of, window_of
from kernelscope.images.lengths import is_length, millimetres, unit_of
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel

if TYPE_CHECKING:
    from kernelscope.files.lazy import Head

LATEST = "0.5"
VERSIONS = {"0.4": 2, LATEST: 3}  # versions of the metadata, and those of Zarr that they belong to

_AXES = ("t", "c", "z", "y", "x")
_UNITS = {"nm": "nanometer", "µm": "micrometer", "mm": "millimeter", "m": "meter"}


@dataclass(frozen=True)
class Axis:
    name: str  # one of t, c, z, y and x
    scale: float = 1.0  # distance of samples, in `unit`
    unit: str = ""  # as the file states it; empty if it does not
    origin: float = 0.0  # position of the first sample, in `unit`


@dataclass(frozen=True)
class Multiscale:
    version: str  # a key of `VERSIONS`
    along: tuple[Axis, ...]  # in the order of the array
    path: str  # place of the array in the group
    name: str = ""  # that of the picture; empty without one
    levels: int = 1  # number of its resolutions
    omero: Mapping[str, Any] = field(default_factory=dict)
    """Names, colours and display ranges of its channels, as the file has them."""

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.along)

    @property
    def steps(self) -> dict[str, float]:
        """The distance of samples in millimetres by axis, where the unit is known."""
        found = {}
        for axis in self.along:
            step = axis.scale * (millimetres(axis.unit) or 0)
            if axis.name in "zyx" and is_length(step):
                found[axis.name] = float(f"{step:.15g}")
        return found

    @property
    def interval(self) -> float | None:
        """Seconds from one time to the next, where the unit is known."""
        seconds = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}
        times = (axis for axis in self.along if axis.name == "t" and axis.unit in seconds)
        return next((axis.scale * seconds[axis.unit] for axis in times), None)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(
            replace(
                channel_of(each.get("label"), each.get("color")), window=_window(each.get("window"))
            )
            for each in self.omero.get("channels", ())
        )

    def described(self) -> dict[str, bool]:
        """Return which further properties it has, by their names."""
        spatial = [axis for axis in self.along if axis.name in "zyx"]
        without = [axis for axis in spatial if millimetres(axis.unit) is None]
        return {
            "position": any(axis.origin for axis in spatial),
            "scale without a unit": any(axis.scale != 1 for axis in without),
            "name": bool(self.name),
        }


def parsed(attributes: Mapping[str, Any], level: int = 0) -> Multiscale:
    """Return the metadata of a level of a picture; 0 is the finest."""
    if "plate" in attributes or "bioformats2raw.layout" in attributes:
        raise Unreadable(
            "it is a collection of pictures.", "Name one of the folders in it, such as NAME/0."
        )
    inner = attributes.get("ome", attributes)
    try:
        found = inner["multiscales"][0]
        version = str(inner.get("version", found.get("version", "")))
        described = found["axes"]
        dataset = found["datasets"][level]
        if version not in VERSIONS:
            known = " and ".join(VERSIONS)
            raise Unreadable(
                f"its metadata are of version {version or 'unknown'}; {known} of OME-Zarr are read."
            )
        axes = tuple(str(axis["name"]) for axis in described)
        if len(set(axes)) != len(axes) or not {"y", "x"} <= set(axes) <= set(_AXES):
            raise Unreadable(f"its axes are {', '.join(axes)}; only t, c, z, y and x are known.")
        scales, origins = _placed((dataset, found), len(axes))
        units = [str(axis.get("unit") or "") for axis in described]
        return Multiscale(
            version,
            tuple(map(Axis, axes, scales, units, origins)),
            str(dataset["path"]),
            str(found.get("name") or ""),
            len(found["datasets"]),
            _omero(inner.get("omero")),
        )
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Unreadable(
            "its OME metadata are missing or damaged.",
            "Only OME-Zarr is read: a group with “multiscales” in its attributes.",
        ) from error


def _placed(holders: Sequence[Mapping[str, Any]], count: int) -> tuple[list[float], list[float]]:
    """Return distance and origin along each axis, as a data set and then its picture state them."""
    scales, origins = [1.0] * count, [0.0] * count
    for holder in holders:
        for each in holder.get("coordinateTransformations", ()):
            if each["type"] == "scale":
                factors = [float(factor) for factor in each["scale"]]
                scales = [a * b for a, b in zip(scales, factors, strict=True)]
                origins = [a * b for a, b in zip(origins, factors, strict=True)]
            elif each["type"] == "translation":
                shifts = [float(shift) for shift in each["translation"]]
                origins = [a + b for a, b in zip(origins, shifts, strict=True)]
    if not all(map(math.isfinite, (*scales, *origins))):
        raise ValueError("not finite")
    return scales, origins


def _window(found: object) -> tuple[float, float] | None:
    ends = [found.get(end) for end in ("start", "end")] if isinstance(found, dict) else []
    return window_of(*ends) if ends else None


def _omero(found: object) -> Mapping[str, Any]:
    """Return the part about channels, if it is sound: it is for display only."""
    if not isinstance(found, dict):
        return {}
    channels = found.get("channels")
    if not isinstance(channels, list) or not all(isinstance(each, dict) for each in channels):
        return {}
    return found


def described_by(head: Head, version: str = LATEST) -> Multiscale:
    """Return the metadata of a result whose input had none: in millimetres and seconds."""
    steps = head.steps
    unit, factor = unit_of(list(steps.values())) if steps else ("", 1.0)
    along = [Axis(n, float(f"{s / factor:.12g}"), _UNITS[unit]) for n, s in steps.items()]
    if head.interval:
        along.append(Axis("t", head.interval, "second"))
    omero: dict[str, Any] = {}
    if any(each != UNKNOWN_CHANNEL for each in head.channels):
        omero["channels"] = [
            {"label": each.name, "color": each.colour or "FFFFFF", "active": True}
            for each in head.channels
        ]
    return Multiscale(version, tuple(along), "", omero=omero)


def attributes_of(
    version: str,
    axes: Sequence[Axis],
    factors: Sequence[Sequence[int]],
    name: str = "",
    omero: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the attributes of a group with a pyramid.

    `factors`: for each level, named 0, 1, ..., the samples of level 0 along each axis that one of
    its samples is the mean of.
    """
    datasets = []
    for level, each in enumerate(factors):
        scale = [axis.scale * factor for axis, factor in zip(axes, each, strict=True)]
        # Samples are points: the mean of two lies half a step behind the first.
        shift = [
            axis.origin + axis.scale * (factor - 1) / 2
            for axis, factor in zip(axes, each, strict=True)
        ]
        transforms: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
        if any(shift):
            transforms.append({"type": "translation", "translation": shift})
        datasets.append({"path": str(level), "coordinateTransformations": transforms})
    multiscale = {
        **({"name": name} if name else {}),
        "axes": [_described(axis) for axis in axes],
        "datasets": datasets,
        "type": "mean",
    }
    more = {"omero": dict(omero)} if omero else {}
    if version == LATEST:
        return {"ome": {"version": version, "multiscales": [multiscale], **more}}
    return {"multiscales": [{"version": version, **multiscale}], **more}


def _described(axis: Axis) -> dict[str, str]:
    if axis.name == "c":
        return {"name": axis.name, "type": "channel"}
    unit = {"unit": axis.unit} if axis.unit else {}
    return {"name": axis.name, "type": "time" if axis.name == "t" else "space", **unit}
