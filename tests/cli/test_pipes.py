"""“-” for standard input and output: the bytes of files, and lines on stderr."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from kernelscope.cli.main import main
from tests.patience import PATIENCE


class Stream:
    """Standard input or output of a program in a pipe."""

    def __init__(self, content: bytes = b"") -> None:
        self.buffer = io.BytesIO(content)

    def write(self, text: str) -> int:
        return self.buffer.write(text.encode())

    def flush(self) -> None:
        pass


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def picture(here: Path) -> Path:
    Image.fromarray(np.arange(900, dtype=np.uint8).reshape(20, 45)).save("in.png")
    return here / "in.png"


def test_from_pipe_to_pipe(
    picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", "median", "in.png", "file.png", "--quiet"]) == 0
    output = Stream()
    monkeypatch.setattr(sys, "stdin", Stream(picture.read_bytes()))
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["apply", "median", "-", "-"]) == 0
    assert output.buffer.getvalue() == Path("file.png").read_bytes()
    assert "Median" in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["file.png", "in.png"]


def test_from_pipe_to_file_and_back(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile.imwrite("in.tif", np.arange(900, dtype=np.uint16).reshape(20, 45) * 70)
    monkeypatch.setattr(sys, "stdin", Stream(Path("in.tif").read_bytes()))
    assert main(["apply", "mean", "-", "made.tif", "--quiet"]) == 0
    assert main(["apply", "mean", "in.tif", "file.tif", "--quiet"]) == 0
    np.testing.assert_array_equal(tifffile.imread("made.tif"), tifffile.imread("file.tif"))
    output = Stream()
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["apply", "mean", "in.tif", "-", "--quiet"]) == 0
    found = tifffile.imread(io.BytesIO(output.buffer.getvalue()))
    np.testing.assert_array_equal(found, tifffile.imread("file.tif"))


def test_the_report_names_the_pipes(
    picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Stream(picture.read_bytes()))
    assert main(["apply", "median", "-", "out.png", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["input"], report["output"]) == ("-", "out.png")


@pytest.mark.parametrize(
    ("content", "options", "message", "status"),
    [
        (b"", [], "Standard input is empty. Send a picture", 1),
        (b"hello", [], "Standard input is no picture in a format that is known", 1),
        (b"\x89PNG\r\n\x1a\n", [], "input.png", 1),
        (b"", ["--memory", "1G"], "--memory needs files, not pipes.", 2),
    ],
)
def test_other_input_is_refused(
    content: bytes,
    options: list[str],
    message: str,
    status: int,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", Stream(content))
    assert main(["apply", "median", "-", "out.png", *options]) == status
    assert message in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["median", "-", "-"], "standard output: Median, mask size 3 px"),
        (["median", "in.png", "-"], "standard output: Median, mask size 3 px"),
        (["median", "-", "made.png"], "made.png: Median, mask size 3 px"),
        (["mri-nlm", "-", "-"], "error: “standard input” is a picture; mri-nlm is for volumes."),
        (["median", "-", "-", "--axis", "y"], "error: --axis is for volumes; standard input is a"),
    ],
)
def test_lines_name_pipes_and_no_private_file(
    arguments: list[str],
    line: str,
    picture: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", Stream(picture.read_bytes()))
    output = Stream()
    if arguments[2] == "-":
        monkeypatch.setattr(sys, "stdout", output)
    main(["apply", *arguments])
    captured = capsys.readouterr()
    said = captured.err + captured.out
    assert said.startswith(line)
    assert "kernelscope-" not in said


def test_closed_streams_are_no_bug(picture: Path) -> None:
    """As ``<&-``, ``>&-`` and ``2>&-`` of a shell make them."""
    for line, status in (
        ("apply median - out.png <&-", 1),
        ("apply median in.png - >&-", 1),
        ("apply median in.png out.png >&- 2>&-", 0),
        ("nonsense in.png 2>&-", 2),
    ):
        made = subprocess.run(
            f"{shlex.quote(sys.executable)} -m kernelscope {line}",
            shell=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert made.returncode == status, made.stderr
        assert "bug" not in made.stderr
        assert made.stderr.startswith("error: Standard ") or status != 1
