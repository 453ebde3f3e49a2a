"""The experiments of the four sources, as plans; and a first look.

The authors' figures come with `app.bench.figures`: they are theirs, from their hardware.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from app.bench.cases import Plan, Sweep, subjects, weights
from app.bench.data import HEAD_SIGMA, Content, Data
from app.bench.figures import Figure, all_figures
from app.errors import InvalidParameter

_SIDES = (128, 256, 512, 1024, 2048, 4096)
"""Of the pictures in source F."""

_MASKS = (3, 5, 7, 9)


@dataclass(frozen=True)
class Preset:
    """A named plan.

    Attributes
    ----------
    name : str
        As the sources' experiments are called.
    summary : str
        What it shows, in one sentence.
    plan : Plan
    sources : str
        The sources whose figures stand beside it, ``FMNV``; empty for none.
    """

    name: str
    summary: str
    plan: Plan
    sources: str = ""

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The authors' figures about what the plan measures, those included that we lack."""
        rows = [case.row() for sweep in self.plan.sweeps for case in subjects(sweep)]
        return tuple(
            figure
            for figure in all_figures()
            if figure.source in self.sources and any(map(figure.is_about, rows))
        )


def _preset(name: str, summary: str, plan: Plan, sources: str = "") -> Preset:
    return Preset(name, summary, replace(plan, name=name), sources)


def _noise(*sides: int) -> tuple[Data, ...]:
    return tuple(Data(Content.NOISE, (side, side)) for side in sides)


def _custom(sides: tuple[int, ...], data: tuple[Data, ...]) -> Sweep:
    """Return a sweep over custom masks with “Divide by kernel size”."""
    masks = tuple({"mask": weights(side)} for side in sides)
    return Sweep(filter="mask", parameters=masks, data=data, fixed={"divisor": "count"})


def _heads(components: int, *shapes: tuple[int, int, int]) -> tuple[Data, ...]:
    return tuple(Data(Content.HEAD, shape, components) for shape in shapes)


def _volumes(dimensions: str, *radii: tuple[int, int]) -> tuple[dict[str, Any], ...]:
    """Return parameters for pairs (d, v): the radii of patches and of the search."""
    return tuple(
        {"dimensions": dimensions, "patch_radius": patch, "search_radius": search}
        for patch, search in radii
    )


_PHANTOM, _REAL = (37, 256, 256), (130, 157, 189)
"""Shapes of source V's volumes: slices, rows, columns."""

_GIVEN = {"sigma_from": "given", "sigma": (HEAD_SIGMA,)}
"""Estimating the noise is not what the tables are about."""

_RADII = tuple(itertools.product((2, 1), (5, 3)))

_PRESETS = (
    _preset(
        "F tables 1-3",
        "Custom mask, median and Sobel against the size of the picture, as in the thesis.",
        Plan(
            sweeps=(
                _custom(_MASKS, _noise(*_SIDES)),
                Sweep(
                    filter="median",
                    parameters=tuple({"size": side} for side in _MASKS),
                    data=_noise(*_SIDES),
                ),
                Sweep(filter="sobel", parameters=({},), data=_noise(*_SIDES)),
            ),
            levels=("serial", "parallel", "shared", "tuned"),
        ),
        "F",
    ),
    _preset(
        "F level comparison (9x9, 4096²)",
        "What each memory level buys for a custom mask of 9×9.",
        Plan(sweeps=(_custom((9,), _noise(4096)),)),
        "F",
    ),
    _preset(
        "M mean filter ladder (256²)",
        "The mean of 3×3 from serial code to textures.",
        Plan(sweeps=(Sweep(filter="mean", parameters=({"size": 3},), data=_noise(256)),)),
        "M",
    ),
    _preset(
        "N NLM times",
        "Non-local means over the whole picture, by the size of picture and patch.",
        Plan(
            sweeps=(
                Sweep(
                    filter="nlm",
                    parameters=tuple({"patch": side} for side in (3, 5, 7)),
                    fixed={"search": "image"},
                    data=tuple(Data(Content.PHOTOGRAPH, (side, side)) for side in (64, 128, 256)),
                ),
            ),
            repeat=3,
            longest=10.0,
        ),
        "N",
    ),
    _preset(
        "V tables, one component",
        "MRI NLM of one volume, in slices and in space, by the radii.",
        Plan(
            sweeps=tuple(
                Sweep(
                    filter="mri_nlm",
                    parameters=_volumes(dimensions, *_RADII),
                    data=_heads(1, _PHANTOM, _REAL),
                    fixed=_GIVEN,
                )
                for dimensions in ("3d", "2d")
            ),
            repeat=3,
        ),
        "V",
    ),
    _preset(
        "V tables, three components",
        "MRI NLM of T1w, T2w and PDw together, in slices and in space, by the radii.",
        Plan(
            sweeps=tuple(
                Sweep(
                    filter="mri_nlm",
                    parameters=_volumes(dimensions, *radii),
                    data=data,
                    fixed=_GIVEN,
                )
                for dimensions, radii, data in (
                    ("3d", ((2, 5), (1, 5)), _heads(3, _PHANTOM)),
                    ("2d", ((2, 5), (1, 3)), _heads(3, _PHANTOM)),
                    ("3d", _RADII, _heads(3, _REAL)),
                    ("2d", _RADII, _heads(3, _REAL)),
                )
            ),
            repeat=3,
        ),
        "V",
    ),
    _preset(
        "Quick look",
        "What the GPU and each level buy here, in about 20 seconds.",
        Plan(
            sweeps=(
                _custom((9,), _noise(2048)),
                Sweep(filter="median", parameters=({"size": 5},), data=_noise(2048)),
            ),
            repeat=3,
            longest=0.3,
        ),
    ),
)

PRESETS = {preset.name: preset for preset in _PRESETS}
"""By name."""

QUICK_LOOK = PRESETS["Quick look"]


def get(name: str) -> Preset:
    """Return a preset by its name or, as on a command line, by how its name begins.

    Raises
    ------
    InvalidParameter
        If no name or more than one begins like this.
    """
    found = [
        preset for preset in PRESETS.values() if preset.name.casefold().startswith(name.casefold())
    ]
    if len(found) != 1:
        names = "; ".join(PRESETS)
        raise InvalidParameter(
            f"There is no preset “{name}”." if not found else f"“{name}” is not clear.",
            f"Use one of: {names}.",
        )
    return found[0]
