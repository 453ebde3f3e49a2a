"""“-” for standard input and output: the bytes of files, and lines on stderr."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

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


@pytest.fixture(autouse=True)
def picture(here: Path) -> None:
    Image.fromarray(np.arange(900, dtype=np.uint8).reshape(20, 45)).save("in.png")


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs ``apply`` on bytes; it returns those of the result, and text."""

    def apply(line: str, content: bytes = b"", status: int = 0) -> tuple[bytes, str]:
        words, output = line.split(), Stream()
        with monkeypatch.context() as streams:
            streams.setattr(sys, "stdin", Stream(content))
            if words[2] == "-":
                streams.setattr(sys, "stdout", output)
            assert main(["apply", *words]) == status
        return output.buffer.getvalue(), "".join(capsys.readouterr())

    return apply


def test_from_pipe_to_pipe(piped: Any) -> None:
    piped("median in.png file.png --quiet")
    made, said = piped("median - -", Path("in.png").read_bytes())
    assert made == Path("file.png").read_bytes()
    assert "Median" in said
    assert sorted(path.name for path in Path().iterdir()) == ["file.png", "in.png"]


def test_from_pipe_to_file_and_back(piped: Any) -> None:
    tifffile.imwrite("in.tif", np.arange(900, dtype=np.uint16).reshape(20, 45) * 70)
    piped("mean - made.tif --quiet", Path("in.tif").read_bytes())
    piped("mean in.tif file.tif --quiet")
    np.testing.assert_array_equal(tifffile.imread("made.tif"), tifffile.imread("file.tif"))
    made, _ = piped("mean in.tif - --quiet")
    np.testing.assert_array_equal(tifffile.imread(io.BytesIO(made)), tifffile.imread("file.tif"))


def test_the_report_names_the_pipes(piped: Any) -> None:
    report = json.loads(piped("median - out.png --json", Path("in.png").read_bytes())[1])
    assert (report["input"], report["output"]) == ("-", "out.png")


@pytest.mark.parametrize(
    ("content", "options", "message", "status"),
    [
        (b"", "", "Standard input is empty. Send a picture", 1),
        (b"hello", "", "Standard input is no picture in a format that is known", 1),
        (b"\x89PNG\r\n\x1a\n", "", "input.png", 1),
        (b"", "--memory 1G", "--memory needs files, not pipes.", 2),
    ],
)
def test_other_input_is_refused(
    content: bytes, options: str, message: str, status: int, piped: Any
) -> None:
    assert message in piped(f"median - out.png {options}", content, status)[1]
    assert not Path("out.png").exists()


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("median - -", 0, "standard output: Median, mask size 3 px"),
        ("median in.png -", 0, "standard output: Median, mask size 3 px"),
        ("median - made.png", 0, "made.png: Median, mask size 3 px"),
        ("mri-nlm - -", 1, "error: “standard input” is a picture; mri-nlm is for volumes."),
        ("median - - --axis y", 1, "error: --axis is for volumes; standard input is a"),
    ],
)
def test_lines_name_pipes_and_no_private_file(
    line: str, status: int, said: str, piped: Any
) -> None:
    found = piped(line, Path("in.png").read_bytes(), status)[1]
    assert found.startswith(said)
    assert "kernelscope-" not in found


@pytest.mark.slow
def test_closed_streams_are_no_bug() -> None:
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
