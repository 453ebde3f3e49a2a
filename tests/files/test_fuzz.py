"""Damaged files of every kind end in a picture or in one sentence, soon and in little memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernelscope.files import READABLE
from kernelscope.files.volumes import READABLE_VOLUMES
from tests.paths import ROOT

pytestmark = pytest.mark.slow

KINDS = list(dict.fromkeys(format.name for format in (*READABLE, *READABLE_VOLUMES)))
CASES = [
    pytest.param(KINDS, 60, id="all"),  # a process of its own takes as long as its 60 files
    *(pytest.param([kind], 8000, id=kind, marks=pytest.mark.exhaustive) for kind in KINDS),
]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize(("kinds", "mutants"), CASES)
def test_damaged_files(tmp_path, kinds, mutants):
    results = tmp_path / "results"
    command = [sys.executable, "-m", "tests.files.fuzz", str(mutants), str(results), *kinds]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stderr == "", results.read_text()
    assert ended.stdout == ""
    assert results.read_text() == "[]"
