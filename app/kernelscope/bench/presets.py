"""The experiments of the four sources as plans, and a short first run.

The published figures come from `kernelscope.bench.figures`; they were measured on other hardware.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kernelscope.base.errors import UnknownName
from kernelscope.bench.cases import subjects
from kernelscope.bench.data import HEAD_SIGMA, Content, Data
from kernelscope.bench.figures import PublishedFigure, all_figures, titled
from kernelscope.bench.plan import GPU, Plan, Sweep
from kernelscope.bench.sweeps import weights

_SIDES = (128, 256, 512, 1024, 2048, 4096)
"""Sides of the pictures in source F's tables and in its last graph."""

_GRAPH_SIDES = (128, 512, 1024, 4096)
"""Sides of the pictures in its other graphs."""

_LADDER_SIDES = (512, 2048, 4096)
"""Sides of the pictures of which the window shows recorded times."""

_MASKS = (3, 5, 7, 9)

_WHOLE = {"search": "image", "filter_sigma": 0.02, "weights": "gaussian"}
"""Source N's settings: it searches the whole image, with one filtering strength everywhere."""


@dataclass(frozen=True)
class Preset:
    """A named plan."""

    name: str
    """Named after the sources' experiments."""
    summary: str
    """Its purpose, in one sentence."""
    plan: Plan
    sources: str = ""
    """The sources whose figures are quoted, ``FMNV``; empty for none."""

    @property
    def title(self) -> str:
        """The name with the author of the source instead of its letter."""
        return titled(self.name)

    @cached_property
    def figures(self) -> tuple[PublishedFigure, ...]:
        """The published figures about the rows of the plan, including those of levels we lack."""
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


def _colours(*sides: int) -> tuple[Data, ...]:
    return tuple(Data(Content.NOISE, (side, side), channels=3) for side in sides)


def _custom(sides: tuple[int, ...], data: tuple[Data, ...]) -> Sweep:
    """Return a sweep over custom masks with “Divide by kernel size”."""
    masks = tuple({"mask": weights(side)} for side in sides)
    return Sweep(filter="mask", parameters=masks, data=data, fixed={"divisor": "count"})


_OF_THE_GPU = ("single-block", "global", "constant", "selection", "shared", "texture", "tuned")
"""The levels that the window shows for a GPU, of pictures."""


def _default_masks(data: tuple[Data, ...]) -> tuple[Sweep, ...]:
    """Return the other filters of a small neighbourhood, as the window proposes them."""
    names = "mean", "weighted_mean", "threshold_mean", "rotating_mask", "sobel", "laplace"
    return tuple(Sweep(filter=name, parameters=({},), data=data) for name in names)


def _medians(data: tuple[Data, ...]) -> Sweep:
    return Sweep(filter="median", parameters=tuple({"size": side} for side in _MASKS), data=data)


def _sobel(data: tuple[Data, ...]) -> Sweep:
    return Sweep(filter="sobel", parameters=({},), data=data)


def _laplace(data: tuple[Data, ...]) -> Sweep:
    """Return a sweep over the forms of 3×3 and 5×5; the thesis shows absolute values."""
    forms = tuple({"form": form, "negative": "absolute"} for form in ("4", "5x5"))
    return Sweep(filter="laplace", parameters=forms, data=data)


def _heads(components: int, *shapes: tuple[int, int, int]) -> tuple[Data, ...]:
    """Return heads of (width, height, slices)."""
    return tuple(
        Data(Content.HEAD, (depth, height, width), components) for width, height, depth in shapes
    )


def _volumes(dimensions: str, *radii: tuple[int, int]) -> tuple[dict[str, Any], ...]:
    """Return parameters for pairs (d, v): the radii of patches and of the search."""
    return tuple(
        {"dimensions": dimensions, "patch_radius": patch, "search_radius": search}
        for patch, search in radii
    )


def _mri(data: tuple[Data, ...], *parameters: dict[str, Any], **fixed: Any) -> Sweep:
    """Return a sweep of MRI NLM with given noise; estimating it is a separate experiment."""
    given = {"sigma_from": "given", "sigma": (HEAD_SIGMA,)}
    return Sweep(filter="mri_nlm", parameters=parameters, data=data, fixed=given | fixed)


_PHANTOM, _REAL = (256, 256, 37), (189, 157, 130)
"""Shapes of source V's volumes."""

_RADII = tuple(itertools.product((2, 1), (5, 3)))

_SHARED_BY_GPUS = (1, 2)
"""Numbers of GPUs in source V."""

_CUBES = (
    (64, 64, 64),
    (128, 128, 64),
    (128, 128, 128),
    (256, 256, 128),
    (256, 256, 256),
    (512, 512, 128),
    (512, 512, 256),
    (512, 512, 512),
)
"""Cubes of table 4-5."""

_PATCHES = (1, 2, 3, 4, 5)
"""Radii of table 4-6."""

_ULTRASOUND = (428, 247, 338), (396, 247, 338)
"""Volumes of table 4-6: a fetus, and a carotid artery."""


def _tables_of_v(components: int) -> Plan:
    """Return tables 4-1 and 4-2, or 4-3 and 4-4: eight rows for each of two volumes."""
    data = _heads(components, _PHANTOM, _REAL)
    return Plan(
        sweeps=tuple(_mri(data, *_volumes(dimensions, *_RADII)) for dimensions in ("3d", "2d")),
        repeat=7,
        longest=0.5,
        gpus=_SHARED_BY_GPUS,
    )


def _noise_models() -> tuple[dict[str, Any], ...]:
    """Return the eight experiments in a row of source V's tables: two noise models, four sigmas."""
    ways: tuple[dict[str, Any], ...] = (
        {"sigma_from": "given", "sigma": (HEAD_SIGMA,)},
        {"sigma_from": "volume"},
        {"sigma_from": "local", "window_radius": 1},
        {"sigma_from": "local", "window_radius": 2},
    )
    return tuple({"noise": noise, **way} for noise in ("gaussian", "rician") for way in ways)


_PRESETS = (
    _preset(
        "F tables 1-3",
        "Korčuška 2013, tables 1-3: custom mask, median and Sobel by the size of the picture.",
        Plan(
            sweeps=(
                _custom(_MASKS, _noise(*_SIDES)),
                _medians(_noise(*_SIDES)),
                _sobel(_noise(*_SIDES)),
            ),
            levels=("serial", "parallel", "shared", "tuned"),
        ),
        "F",
    ),
    _preset(
        "F graphs 1-8",
        "Korčuška 2013, graphs 1-8: its filters by mask size and memory level, in four sizes.",
        Plan(
            sweeps=(
                _custom(_MASKS, _noise(*_GRAPH_SIDES)),
                _medians(_noise(*_GRAPH_SIDES)),
                _sobel(_noise(*_GRAPH_SIDES)),
                _laplace(_noise(*_GRAPH_SIDES)),
            ),
            levels=("serial", "parallel", "global", "constant", "shared"),
        ),
        "F",
    ),
    _preset(
        "F graph 9",
        "Korčuška 2013, graph 9: Sobel by size on two machines. Measure on each machine, then draw "
        "both with --compare A B --plot DIR.",
        Plan(sweeps=(_sobel(_noise(*_SIDES)),), levels=("serial", "shared")),
        "F",
    ),
    _preset(
        "F level comparison (9x9, 4096²)",
        "Korčuška 2013: the gain of each memory level for a custom mask of 9×9.",
        Plan(sweeps=(_custom((9,), _noise(4096)),)),
        "F",
    ),
    _preset(
        "F bubble sort and selection",
        "Korčuška 2013: a median by sorting all values, by selecting the middle one, and by a "
        "histogram.",
        Plan(
            sweeps=(
                Sweep(
                    filter="median",
                    parameters=({"size": 3}, {"size": 9}),
                    data=_noise(1024),
                ),
            ),
            levels=(
                *("serial-bubble", "serial", "serial-huang", "parallel"),
                *("selection", "shared", "tuned"),
            ),
            repeat=7,
            longest=0.5,
        ),
    ),
    _preset(
        "F memory access (4096²)",
        "The cost of scattered access, and of local and mapped memory, where every level "
        "computes the same result.",
        Plan(
            sweeps=(Sweep(filter="negative", parameters=({},), data=_noise(4096)),),
            levels=("serial", "parallel", "mapped", "local", "uncoalesced", "global"),
        ),
    ),
    _preset(
        "M mean filter ladder (256²)",
        "Parallel computing report no. 5: a mean of 3×3 at every level from serial code to "
        "textures, on a photograph with salt-and-pepper noise.",
        Plan(
            sweeps=(
                Sweep(
                    filter="mean",
                    parameters=({"size": 3},),
                    data=(Data(Content.SALT_AND_PEPPER, (256, 256)),),
                ),
            )
        ),
        "M",
    ),
    _preset(
        "N NLM times",
        "Kasparidis, NLM report: non-local means that search the whole picture, by the sizes of "
        "picture and patch.",
        Plan(
            sweeps=(
                Sweep(
                    filter="nlm",
                    parameters=tuple({"patch": side} for side in (3, 5, 7)),
                    fixed=_WHOLE,
                    data=tuple(Data(Content.PHOTOGRAPH, (side, side)) for side in (64, 128, 256)),
                ),
            ),
            repeat=7,
            longest=3.0,
        ),
        "N",
    ),
    _preset(
        "V tables 4-1 and 4-2, one component",
        "Salari 2019: MRI NLM of one volume, by slices (2D) and by blocks (3D), for several "
        "search and patch radii, on one GPU and on two.",
        _tables_of_v(1),
        "V",
    ),
    _preset(
        "V tables 4-3 and 4-4, three components",
        "Salari 2019: MRI NLM of T1w, T2w and PDw volumes together, by slices (2D) and by "
        "blocks (3D), for several search and patch radii.",
        _tables_of_v(3),
        "V",
    ),
    _preset(
        "V noise models and windows",
        "Salari 2019: the cost of each way to set the noise level: given, estimated once, or "
        "mapped with windows of two sizes.",
        Plan(
            sweeps=(
                Sweep(
                    filter="mri_nlm",
                    parameters=_noise_models(),
                    data=_heads(1, _REAL),
                    fixed={"search_radius": 3},
                ),
            ),
            repeat=7,
            longest=0.5,
        ),
    ),
    _preset(
        "V table 4-5, by size",
        "Salari 2019: MRI NLM of cubes from 64³ to 512³ voxels, on one GPU and on two; its "
        "figure 4-2 plots this table.",
        Plan(
            sweeps=(_mri(_heads(1, *_CUBES), *_volumes("3d", (1, 5))),),
            levels=("parallel", "shared", "tuned"),
            repeat=7,
            longest=0.5,
            gpus=_SHARED_BY_GPUS,
        ),
        "V",
    ),
    _preset(
        "V table 4-6, by patch",
        "Salari 2019: MRI NLM of volumes with the size of two ultrasound scans, by the radius "
        "of the patches.",
        Plan(
            sweeps=(
                _mri(_heads(1, *_ULTRASOUND), *_volumes("3d", *((patch, 5) for patch in _PATCHES))),
            ),
            levels=("parallel", "shared", "tuned"),
            repeat=7,
            longest=0.5,
            gpus=(1,),
        ),
        "V",
    ),
    _preset(
        "Block sizes",
        "The effect of the block shape on the GPU, from 8×8 to 32×32 threads and one row of 256.",
        Plan(
            sweeps=(
                _custom((9,), _noise(4096)),
                Sweep(filter="mean", parameters=({"size": 3},), data=_noise(4096)),
                Sweep(filter="median", parameters=({"size": 9},), data=_noise(4096)),
                Sweep(
                    filter="nlm",
                    parameters=({"patch": 7},),
                    fixed=_WHOLE,
                    data=(Data(Content.PHOTOGRAPH, (256, 256)),),
                ),
            ),
            devices=(GPU,),
            levels=("global", "shared"),
            blocks=((8, 8), (16, 16), (32, 8), (32, 32), (256, 1)),
        ),
    ),
    _preset(
        "Levels by mask and size",
        "The gain of each level for a median and a custom mask of four sizes, on three sizes of "
        "picture.",
        Plan(
            sweeps=(
                _medians(_noise(*_LADDER_SIDES)),
                _custom(_MASKS, _noise(*_LADDER_SIDES)),
            ),
            levels=("serial", "parallel", *_OF_THE_GPU),
            longest=0.3,
        ),
    ),
    _preset(
        "Levels of other filters (2048²)",
        "The gain of each level for the other filters of a neighbourhood, and for a median and a "
        "custom mask of colour pictures.",
        Plan(
            sweeps=(
                *_default_masks(_noise(2048)),
                _medians(_colours(2048)),
                _custom(_MASKS, _colours(2048)),
            ),
            levels=("serial", "parallel", *_OF_THE_GPU),
            longest=0.3,
        ),
    ),
    _preset(
        "Quick look",
        "The gain of the GPU and of each level on this machine, in about 20 seconds.",
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
    """Return a preset by its name or by an unambiguous beginning of it, in upper or lower case."""
    found = [
        preset for preset in PRESETS.values() if preset.name.casefold().startswith(name.casefold())
    ]
    if len(found) != 1:
        names = "; ".join(preset.name for preset in found) or "; ".join(PRESETS)
        raise UnknownName(
            f"There is no preset “{name}”." if not found else f"“{name}” matches several presets.",
            f"Use one of: {names}.",
        )
    return found[0]
