"""The authors' figures stand beside what they are about, and nothing else."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace

import pytest

from app.bench.cases import weights
from app.bench.figures import SOURCES, all_figures, beside
from app.filters import get
from app.paths import RESOURCES
from tests.bench.made_up import row


def test_every_line_of_the_file_is_a_figure() -> None:
    with (RESOURCES / "source-figures.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = all_figures()
    assert len(found) == len(lines) > 150
    assert Counter(figure.source for figure in found) == Counter(line["source"] for line in lines)
    for figure, line in zip(found, lines, strict=True):
        assert figure.variant.startswith(line["variant"])
        spec = get(figure.filter)
        for name, text in figure.parameters.items():
            spec.parameter(name).parse(text)
        if figure.level:
            levels = (*spec.cpu_levels, *spec.gpu_levels)
            assert figure.level in [level.id for level in levels]


def test_numbers_and_ranges() -> None:
    (serial,) = beside(row(asked=(256, 256)))
    assert (serial.quantity, serial.low, serial.high) == ("time", 1.296e-3, 1.296e-3)
    assert serial.describe() == "1.296 ms (parallel computing report no. 5: serial)"
    assert serial.origin.hardware == "Xeon Gold 6154 + RTX 2080 Ti"
    (volume,) = beside(
        row(
            filter="mri_nlm",
            parameters={"dimensions": "3d", "patch_radius": "1", "search_radius": "5"},
            asked=(130, 157, 189),
            device="gpu",
            level="shared",
        )
    )
    assert volume.describe() == "5.3 to 5.6 s (Salari 2019: 1 gpu)"


def test_the_speed_up_of_a_mask_of_any_weights() -> None:
    parameters = {"mask": get("mask").parameter("mask").format(weights(9))}
    mine = row(filter="mask", parameters=parameters, asked=(4096, 4096), device="gpu")
    levels = {
        level: [figure.describe() for figure in beside(replace(mine, level=level))]
        for level in ("global", "constant", "texture")
    }
    assert levels == {
        "global": ["12.7× (Korčuška 2013: global memory)"],
        "constant": ["22.8× (Korčuška 2013: constant memory)"],
        "texture": [],
    }


@pytest.mark.parametrize(
    "other",
    [
        {"parameters": {"size": "5"}},
        {"asked": (512, 512)},
        {"level": "parallel"},
        {"device": "gpu", "level": "tuned"},
        {"library": True},
        {"channels": 3},
        {"filter": "median"},
    ],
)
def test_nothing_stands_beside_what_they_did_not_measure(other: dict[str, object]) -> None:
    assert not list(beside(row(**{"asked": (256, 256)} | other)))


def test_every_source_is_named() -> None:
    assert {figure.source for figure in all_figures()} == set(SOURCES)
