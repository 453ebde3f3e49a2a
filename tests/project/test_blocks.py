"""The blocks of the pages are true: commands run, Python runs, tests are found.

`test_docs` runs `apply` of every page, the tasks and the worked example; `test_page` runs the
library; `.ci/run` takes the commands of the README. The rest is here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelscope.cli.main import main
from kernelscope.files import read_image, write_image
from kernelscope.images.image import Image
from kernelscope.library.session import session
from tests.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_cache")]

DOCS = ROOT / "resources" / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

TOOLS = {"ruff", "mypy", "lint-imports", "mkdocs", "pip", "pre-commit", "nvcc", "dask", "sudo"}
"""Programs of others: their arguments are looked at where these name files of the project."""

ELSEWHERE = {"tasks.md", "volumes.md"}
"""Pages whose commands `test_docs` runs all."""

IN_OTHER_TESTS = ("--local-cluster", "--preset", "photo.tif")
"""Words of commands that start workers, a preset or the window."""


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)


def lines(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command in the blocks for a shell, without the environment's path."""
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            while words:
                end = words.index("&&") if "&&" in words else len(words)
                command = [word for word in words[:end] if not re.match(r"[A-Z_]+=", word)]
                yield [command[0].removeprefix(".venv/bin/"), *command[1:]]
                words = words[end + 1 :]


COMMANDS = [(page.name, words) for page in PAGES for words in lines(page)]


def ours(words: list[str]) -> list[str] | None:
    """Return the arguments of Kernelscope, by whatever name it is started."""
    if words[0] == "kernelscope":
        return words[1:]
    return words[2:] if words[:2] == ["python", "main.py"] else None


def is_module(name: str) -> bool:
    return name in {"venv", "pytest"} or importlib.util.find_spec(name) is not None


def test_no_command_is_of_an_unknown_kind() -> None:
    assert len(COMMANDS) > 80
    for page, words in COMMANDS:
        where = f"{page}: {shlex.join(words)}"
        if words[0] in {"python", "python3"}:
            known = is_module(words[2]) if words[1] == "-m" else (ROOT / words[1]).is_file()
            assert known, where
        elif words[0].startswith(".ci/"):
            assert os.access(ROOT / words[0], os.X_OK), where
        else:
            assert words[0] in TOOLS | {"kernelscope"}, where
        files = [word for word in words if re.match(r"(tests|kernels|\.ci|resources)/", word)]
        assert all((ROOT / name).exists() for name in files if "spread" not in name), where


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("command-line.md", marks=pytest.mark.exhaustive),
        *("cluster.md", "debugging.md", "install.md"),
    ],
)
def test_commands_that_are_no_apply(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other in a folder. A scheduler, a card and a desktop are not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelscope.big.batch.cluster._CONNECT_SECONDS", 0.5)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    small = read_image(ROOT / "resources" / "camera.bmp").pixels[200:264, 200:296]
    write_image(Image.from_array(small), "in.png")
    for folder in ("scans", "more"):
        Path(folder).mkdir()
        write_image(Image.from_array(small), f"{folder}/a.tif")
    (recipe,) = blocks(DOCS / "command-line.md", "json")
    Path("denoise.recipe.json").write_text(recipe, encoding="utf-8")
    tried = 0
    for arguments in filter(None, (ours(words) for name, words in COMMANDS if name == page)):
        if arguments[0] == "apply" and page != "debugging.md":
            continue
        line = shlex.join(arguments)
        if any(word in line for word in IN_OTHER_TESTS):
            continue
        if line == "bench --quick --peers":  # all of it takes minutes
            line += " --filters mean --sizes 16 --masks 3 --devices cpu"
        line = line.replace("node1:8786", "127.0.0.1:9")
        missing = any(word in line for word in ("127.0.0.1:9", "ca.pem", "shared"))
        if missing and arguments[0] in {"batch", "apply"}:
            assert main(shlex.split(line)) == 1, line
            assert "error: " in capsys.readouterr().err, line
        else:
            assert main(shlex.split(line)) == 0, line
        tried += 1
    assert (
        tried == {"command-line.md": 16, "cluster.md": 3, "debugging.md": 1, "install.md": 1}[page]
    )


def test_pages_with_other_commands_are_known() -> None:
    with_ours = {page for page, words in COMMANDS if ours(words)}
    here = {"command-line.md", "cluster.md", "debugging.md", "install.md"}
    assert with_ours == ELSEWHERE | here | {"add-a-filter.md", "add-a-dock.md"}


@pytest.mark.parametrize(
    ("code", "printed"),
    list(zip(blocks(DOCS / "debugging.md", "python"), ("[]", "[[ 1  2 "), strict=True)),
)
def test_python_of_debugging(code: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first prints the places that differ, of which there are none."""
    exec(compile(code, "debugging.md", "exec"), {})
    session().close()  # its threads would wait for the next call
    assert capsys.readouterr().out.startswith(printed)


@pytest.mark.parametrize("code", blocks(DOCS / "cluster.md", "python"))
def test_python_of_clusters(code: str) -> None:
    """It needs Slurm or Kubernetes: only its form can be looked at."""
    compile(code, "cluster.md", "exec")


@pytest.mark.exhaustive
def test_every_selection_of_tests_finds_some() -> None:
    found = 0
    for page, words in COMMANDS:
        if words[:3] != ["python", "-m", "pytest"] or "spread" in words or "gpu" in words:
            continue
        chosen = [word for word in words[3:] if word not in {"-x", "-s"}]
        for option in ("-n", "--dist"):
            if option in chosen:
                del chosen[chosen.index(option) : chosen.index(option) + 2]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *chosen],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{page}: {shlex.join(words)}\n{done.stdout}"
        found += 1
    assert found >= 7
