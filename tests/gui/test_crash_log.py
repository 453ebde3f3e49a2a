"""The file of a process that dies: kept, shown once, removed where all is well."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kernelscope import __version__
from kernelscope.gui.work.crash_log import CrashLog, take_crashes
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the tests end processes by signals")


@pytest.fixture(autouse=True)
def own_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the handler of the tests themselves as it is."""
    monkeypatch.setattr("faulthandler.enable", lambda file: None)
    monkeypatch.setattr("faulthandler.disable", lambda: None)


_DIE = """
import faulthandler, os, sys
from pathlib import Path
from kernelscope.gui.work.crash_log import CrashLog
log = CrashLog(Path(sys.argv[1]))
def here():
    {ending}
here()
"""


def process(folder: Path, ending: str) -> None:
    code = _DIE.format(ending=ending)
    subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def test_crashes_are_taken_once_the_oldest_first(tmp_path: Path) -> None:
    process(tmp_path, "os.abort()")
    (first,) = files(tmp_path)
    os.utime(first, (1, 1))
    process(tmp_path, "faulthandler._sigsegv()")
    text = take_crashes(tmp_path)
    assert text.startswith(f"Kernelscope {__version__}, Python ")
    assert text.count("Kernelscope ") == text.count("in here") == 2
    assert text.index("Aborted") < text.index("Segmentation fault")
    assert files(tmp_path) == []
    assert take_crashes(tmp_path) == ""


@pytest.mark.parametrize("ending", ["log.close()", "os.kill(os.getpid(), 9)"])
def test_other_ends_are_no_crashes(tmp_path: Path, ending: str) -> None:
    process(tmp_path, ending)
    assert take_crashes(tmp_path) == ""
    assert files(tmp_path) == []


def test_the_file_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    log = CrashLog(tmp_path / "logs")
    try:
        (path,) = files(tmp_path / "logs")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert take_crashes(tmp_path / "logs") == ""
        assert path.exists()  # its process lives
    finally:
        log.close()
    assert files(tmp_path / "logs") == []
    log.close()


def test_without_a_folder_nothing_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    CrashLog(tmp_path / "file").close()
    assert "crashes cannot be recorded" in caplog.text
    assert take_crashes(tmp_path / "file") == ""


def test_a_file_of_somebody_else_is_not_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "crash-1-00.txt"
    path.write_text("Kernelscope\nFatal\n")
    path.chmod(0o666)
    assert take_crashes(tmp_path) == ""
    assert "others can write" in caplog.text
