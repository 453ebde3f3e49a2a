"""Hints name a command that works for the way in which the program was installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from kernelscope.base.installed import install_command, pip_command
from tests.paths import ROOT


class Distribution:
    requires = (
        "numpy<3,>=2.1",
        "cuda-bindings>=12.8; extra == 'cuda'",
        'pycuda>=2025.1 ; extra == "cuda"',
        "pylibjpeg<3,>=2; extra == 'dicom'",
    )

    def __init__(self, record: Any) -> None:
        self._record = record

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._record is None else json.dumps(self._record)


@pytest.fixture(autouse=True)
def active(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the shell run the pip of this environment, on a system with quotes as in sh."""
    monkeypatch.setattr("sys.platform", "linux")
    finds(monkeypatch, pip=str(Path(sysconfig.get_path("scripts")) / "pip"))


def finds(monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Let the shell find these programs by name, and no others."""
    monkeypatch.setattr(shutil, "which", programs.get)


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (None, "pip install 'kernelscope[cuda]'"),
        ([], "pip install 'kernelscope[cuda]'"),
        (
            {"url": "file:///home/a%20b/ks", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/ks[cuda]'",
        ),
        ({"url": "file:///home/ks", "dir_info": {}}, "pip install '/home/ks[cuda]'"),
        ({"url": "file:///home/a%2520b", "dir_info": {}}, "pip install '/home/a%20b[cuda]'"),
        (
            {"url": "file:///tmp/ks-1.whl", "archive_info": {}},
            "pip install 'kernelscope[cuda] @ file:///tmp/ks-1.whl'",
        ),
        (
            {"url": "https://host/ks", "vcs_info": {"vcs": "git", "commit_id": "0abc"}},
            "pip install 'kernelscope[cuda] @ git+https://host/ks@0abc'",
        ),
    ],
)
def test_each_way(record: Any, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Distribution(record))
    monkeypatch.setattr(Path, "exists", lambda path: True)
    assert install_command("cuda") == command


def test_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nowhere)
    monkeypatch.chdir(ROOT.parent)
    assert install_command("cuda") == f"pip install -e '{ROOT}[cuda]'"
    monkeypatch.chdir(ROOT)
    assert install_command("cuda") == "pip install -e '.[cuda]'"


@pytest.mark.parametrize("record", [{"dir_info": {}}, {"archive_info": {}}])
def test_the_packages_of_a_part_if_the_installed_file_is_gone(
    record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most people delete a wheel after they installed it."""
    gone = Distribution(record | {"url": (tmp_path / "gone.whl").as_uri()})
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: gone)
    assert install_command("cuda") == "pip install 'cuda-bindings>=12.8' 'pycuda>=2025.1'"
    assert install_command("dicom") == "pip install 'pylibjpeg<3,>=2'"


def test_the_interpreter_is_named_if_the_shell_runs_another_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package for the wrong Python would not be found after it was installed."""
    finds(monkeypatch, pip="/usr/bin/pip")
    python = tmp_path / "my tools" / "bin" / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert pip_command("numpy") == f"'{python}' -m pip install numpy"
    monkeypatch.chdir(tmp_path / ".")
    assert pip_command("numpy") == "'my tools/bin/python' -m pip install numpy"


def test_uv_installs_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/tools/python")
    finds(monkeypatch, uv="/usr/bin/uv")
    assert pip_command("numpy") == "uv pip install --python /tools/python numpy"
    finds(monkeypatch)
    assert pip_command("numpy") == "/tools/python -m pip install numpy"


def test_windows_has_its_own_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    assert pip_command("-e", ".[cuda]") == 'pip install -e ".[cuda]"'
