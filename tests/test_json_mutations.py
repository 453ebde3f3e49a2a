"""Every JSON that the program takes, changed by accident: it is read, or refused with the place.

Mutants are made of good files by dropping, replacing and nesting values, and by cutting the text.
"""

from __future__ import annotations

import copy
import json
import logging
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import InvalidJson
from kernelscope.base.paths import RESOURCES
from kernelscope.bench import presets
from kernelscope.bench.cases import expand
from kernelscope.bench.charts import Plot, chart, choices
from kernelscope.bench.report import Report, beside_each_other, load, merge, save
from kernelscope.bench.rows import Difference
from kernelscope.bench.tables import (
    format_comparison,
    format_origins,
    format_reasons,
    format_row,
    to_csv,
)
from kernelscope.engine.costs import Costs
from kernelscope.files.recipes import read_recipe
from kernelscope.gui.widgets.settings import Settings
from tests.bench.made_up import row
from tests.engine.test_costs import request, result
from tests.engine.test_recipe import TEXT

pytestmark = pytest.mark.slow

MUTANTS = 600
"""Of each format."""

SEED = 13

_WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, "", "x", "\0", "\n\x1b[2J", "\ud800", "ä" * 300, [], {}),
    *([None], ["x"], [[]], [{}], [-1], {"x": 1}, {"": None}, 10**30, -(10**30), 10**400, 2**63),
    *(1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf"), [0, 0], [10**9] * 3),
    *("cpu", "median", "1e999", "nan", "16x16", [1e300] * 3, [5e-324] * 3, [0.0] * 3),
)

Path_ = tuple[str | int, ...]


class Mutant(NamedTuple):
    """A changed text, and where it was changed; None for all of it."""

    text: str
    path: Path_ | None


def places(content: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every value."""
    if path:
        yield path
    inner = content.items() if isinstance(content, dict) else ()
    for key, value in enumerate(content) if isinstance(content, list) else inner:
        yield from places(value, (*path, key))


def mutants(text: str, count: int = MUTANTS) -> Iterator[Mutant]:
    rng = random.Random(SEED)
    content = json.loads(text)
    known = list(places(content))
    for number in range(count):
        changed = copy.deepcopy(content)
        *above, last = path = rng.choice(known)
        holder = changed
        for key in above:
            holder = holder[key]
        match number % 8:
            case 0:
                del holder[last]
            case 1 if isinstance(holder, list) and isinstance(last, int):
                holder.insert(last, copy.deepcopy(holder[last]))
            case 1 | 2 if isinstance(holder, dict):
                holder["x" * rng.randrange(3)] = holder.pop(last)
            case 3 if isinstance(holder[last], int | float):
                holder[last] = holder[last] * rng.choice((-1, 0, 1e-9, 1e9, 10**20, 1.5))
            case 4:
                whole = json.dumps(changed)
                yield Mutant(whole[: rng.randrange(len(whole))], None)
                continue
            case 5:
                depth = rng.choice((3, 900, 100_000))
                mark = "mark" * 3
                holder[last] = mark
                nested = rng.choice(("[", '{"a":')) * depth + "1"
                nested += ("]" if "[" in nested else "}") * depth
                yield Mutant(json.dumps(changed).replace(json.dumps(mark), nested), path)
                continue
            case 6:
                whole = json.dumps(changed)
                place = rng.randrange(len(whole))
                letter = chr(rng.choice((*range(32, 127), 0, 228, 0x1F600)))
                yield Mutant(whole[:place] + letter + whole[place + 1 :], None)
                continue
            case _:
                holder[last] = rng.choice(_WRONG)
        yield Mutant(json.dumps(changed), path)


# The formats -------------------------------------------------------------------------


REPORT = Report(
    {"CPU": "one", "GPU": "a card", "Date": "2026-11-22 10:00+0100", "Kernelscope": "commit 1"},
    replace(presets.get("M mean").plan, blocks=((16, 16),), libraries=("OpenCV",), gpus=(1, 2)),
    (
        row(asked=(64, 64), seconds=(0.06, 0.07, 0.06), cache="cold", load=0.0),
        row(
            asked=(64, 64),
            shape=(32, 64),
            device="gpu",
            level="shared",
            block=(16, 16),
            seconds=(0.001, 0.002),
            stages={"upload": (0.003, 0.0), "kernel": (0.001, 0.002), "download": (0.001, 0.001)},
            kernels={"first": (0.001, 0.001)},
            bytes=2e4,
            operations=5e4,
            copy_rate=1e12,
            peak_rate=1e13,
            psnr=float("inf"),
            notices=("In strips.",),
        ),
        row(level="OpenCV", library=True, seconds=(0.01,), difference=Difference(1.0, 0.25)),
        row(
            filter="mri_nlm",
            parameters={"search_radius": "5, 5, 2", "sigma": "10", "noise": "rician"},
            content="head",
            asked=(8, 8, 8),
            device="gpu",
            level="shared",
            gpus=2,
            reason="There is no GPU.",
        ),
    ),
)


def use_report(path: Path) -> None:
    """Do all that the command line and the window do with a report."""
    report = load(path)
    both = (merge([report, REPORT]), beside_each_other(REPORT, report))
    for each in (report, *both):
        lines = [format_row(one, each.rows) for one in each.rows if one.seconds]
        lines += [*format_origins(each.rows), *format_reasons(each.rows), to_csv(each)]
        for plot in Plot:
            for choice in choices(plot, each.rows):
                chart(plot, choice, each.rows, baseline="CPU serial", waiting=True)
    list(format_comparison(REPORT, report))
    save(report, path)
    assert load(path).rows == report.rows


def use_plan(path: Path) -> None:
    expand(load(path).plan, {})


def report_text(tmp_path: Path) -> str:
    save(REPORT, tmp_path / "good.json")
    return (tmp_path / "good.json").read_text(encoding="utf-8")


def of_plan(tmp_path: Path) -> Iterator[Mutant]:
    content = json.loads(report_text(tmp_path))
    for text, path in mutants(json.dumps(content["plan"])):
        start = json.dumps(content | {"plan": "here", "rows": []})
        yield Mutant(start.replace('"here"', text), path and ("plan", *path))


FORMATS: dict[str, tuple[Callable[[Path], Iterator[Mutant]], Callable[[Path], object]]] = {
    "recipe": (lambda _: mutants(TEXT), read_recipe),
    "result": (lambda folder: mutants(report_text(folder)), use_report),
    "plan": (of_plan, use_plan),
}


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_read_or_refused_with_its_place(name: str, tmp_path: Path) -> None:
    make, use = FORMATS[name]
    refused = located = 0
    path = tmp_path / "changed.json"
    for mutant in make(tmp_path):
        path.write_text(mutant.text, encoding="utf-8", errors="surrogatepass")
        message = refusal(use, path)
        if message:
            refused += 1
            assert len(message) < 1000
            located += mutant.path is not None and names(message, mutant.path)
    print(f"{name}: {refused} of {MUTANTS} refused, {located} with the place")
    assert refused > MUTANTS / 3
    # The rest were cut or have a wrong letter, or lack the named part.
    assert located > refused / 3


def refusal(use: Callable[[Path], object], path: Path) -> str:
    """Return the message of the expected failure, or nothing; any other failure is a bug."""
    try:
        use(path)
    except AppError as error:
        return error.message
    return ""


def names(message: str, path: Path_) -> bool:
    """Return whether a message names a value, or its container."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    steps = [each for each in re.split(r"[.\[\]]+", text) if each]
    return any(each in message for each in steps[1:] or steps)


@pytest.mark.parametrize("name", ["settings", "costs"])
def test_what_only_the_program_writes_is_read_or_made_again(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = tmp_path / f"{name}.json"
    good = {
        "settings": {
            "recentFiles": "/a/b.png\n/c.png",
            "window/state": "AAAA",
            "folders/open": "/",
        },
        "costs": {key: [[256, 0.5], [1024, 1.5e-3]] for key in ("cpu, parallel", "gpu, tuned")},
    }[name]
    asked = request(16)
    for mutant in mutants(json.dumps(good)):
        path.write_text(mutant.text, encoding="utf-8", errors="surrogatepass")
        if name == "settings":
            settings = Settings(path)
            assert all(isinstance(each, Path) for each in settings.recent_files)
            settings.blob("window/state")
            settings.set_folder("open", Path("/tmp"))
            assert Settings(path).folder("open") == "/tmp"
        else:
            Costs(path).predict(asked, "cpu", "parallel")
    assert (
        len(re.findall("will be made again|damaged costs are replaced", caplog.text)) > MUTANTS / 6
    )


def test_costs_of_a_changed_file_predict_something_sane(tmp_path: Path) -> None:
    """Numbers beyond measuring would divide by zero, or always choose one device."""
    path = tmp_path / "costs.json"
    costs = Costs(path)
    asked = request(16)
    costs.record(result(asked, 0.5), "card")
    costs.record(result(request(32), 0.75), "card")
    good = json.loads(path.read_text())
    (key,) = good
    for mutant in mutants(json.dumps(good[key])):
        path.write_text(json.dumps({key: "here"}).replace('"here"', mutant.text))
        seconds = Costs(path).predict(asked, "card", "tuned")
        assert seconds is None or 0 < seconds < 1e12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["rows"][1].update(seconds=3), "rows[1].seconds: expected a list"),
        (lambda c: c["rows"][1]["seconds"].append("x"), "rows[1].seconds[2]: expected a number"),
        (lambda c: c["rows"][0]["seconds"].insert(0, 0), "rows[0].seconds[0]: expected a number"),
        (lambda c: c["rows"][1]["stages"]["kernel"].pop(), "rows[1].stages.kernel: expected 2"),
        (lambda c: c["rows"][0].update(shape=[64]), "rows[0].shape: expected 2 elements"),
        (lambda c: c["rows"][0].update(shape=[65, 64]), "rows[0].shape[0]: 65 was timed of 64"),
        (lambda c: c["rows"][0].update(filter="magic"), "rows[0].filter: There is no filter"),
        (lambda c: c["rows"][0]["parameters"].update(size="4"), "rows[0].parameters.size: "),
        (lambda c: c["rows"][2].update(channels=True), "rows[2].channels: expected a whole"),
        (lambda c: c["rows"][0].pop("label"), "rows[0]: “label” is missing"),
        (lambda c: c["machine"].update(CPU=["x"]), "machine.CPU: expected text, found a list"),
        (lambda c: c["plan"].update(repeat=float("nan")), "plan.repeat: expected a whole number"),
        (lambda c: c["plan"].update(longest=10**400), "plan.longest: expected a number"),
        (lambda c: c["plan"].update(blocks=["1x1"]), "plan.blocks[0]: A block of 1×1"),
        (lambda c: c["plan"].update(devices=["tpu"]), "plan.devices[0]: expected one of cpu, gpu"),
        (
            lambda c: c["plan"]["sweeps"][0]["data"][0].update(shape=[1 << 20, 1 << 20]),
            "plan.sweeps[0].data[0].shape: no memory",
        ),
        (lambda c: c["rows"][0].update(label="\ud800"), 'rows[0].label: "\\ud800" contains half'),
    ],
)
def test_the_message_has_the_path(
    change: Callable[[Any], object], message: str, tmp_path: Path
) -> None:
    content = json.loads(report_text(tmp_path))
    change(content)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidJson) as caught:
        load(path)
    assert caught.value.message.startswith(f"{path}: {message}")


def test_the_files_of_the_page_are_read() -> None:
    paths = [
        path
        for path in (RESOURCES / "bench").glob("*.json")
        if '"kernelscope bench"' in path.read_text()[:100]
    ]
    assert len(paths) > 20
    assert all(load(path).rows for path in paths)
