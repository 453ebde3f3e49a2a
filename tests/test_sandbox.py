"""A module that is confined to a folder: attempts to leave it, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelscope.base import sandbox
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())

ATTEMPTS = {
    "inside": "open('new', 'w').write('x')",
    "moved inside": "os.mkdir('d'), open('a', 'w'), os.rename('a', 'd/a')",
    "null": "open('/dev/null', 'w').write('x')",
    "read": "open(OUT + '/old').read()",
    "pair": "socket.socketpair()",
    "outside": "open(OUT + '/new', 'w')",
    "append": "open(OUT + '/old', 'a')",
    "truncate": "os.truncate(OUT + '/old', 0)",
    "remove": "os.remove(OUT + '/old')",
    "folder": "os.mkdir(OUT + '/d')",
    "link": "os.link(OUT + '/old', 'hard')",
    "through a link": "os.symlink(OUT, 'l'), open('l/new', 'w')",
    "mode": "os.chmod(OUT + '/old', 0o777)",
    "owner": "os.chown(OUT + '/old', 1, 1)",
    "time": "os.utime(OUT + '/old', (0, 0))",
    "program": "subprocess.run(['touch', OUT + '/new'], check=True)",
    "TCP": "socket.socket()",
    "UDP": "socket.socket(type=socket.SOCK_DGRAM)",
    "local": "socket.socket(socket.AF_UNIX)",
    "memory": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
}
ALLOWED = ("inside", "moved inside", "null", "read", "pair")


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTEMPTS)
def test_only_the_folder_is_written_to(tmp_path: Path, name: str) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    modules = tmp_path / "modules"
    for folder in (inside, outside, modules):
        folder.mkdir()
    (outside / "old").write_text("kept")
    before = (outside / "old").stat()
    (modules / "attempt.py").write_text(
        f"import os, socket, subprocess, sys\nOUT = {str(outside)!r}\n{ATTEMPTS[name]}\n"
    )
    done = subprocess.run(
        sandbox.command([inside], "attempt"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "app"), str(modules)])},
        cwd=inside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (name in ALLOWED), done.stderr
    assert [path.name for path in outside.iterdir()] == ["old"]
    assert (outside / "old").read_text() == "kept"
    after = (outside / "old").stat()
    kept = ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_nlink", "st_size")
    assert [getattr(after, each) for each in kept] == [getattr(before, each) for each in kept]


def test_the_module_that_confines_starts_no_thread_before() -> None:
    """A thread of NumPy's that runs already would not be confined."""
    code = "import sys, kernelscope.base.sandbox; sys.exit('numpy' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "app")}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


def test_other_systems_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sandbox.missing() == ""
    assert "no network" in sandbox.described()
    monkeypatch.setattr(sandbox, "_landlock_version", lambda: 0)
    assert sandbox.missing() == "This system cannot keep it from writing files of yours."
    monkeypatch.setattr(sys, "platform", "darwin")
    assert sandbox.missing() == (
        "This system cannot keep it from writing files of yours or using the network."
    )
    assert sandbox.missing() in sandbox.described()
