"""Damaged files of every kind end in a picture or in one sentence, soon and in little memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernelscope.files import READABLE
from kernelscope.files.volumes import READABLE_VOLUMES
from tests.paths import ROOT

pytestmark = pytest.mark.slow

MUTANTS = [60, pytest.param(8000, marks=pytest.mark.exhaustive)]
KINDS = dict.fromkeys(format.name for format in (*READABLE, *READABLE_VOLUMES))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("mutants", MUTANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(tmp_path, kind, mutants):
    results = tmp_path / "results"
    command = [sys.executable, "-m", "tests.files.fuzz", kind, str(mutants), str(results)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stderr == "", results.read_text()
    assert ended.stdout == ""
    assert results.read_text() == "[]"
