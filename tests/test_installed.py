"""Hints name a command that works for the way in which the program was installed."""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any

import pytest

from kernelscope.installed import install_command
from tests.paths import ROOT


class Distribution:
    def __init__(self, record: Any) -> None:
        self._record = record

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._record is None else json.dumps(self._record)


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
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Distribution(record))
    assert install_command("cuda") == command


def test_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nowhere)
    monkeypatch.chdir(ROOT.parent)
    assert install_command("cuda") == f"pip install -e '{ROOT}[cuda]'"
    monkeypatch.chdir(ROOT)
    assert install_command("cuda") == "pip install -e '.[cuda]'"
