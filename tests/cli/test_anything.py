"""Whatever an option or a name is, the answer is one line, before anything is computed."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from PIL import Image as PillowImage

from kernelscope.cli.arguments import apply_parser, filter_parser
from kernelscope.cli.common import every_filter
from kernelscope.cli.main import main

pytestmark = pytest.mark.slow

SEED = 17
TRIES = [500, pytest.param(5000, marks=pytest.mark.exhaustive)]

NAMES = (
    *(
        "",
        "\0",
        "a\0b.png",
        "a" * 300 + ".png",
        "/".join(["d" * 100] * 50) + "/a.png",
        "\udcff.png",
    ),
    *(
        "\n.png",
        "\x1b[2J.png",
        ".",
        "..",
        "/",
        "-",
        "--",
        "-x.png",
        "~",
        "nowhere/a.png",
        "/dev/null",
    ),
    *("in.png/x.png", "nowhere/a.png", "/proc/self/mem", "loop", "a.png ", " ", "%s%n", "ä" * 200),
    *("in.png", "out.png", "out.tif", "out.npy", "input", ":", "con.nii.gz", "x" * 5000),
)
NUMBERS = (
    *("0", "-1", "1", "3", "5.5", "1e999", "-1e999", "nan", "inf", "1e308", "5e-324", "9" * 39),
    *(
        "9" * 5000,
        "-" + "9" * 5000,
        "0x10",
        "1_0",
        "١",
        "²",
        "½",
        "1,5",
        "1.5G",
        "0K",
        "9" * 400 + "G",
    ),
    *("1x1", "16x16", "99999x99999", "1x", "x", "1 2 1; 2 4 2; 1 2 1", "1;" * 5000, "9e999 1; 1 1"),
    *(
        "1,2,3",
        "1,",
        ",,,",
        "5,5,2",
        "0,0",
        "estimate",
        "on",
        "\udcff",
        "\0",
        "",
        " ",
        "ä",
        "\n",
        "\x1b",
    ),
)
WORDS = ("gpu", "cpu", "auto", "tuned", "serial", "wrap", "valid", "gaussian", "t1", "x", "z")

Values = tuple[str, ...]


class Computed(BaseException):
    """Every option was taken, and computing would begin."""


def begin(*_: object, **__: object) -> NoReturn:
    raise Computed


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place in (
        "kernelscope.engine.steps.execute",
        "kernelscope.bench.runner.measure",
        "kernelscope.bench.parity.verify",
        "kernelscope.cli.phantom.head",
        "kernelscope.gui.run",
    ):
        monkeypatch.setattr(place, begin)
    monkeypatch.setattr("kernelscope.cli.apply.log_to_stderr", lambda: None)  # outlives a test
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    PillowImage.fromarray(np.zeros((20, 30, 3), np.uint8)).save("in.png")
    np.save("in.npy", np.zeros((4, 5, 6), np.float32))
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, int]]:
    """Yield the options of a parser and how many values they take."""
    for action in parser._actions:
        if action.option_strings and not isinstance(action, argparse._HelpAction):
            known: dict[int | str | None, int] = {"*": 2, "+": 2, "?": 1, None: 1}
            values = known.get(action.nargs)
            yield action.option_strings[0], int(action.nargs or 0) if values is None else values


def of_apply(rng: random.Random) -> list[str]:
    if rng.random() < 0.1:
        parser, start = apply_parser(), []
    else:
        name, spec = rng.choice(list(every_filter().items()))
        parser, start = filter_parser(spec, ["serial", "tuned"]), [name]
    source = "in.npy" if rng.random() < 0.2 else "in.png"
    arguments = [*start, source, rng.choice(("out.png", "out.npy", "out.tif"))]
    for option, count in rng.sample(list(options(parser)), rng.choice((0, 1, 1, 2, 4))):
        arguments += [option, *(anything(rng) for _ in range(count))]
    if rng.random() < 0.3:
        arguments[rng.randrange(len(arguments))] = anything(rng)
    if rng.random() < 0.1:
        arguments[rng.randrange(len(arguments)) :] = [":", *of_apply(rng)]
    return arguments


BENCH = (
    *(
        "--preset",
        "--filters",
        "--sizes",
        "--masks",
        "--devices",
        "--levels",
        "--blocks",
        "--peers",
    ),
    *("--gpu", "--repeat", "--out", "--csv", "--plot", "--verify", "--compare", "--show"),
)
PHANTOM = ("--size", "--voxel", "--weighting", "--noise", "--sigma", "--seed", "--truth")


def of_others(rng: random.Random) -> list[str]:
    command, known = rng.choice(
        (
            ("bench", BENCH),
            ("phantom", PHANTOM),
            ("info", ("--gpu",)),
            ("list", ("--json",)),
            ("", ()),
        )
    )
    arguments = [command] if command else []
    if command in ("phantom", ""):
        arguments.append(anything(rng))
    for option in rng.sample(known, min(len(known), rng.choice((1, 1, 2)))):
        arguments += [option, *(anything(rng) for _ in range(rng.choice((1, 1, 2))))]
    return arguments


def anything(rng: random.Random) -> str:
    return rng.choice(rng.choice((NAMES, NUMBERS, WORDS)))


@pytest.mark.parametrize("tries", TRIES)
@pytest.mark.parametrize("make", [of_apply, of_others])
def test_one_line_and_no_traceback(
    make: Callable[[random.Random], list[str]],
    tries: int,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = random.Random(SEED)
    counts: dict[object, int] = {}
    for _ in range(tries):
        arguments = make(rng)
        status = outcome(["apply", *arguments] if make is of_apply else arguments)
        err = capsys.readouterr().err
        shown = [each[:60] for each in arguments]
        assert status in (0, 1, 2, "computed"), (shown, err[-2000:])
        if status in (1, 2):
            lines = [line for line in err.splitlines() if "error: " in line]
            assert len(lines) == 1, (shown, err)
            assert err.endswith(f"{lines[0]}\n"), (shown, err)
        if status == 1:
            others = [line for line in err.splitlines()[:-1] if not line.startswith("note: ")]
            assert not others, (shown, err)
        assert "\x1b" not in err, shown
        assert "Traceback" not in err, shown
        counts[status] = counts.get(status, 0) + 1
    print(counts)
    assert counts[1] > tries / 10
    assert counts[2] > tries / 10
    assert not list(here.glob(".kernelscope*"))


def outcome(arguments: list[str]) -> Any:
    """Return the exit status, or "computed" where nothing was wrong."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code
    except Computed:
        return "computed"


@pytest.mark.parametrize("status", [1, 2])
def test_names_do_not_steer_the_terminal(
    status: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2J\nerror: other"
    arguments = ["mean", evil, "out.png"] if status == 1 else [evil]
    assert outcome(["apply", *arguments]) == status
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert err.count("\nerror: other") == 0
    assert r"\x1b[2J\nerror: other" in err
