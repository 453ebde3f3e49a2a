"""The house's rules that tools can check."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections import defaultdict
from pathlib import Path

import hypothesis.core
import pytest

from kernelscope.backends.cuda.sources import source_files
from kernelscope.base.paths import KERNELS
from tests.paths import ROOT
from tests.scripts import run_python

pytestmark = pytest.mark.slow

SCRIPTS = Path(sysconfig.get_path("scripts"))
TOOLS = [["ruff", "check"], ["ruff", "format", "--check", "--diff"], ["mypy"], ["lint-imports"]]


def test_linters_and_types() -> None:
    """All of them side by side, since types take as long as the others together."""
    running = [
        subprocess.Popen(
            [str(SCRIPTS / command[0]), *command[1:]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in TOOLS
    ]
    texts = [process.communicate()[0] for process in running]
    failed = [
        f"{' '.join(command)}\n{text}"
        for command, process, text in zip(TOOLS, running, texts, strict=True)
        if process.returncode != 0
    ]
    if failed:
        pytest.fail("\n".join(failed), pytrace=False)


@pytest.mark.parametrize(
    "code",
    [
        "import kernelscope.filters; kernelscope.filters.discover()",
        "import kernelscope.backends; kernelscope.backends.create_backends()",
        "import kernelscope.files.volumes",
        "from kernelscope.cli.main import main; main(['list'])",
    ],
)
def test_start_up_stays_light(code: str) -> None:
    """The window must not wait for heavy imports before it can show itself."""
    heavy = {"numba", "PySide6", "PIL", "tifffile", "imagecodecs", "scipy", "cv2"}
    heavy |= {"nibabel", "pydicom"}
    printed = run_python(f"{code}; import sys; print(sorted({heavy} & set(sys.modules)))")
    assert printed.splitlines()[-1] == "[]"


def test_only_the_cuda_backend_mentions_pycuda() -> None:
    """A late import inside a function would escape nobody; this catches other tricks too."""
    importing = re.compile(r"^\s*(?:import|from)\s+(?:pycuda|cuda)\b", re.MULTILINE)
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "app").rglob("*.py")
        if importing.search(path.read_text(encoding="utf-8"))
    }
    assert found, "the pattern finds nothing"
    assert all(name.startswith("app/kernelscope/backends/cuda/") for name in found), found


def test_a_class_has_a_name_of_its_own() -> None:
    """A recipe of the library has that of the engine, whose steps it calls with arrays."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in (ROOT / "app").rglob("*.py"):
        for name in re.findall(r"^ *class (\w+)[(:]", path.read_text(encoding="utf-8"), re.M):
            places[name].append(path.relative_to(ROOT / "app").as_posix())
    assert len(places) > 500
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert several.keys() == {"Recipe"}, several


def test_every_header_belongs_to_a_kernel() -> None:
    kernels = [path.stem for path in KERNELS.glob("*.cu")]
    used = {file.name for kernel in kernels for file in source_files(kernel)}
    assert {path.name for path in KERNELS.glob("*.cuh")} == {
        name for name in used if name.endswith(".cuh")
    }


def test_top_level_holds_only_what_belongs_there() -> None:
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a Git checkout")
    top = {line.split("/")[0] for line in done.stdout.splitlines()}
    allowed = {"app", "kernels", "resources", "tests", "main.py", "pyproject.toml", "LICENSE"}
    assert {name for name in top if not name.startswith(".")} <= allowed | {
        *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff"),
    }


def test_ci_script_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("x" * 72, None),
        ("Subject\n\nBody, " + "x" * 100, None),
        ("# a comment of Git\nSubject\n# another\n", None),
        ("fixup! " + "x" * 72, None),
        ("x" * 73, "73 characters, of at most 72"),
        ("", "no subject"),
        ("# only a comment\n", "no subject"),
        ("\nSubject", "no subject"),
        ("Subject\nBody", "second line must be empty"),
    ],
)
def test_subjects_of_commits(tmp_path: Path, message: str, fault: str | None) -> None:
    file = tmp_path / "message"
    file.write_text(message, encoding="utf-8")
    command = [sys.executable, str(ROOT / ".ci" / "check_subject.py"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if fault is None else 1)
    assert (fault or "") in done.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_examples_are_drawn_by_the_commit(request: pytest.FixtureRequest) -> None:
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True)
    seed: int | str = request.config.getoption("--hypothesis-seed")
    if seed == int(commit[:8], 16):
        assert hypothesis.core.global_force_seed == seed
    else:
        assert isinstance(seed, str), "it was given on the command line"


def test_hooks_run_the_tools_that_the_tests_run() -> None:
    """A tool that is added here has to be added to the hooks, and a program that moves too."""
    hooks = (ROOT / ".ci" / "pre-commit.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: ([^,]+)", hooks)
    tools = {word.removeprefix(".venv/bin/") for entry in entries for word in entry.split()}
    assert {command[0] for command in TOOLS} <= tools
    scripts = [word for word in tools if word.startswith(".ci/")]
    assert scripts == [".ci/check_subject.py"]
    assert (ROOT / scripts[0]).is_file()
