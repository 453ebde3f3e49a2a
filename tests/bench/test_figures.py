"""Published figures are compared with matching rows, and with nothing else."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kernelscope.base.paths import RESOURCES
from kernelscope.bench.figures import (
    SCALING,
    SOURCES,
    SPEED_UP,
    TIME,
    PublishedFigure,
    Scope,
    absent,
    all_figures,
    beside,
    comparable,
)
from kernelscope.bench.presets import weights
from kernelscope.bench.rows import Row
from kernelscope.filters import get
from tests.bench.made_up import row


def test_every_line_of_the_file_is_a_figure() -> None:
    with (RESOURCES / "source-figures.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = all_figures()
    assert len(found) == len(lines) > 300
    assert Counter(figure.source for figure in found) == Counter(line["source"] for line in lines)
    for figure, line in zip(found, lines, strict=True):
        assert figure.variant.startswith(line["variant"])
        spec = get(figure.filter)
        for name, text in figure.parameters.items():
            spec.parameter(name).parse(text)
        if figure.level:
            levels = (*spec.levels("cpu"), *spec.levels("gpu"))
            assert figure.level in [level.id for level in levels]


def test_numbers_and_ranges() -> None:
    (serial,) = beside(row(asked=(256, 256)))
    assert (serial.quantity, serial.low, serial.high) == ("time", 1.296e-3, 1.296e-3)
    assert serial.describe() == "1.296 ms (parallel computing report no. 5: serial)"
    (shared,) = beside(row(asked=(256, 256), device="gpu", level="shared"))
    assert shared.describe() == (
        "0.01069 ms (parallel computing report no. 5: shared, kernel or whole run not stated)"
    )
    assert serial.origin.hardware == "Xeon Gold 6154 + RTX 2080 Ti"
    time, gain = beside(volume(3, patch="1", search="5", shape=(130, 157, 189)))
    assert time.describe() == "51 to 53 s (Salari 2019: 1 gpu, whole run)"
    assert gain.describe() == "103 to 116× (Salari 2019: 1 gpu, whole run)"
    double = volume(3, patch="1", search="5", shape=(130, 157, 189), gpus=2)
    assert [figure.amount() for figure in beside(double)] == ["34 to 36 s", "153 to 175×"]


def volume(components: int, *, patch: str, search: str, **changes: Any) -> Row:
    """Return a row of MRI NLM in space, in shared memory."""
    radii = {"dimensions": "3d", "patch_radius": patch, "search_radius": search}
    shape = changes.pop("shape", (37, 256, 256))
    return row(
        filter="mri_nlm",
        parameters=radii,
        channels=components,
        asked=shape,
        device="gpu",
        level="shared",
        **changes,
    )


def test_a_range_that_is_printed_backwards_is_quoted_so() -> None:
    gain = next(f for f in all_figures() if f.printed == (3119, 1686))
    assert (gain.low, gain.high, gain.amount()) == (1686, 3119, "3119 to 1686×")


def remarks() -> dict[tuple[str, ...], str]:
    def key(figure: PublishedFigure) -> tuple[str, ...]:
        radii = (figure.parameters[name] for name in ("dimensions", "patch_radius"))
        return (*radii, figure.parameters["search_radius"], figure.amount())

    return {key(figure): figure.remark for figure in all_figures() if figure.remark}


def test_what_a_source_contradicts_itself_is_said_beside_it() -> None:
    assert remarks() == {
        ("3d", "2", "3", "6.1 to 6.6 s"): implied("188 to 230", "21 to 30"),
        ("3d", "1", "3", "2.2 to 4 s"): implied("167 to 178", "6 to 6.6"),
        ("2d", "2", "5", "1 to 1.9 s"): implied("140 to 166", "2.2 to 4"),
        ("3d", "2", "5", "108 to 111 s"): (
            "as printed: 10.8-11.1, read as 108 to 111, which its speed-up implies"
        ),
        ("3d", "1", "5", "64 to 73 s"): (
            "as printed: 64-73, perhaps 64.73, which fits the other sizes"
        ),
        ("3d", "5", "5", "158.6 s"): "as printed: less than with d = 4",
        ("3d", "5", "5", "225.9 s"): "as printed: less than with d = 4",
    }
    time, _ = beside(volume(3, patch="2", search="3"))
    assert time.describe().endswith(f"whole run) [{time.remark}]")


def implied(gain: str, seconds: str) -> str:
    return f"as printed; its speed-up of {gain}× implies {seconds} s"


def test_the_speed_up_of_a_mask_of_any_weights() -> None:
    parameters = {"mask": get("mask").parameter("mask").format(weights(9))}
    mine = row(filter="mask", parameters=parameters, asked=(4096, 4096), device="gpu")
    levels = {
        level: [figure.describe() for figure in beside(replace(mine, level=level))]
        for level in ("global", "constant", "texture")
    }
    assert levels == {
        "global": ["12.7× (Korčuška 2013: global memory, whole run)"],
        "constant": ["22.8× (Korčuška 2013: constant memory, whole run)"],
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
        {"device": "gpu", "level": "shared", "block": (16, 16)},
        {"channels": 3},
        {"filter": "median"},
    ],
)
def test_nothing_stands_beside_what_they_did_not_measure(other: dict[str, object]) -> None:
    assert not list(beside(row(**{"asked": (256, 256)} | other)))


def test_every_source_is_named() -> None:
    assert {figure.source for figure in all_figures()} == set(SOURCES)


# Like beside like ------------------------------------------------------------------------


def custom(level: str) -> Row:
    parameters = {"mask": get("mask").parameter("mask").format(weights(9))}
    return row(
        filter="mask",
        parameters=parameters,
        asked=(4096, 4096),
        device="gpu",
        level=level,
        seconds=(1.0,),
    )


def test_speed_ups_of_whole_runs_stand_beside_whole_runs_only() -> None:
    mine = custom("constant")
    assert [f.low for f in comparable(mine, SPEED_UP, waiting=True)] == [22.8]
    assert not list(absent([mine], SPEED_UP, waiting=True))
    assert not list(comparable(mine, SPEED_UP, waiting=False))
    assert list(absent([mine], SPEED_UP, waiting=False)) == [
        "The figures of Korčuška 2013 are times of whole runs: see the plots with transfers."
    ]
    for each in (custom("texture"), replace(mine, seconds=())):
        assert not list(comparable(each, SPEED_UP, waiting=True))
        assert not list(absent([each], SPEED_UP, waiting=False)), "nothing is left out"


@pytest.mark.parametrize("waiting", [False, True])
def test_times_of_a_scope_that_is_not_stated_stand_beside_neither(waiting: bool) -> None:
    serial = row(asked=(256, 256), seconds=(1.0,))
    shared = replace(serial, device="gpu", level="shared")
    assert [f.variant for f in comparable(serial, TIME, waiting=waiting)] == ["serial"]
    assert not list(comparable(shared, TIME, waiting=waiting))
    (reason,) = absent([serial, shared], TIME, waiting=waiting)
    assert reason.startswith("parallel computing report no. 5 does not state whether")


def test_a_level_of_others_stands_beside_none_of_ours() -> None:
    mine = replace(volume(1, patch="1", search="5", shape=(64, 64, 64)), seconds=(1.0,))
    assert [f.low for f in comparable(mine, TIME, waiting=True)] == [0.56]
    assert [f.low for f in comparable(replace(mine, gpus=2), TIME, waiting=True)] == [0.55]
    others = [f for f in all_figures() if f.is_about(mine) and not f.level]
    assert sorted(f.low for f in others) == [0.12, 0.49, 0.56, 0.99]
    assert all("Cuomo" in f.variant for f in others)


def test_averages_stand_beside_no_row() -> None:
    averages = [figure for figure in all_figures() if figure.average]
    assert sorted(f.low for f in averages) == [1.94, 117, 171, 176, 244, 670, 1302]
    assert [f.low for f in averages if f.quantity == SCALING] == [1.94]
    mine = volume(3, patch="2", search="3")
    assert not any(figure.is_about(mine) for figure in averages)
    assert not any(figure.scope is Scope.KERNEL for figure in all_figures())
