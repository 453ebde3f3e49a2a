"""The page of results: its tables say what the files beside it say."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from app.bench import Difference
from app.paths import RESOURCES
from tests.bench.made_up import row

FOLDER = RESOURCES / "bench"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_page", FOLDER / "make_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


def test_tables_are_made_from_the_files(page: ModuleType) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.filled(text, page.blocks()), "run python resources/bench/make_page.py"
    readme = page.README.read_text(encoding="utf-8")
    assert readme == page.filled(readme, page.readme_blocks())


def test_every_experiment_has_its_files_and_every_picture_is_there(page: ModuleType) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    for name in page.EXPERIMENTS:
        for device in ("cpu", "gpu"):
            rows = page.reports(f"{device}-{name}").rows
            assert any(row.seconds for row in rows if row.device == device), (device, name)
    shown = re.findall(r"!\[.+?\]\((.+?)\)", text)
    assert sorted(shown) == sorted(f"{each.name}.png" for each in page.pictures())
    for name in shown:
        assert (FOLDER / name).is_file(), name


def test_a_number_typed_by_hand_is_noticed(page: ModuleType) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    name, content = next(iter(page.blocks().items()))
    forged = text.replace(content, content.replace("×", "× or more", 1))
    assert forged != text
    assert page.filled(forged, {name: content}) == text


def test_a_page_without_a_place_for_a_table_is_wrong(page: ModuleType) -> None:
    with pytest.raises(LookupError, match="0 places for f-levels"):
        page.filled("no marks", {"f-levels": "a table"})


def test_claims_are_judged(page: ModuleType) -> None:
    verdicts = [
        page.Claim("M", "a beats b", 2.0, ours, equal).line()[-1]
        for ours, equal in ((1.5, False), (1.05, False), (0.5, False), (1.05, True), (3.0, True))
    ]
    assert verdicts == ["holds", "no longer", "no longer", "holds", "no longer"]
    assert page.Claim("M", "a beats b", 2.0, None).line()[-1] == "not measured"


def test_scaled_times_and_libraries_stand_in_tables(page: ModuleType) -> None:
    part = row(asked=(64, 64), shape=(32, 32), seconds=(0.001,))
    ours = row(asked=(64, 64), level="parallel", seconds=(0.002,))
    library = row(
        asked=(64, 64),
        level="OpenCV",
        library=True,
        seconds=(0.004,),
        difference=Difference(1.0, 0.25),
    )
    report = page.Report({}, page.Plan(sweeps=()), (part, ours, library))
    assert page.by_level(report).splitlines()[2].startswith("| CPU serial | ≈ 4 | 0 | ≈ 4 | ≈ 1 |")
    assert page.libraries(report).splitlines()[2] == (
        "| Mean, mask size 3 | 64×64 | 2 | 4 | 0.50 | OpenCV: 25.00% differ from ours, by up to 1 |"
    )
