"""The page of limits: made from the files, with every goal beside what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelscope.base.paths import RESOURCES
from tests.scripts import load_script

FOLDER = RESOURCES / "bench"


@pytest.fixture(scope="module")
def limits_page() -> ModuleType:
    with pytest.MonkeyPatch.context() as path:
        path.syspath_prepend(FOLDER)
        return load_script(FOLDER / "limits_page.py")


def lines(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_page_is_made_from_the_files(limits_page: ModuleType) -> None:
    assert limits_page.PAGE.read_text(encoding="utf-8") == limits_page.page()


def test_every_row_of_the_files_has_its_goal(limits_page: ModuleType) -> None:
    """A row that was renamed in `limits.py` would leave its goal without a time."""
    measured = limits_page.rows_of(limits_page.read("gpu-limits"), *limits_page.TIMED)
    assert len(measured) > 30
    assert set(measured) <= {goal.name for goal in limits_page.KERNELS}


def test_a_goal_is_reached_up_to_its_bound(limits_page: ModuleType) -> None:
    goals = [limits_page.Goal(name, "9", 2.0) for name in ("at", "above", "unmeasured")]
    after = {"at": {"ms": 2.0}, "above": {"ms": 2.001}}
    table = lines(limits_page.comparison(goals, {}, after))
    assert [(row[0], row[5]) for row in table[2:]] == [
        ("at", "yes"),
        ("above", "no"),
        ("unmeasured", ""),
    ]
    assert table[4][3] == "not timed"


def test_the_floor_is_the_larger_of_copy_and_operations(limits_page: ModuleType) -> None:
    goals = [limits_page.Goal("copied", "", 3.0, 0.5), limits_page.Goal("computed", "", 3.0, 4.0)]
    after = {name: {"ms": 8.0, "floor ms": 2.0} for name in ("copied", "computed")}
    table = lines(limits_page.comparison(goals, {"copied": {"ms": 9.0}}, after))
    assert table[2] == ["copied", "", "9", "8", "3", "no", "2", "4.00"]
    assert table[3] == ["computed", "", "", "8", "3", "no", "4", "2.00"]


def test_turns_are_medians_of_the_clock(limits_page: ModuleType) -> None:
    def report(*seconds: float) -> dict[str, Any]:
        theirs = {"clock": [0.002], "processor": [9.0]}
        ours = {"clock": list(seconds), "processor": [9.0]}
        return {"rows": [{"case": "mean 3", "seconds": {"parallel": ours, "OpenCV": theirs}}]}

    found = lines(limits_page.turns(report(0.004, 0.005, 0.009), report(0.009, 0.001, 0.003)))
    assert found[2] == ["mean 3", "5", "3", "2", "1.50"]


def test_a_file_that_is_missing_is_empty(
    limits_page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_page, "FOLDER", tmp_path)
    assert limits_page.read("gpu-limits") == {}
    (tmp_path / "gpu-limits.json").write_text(json.dumps({"types": {"rows": []}}))
    assert limits_page.rows_of(limits_page.read("gpu-limits"), "types", "runs") == {}
