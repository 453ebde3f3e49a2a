"""Continuous integration: the script runs the README's command on each system, and hosts run it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import kernelscope
from tests.paths import ROOT
from tests.scripts import load_script

WORKFLOWS = ROOT / ".github" / "workflows"

README = """<!-- test-command -->
```sh
echo python3 .venv/bin/pip .venv/bin/python
```
<!-- system-libraries -->
```sh
echo sudo apt-get install
```
"""


@pytest.mark.skipif(os.name == "nt", reason="makes programs of sh")
@pytest.mark.parametrize(
    ("system", "libraries", "printed"),
    [
        ("Linux", "libEGL.so.1 libGL.so.1 libglib-2.0.so.0 libdbus-1.so.3 ", "python3 .venv/bin/"),
        ("Linux", "", "apt-get install\n"),
        ("Darwin", "", "python3 .venv/bin/pip .venv/bin/python"),
        ("MINGW64_NT-10.0", "", "python .venv/Scripts/pip .venv/Scripts/python"),
    ],
)
def test_the_script_runs_the_command_of_the_readme(
    tmp_path: Path, system: str, libraries: str, printed: str
) -> None:
    libraries = libraries and libraries + "libfontconfig.so.1 libxkbcommon.so.0"
    for name, answer in {"uname": system, "ldconfig": libraries, "g++": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {answer}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "README.md").write_text(README)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "SMOKE_PYTHONS": ""}
    command = [str(tmp_path / ".ci" / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
    assert ("apt-get" in done.stdout) == (system == "Linux" and not libraries)


STUB = """#!/bin/sh
case "$1 $2" in
    "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
    "-m pip") echo "$0" "$@" >> "$LOG"; echo "installed for $0" ;;
    "-c "*) case "$2" in *sys.executable*) echo "$0" ;; *numpy*) echo "Python 3.98.1" ;; esac ;;
    ".ci/smoke.py --oldest") echo "numpy==2.1.*" ;;
    ".ci/smoke.py "*)
        case "$0" in *"$BAD"*) echo "it broke"; exit 3 ;; esac
        echo "smoke: window passed in 1.0 s" ;;
esac
"""


@pytest.mark.skipif(os.name == "nt", reason="makes programs of sh")
@pytest.mark.parametrize(("bad", "status"), [("nothing", 0), ("oldest-3.98", 1)])
def test_the_script_tries_each_python_that_is_here(tmp_path: Path, bad: str, status: int) -> None:
    versions = tmp_path / "pyenv" / "versions" / "3.98.1" / "bin"
    versions.mkdir(parents=True)
    (versions / "python").write_text(STUB)
    (tmp_path / "python3.98").write_text("#!/bin/sh\nexit 127\n")  # a shim of pyenv
    (tmp_path / "uname").write_text("#!/bin/sh\necho Darwin\n")
    for program in (versions / "python", tmp_path / "python3.98", tmp_path / "uname"):
        program.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "README.md").write_text(README)
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYENV_ROOT": str(tmp_path / "pyenv"),
        "SMOKE_PYTHONS": "3.97 3.98",
        "LOG": str(tmp_path / "installs"),
        "BAD": bad,
    }
    command = [str(tmp_path / ".ci" / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "smoke: this machine has no Python 3.97" in done.stdout
    assert "newest-3.98: smoke: window passed" in done.stdout
    assert ("oldest-3.98: smoke: window passed" in done.stdout) == (status == 0)
    assert ("it broke" in done.stdout) == (status == 1)
    assert ("smoke: failed: oldest-3.98" in done.stderr) == (status == 1)
    installs = (tmp_path / "installs").read_text().splitlines()
    assert sorted("--constraint" in each for each in installs) == [False, True]


@pytest.mark.slow
def test_the_oldest_versions_are_the_lower_ends_of_the_ranges(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(
        """[project]
dependencies = ["a>=2.1,<3", "b>=1.2.3,<2,!=1.4; python_version < '3.12'"]
[project.optional-dependencies]
window = []
zarr = ["c>=2025.1,<2026"]
cluster = []
"""
    )
    smoke = load_script(ROOT / ".ci" / "smoke.py")
    assert smoke.oldest(project) == [
        "a==2.1.*",
        'b==1.2.3; python_version < "3.12"',
        "c==2025.1.*",
    ]
    assert len(smoke.oldest()) >= 15  # each dependency has both ends


@pytest.mark.skipif(sys.platform != "linux", reason="only there g++ has to be installed")
def test_the_script_fails_where_no_compiler_runs_the_kernels(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "README.md").write_text(README)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "awk", "dirname", "uname"):
        (tools / name).symlink_to(shutil.which(name) or "")
    command = [str(tools / "bash"), str(tmp_path / ".ci" / "run")]
    environment = {"PATH": str(tools)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("g++ is missing")
    assert done.stdout == ""


def workflow(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))
    return content


def test_hosts_try_the_oldest_python_and_the_oldest_qt() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matrix = workflow("tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert project["requires-python"] == f">={matrix['python'][0]}"
    oldest = min(
        re.search(r"PySide6-Essentials>=([\d.]+)", each)[1]  # type: ignore[index]
        for each in project["optional-dependencies"]["window"]
        if each.startswith("PySide6")
    )
    tried = {(each["system"], each["python"]): each["qt"] for each in matrix["include"]}
    for system in matrix["system"]:
        assert tried[system, matrix["python"][0]] == f"{oldest}.0"


def bundled(*arguments: str) -> list[str]:
    """Return what the folder's program prints with these arguments, run by this Python."""
    command = [sys.executable, str(ROOT / ".ci" / "bundle_main.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_program_of_the_folder_stands_for_python(tmp_path: Path) -> None:
    """It starts its helpers, such as trials of kernels, with the option -m."""
    assert bundled("--version") == [f"Kernelscope {kernelscope.__version__}"]
    assert bundled("-m", "calendar", "--type", "text", "2026", "11")[0].strip() == "November 2026"
