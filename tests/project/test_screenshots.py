"""No picture of the manual is older than the recorded figures that it shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernelscope.base.paths import RESOURCES

PICTURES, REPORTS = RESOURCES / "screenshots", RESOURCES / "bench"
WITH_FIGURES = {"window", "recorded", "bench", "memory-ladder"}


def made() -> dict[str, dict[str, Any]]:
    """Return what ``make_screenshots.py`` wrote down about each picture."""
    found: dict[str, dict[str, Any]] = json.loads((PICTURES / "made.json").read_text("utf-8"))
    return found


def outdated(pictures: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[str]:
    """Yield the pictures that show figures of reports that are others or newer today."""
    for name, picture in pictures.items():
        for file, digest in picture["reports"].items():
            content = (folder / file).read_bytes() if (folder / file).is_file() else b""
            day = json.loads(content or "{}").get("machine", {}).get("Date", "")[:10]
            if hashlib.sha256(content).hexdigest()[:16] != digest or picture["day"] < day:
                yield f"{name} ({file})"


def test_no_picture_is_older_than_its_figures() -> None:
    assert not list(outdated(made(), REPORTS)), "run python resources/make_screenshots.py"


def test_every_picture_has_its_day_and_its_reports() -> None:
    assert {path.stem for path in PICTURES.glob("*.png")} == set(made())
    assert {name for name, picture in made().items() if picture["reports"]} >= WITH_FIGURES


@pytest.mark.parametrize(
    ("day", "report", "found"),
    [
        ("2026-11-28", '{"machine": {"Date": "2026-11-28 20:21"}}', []),
        ("2026-11-27", '{"machine": {"Date": "2026-11-28 20:21"}}', ["one (a.json)"]),
        ("2026-11-28", '{"machine": {"Date": "2026-11-21 20:21"}}', ["one (a.json)"]),
    ],
    ids=["of the same day", "older", "another report"],
)
def test_an_outdated_picture_is_found(
    tmp_path: Path, day: str, report: str, found: list[str]
) -> None:
    known = b'{"machine": {"Date": "2026-11-28 20:21"}}'
    (tmp_path / "a.json").write_text(report)
    reports = {"a.json": hashlib.sha256(known).hexdigest()[:16]}
    assert list(outdated({"one": {"day": day, "reports": reports}}, tmp_path)) == found
