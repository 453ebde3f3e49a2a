"""The README says what is true: its table, its commands, its example."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app import filters
from app.cli import allowed, main
from app.engine.recipe import default_text
from app.filters.spec import FilterSpec, Kind

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """Return the code block after ``<!-- mark -->``."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, f"README.md has no block {mark}"
    return found[1]


def table_row(spec: FilterSpec) -> str:
    parameters = "<br>".join(
        f"`--{parameter.name.replace('_', '-')}` {allowed(parameter)} "
        f"({default_text(parameter) or 'none'})"
        for parameter in spec.parameters
    )
    return f"| `{spec.id.replace('_', '-')}` | {spec.summary} | {parameters} |"


@pytest.mark.parametrize(
    ("mark", "kind"), [("filters", Kind.PICTURE), ("volume filters", Kind.VOLUME)]
)
def test_table_of_filters(mark: str, kind: Kind) -> None:
    table = README.split(f"<!-- {mark} -->\n")[1].split("\n\n")[0].strip()
    rows = [table_row(spec) for spec in filters.discover(kind).values()]
    expected = "\n".join(
        ["| filter | what it does | parameters (default) |", "|---|---|---|", *rows]
    )
    assert table == expected, f"the table should be\n{expected}"


def commands(section: str) -> list[str]:
    return [line for line in section.splitlines() if line.startswith("kernelscope ")]


VOLUMES = commands(README.split("## MRI volumes")[1].split("\n## ")[0])


def test_examples_with_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run them one after the other, on small heads: each finds what the others made."""
    monkeypatch.chdir(tmp_path)
    for line in VOLUMES:
        small = line.replace("--size 181", "--size 16")
        assert main(shlex.split(small, comments=True)[1:]) == 0
    written = (".nii.gz", ".pngs")
    names = {name for line in VOLUMES for name in line.split() if name.endswith(written)}
    assert {path.name for path in tmp_path.iterdir()} == names | {"OUT-T2.nii.gz", "OUT-PD.nii.gz"}
    assert "bias" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [line for line in commands(README) if " apply " in line and line not in VOLUMES],
)
def test_examples_of_apply(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = shlex.split(line, comments=True)[1:]
    if "--help" in arguments:
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        return
    for name in ("in.png", "in.bmp"):
        source = {"in.png": "coffee.png", "in.bmp": "camera.bmp"}[name]
        shutil.copy(ROOT / "resources" / source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    if "--recipe" in arguments:
        Path("denoise.recipe.json").write_text(block("recipe"), encoding="utf-8")
    assert main(arguments) == 0
    _, output, *_ = (name for name in arguments if Path(name).suffix in {".png", ".bmp"})
    assert (tmp_path / output).stat().st_size > 0


def test_example_filter_passes_the_contract(tmp_path: Path) -> None:
    """Put the README's filter beside the others, and run what it says is run."""
    for name in ("app", "tests", "kernels", "resources"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    paths = re.findall(r"<!-- example: (.*?) -->", README)
    assert len(paths) == 2
    for path in paths:
        (tmp_path / path).write_text(block(f"example: {path}"), encoding="utf-8")
    for command in (
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_contract.py", "-k", "maximum"],
        ["-m", "ruff", "check", *paths],
        ["-m", "ruff", "format", "--check", *paths],
        ["-c", "from app.cli import main; main(['apply', 'maximum', '--help'])"],
    ):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_ci_finds_its_commands() -> None:
    assert "pytest" in block("test-command")
    assert "apt-get install" in block("system-libraries")
