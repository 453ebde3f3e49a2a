"""The folder for what tests compile, and the lines on what hinders the suite."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import builds
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import QuickCompiler
from tests.backends.quick_compiler import _headers as headers


def test_a_file_is_made_once_for_each_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_text("made")

    first, again, other = (builds.built(make, ".so", key) for key in ("a", "a", "b"))
    assert first == again != other
    assert first.read_text() == "made"
    assert len(made) == 2


@pytest.mark.parametrize("content", ["", "ma", "mode", "of another version"])
def test_a_file_that_is_not_whole_is_made_again(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))

    def make(path: Path) -> None:
        path.write_text("made")

    path = builds.built(make, ".h.gch")
    path.write_text(content)
    monkeypatch.setattr(builds, "_whole", set())  # as in the next session
    assert builds.built(make, ".h.gch").read_text() == "made"
    builds._sum_of(path).unlink()
    path.write_text("from before there were sums")
    monkeypatch.setattr(builds, "_whole", set())
    assert builds.built(make, ".h.gch").read_text() == "made"


@pytest.mark.slow
@needs_compiler
def test_a_header_that_was_cut_off_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))
    compiler = QuickCompiler.find("-O0")
    assert isinstance(compiler, QuickCompiler)
    source = headers(())
    compiler.compile("empty", source, "host", {})
    (header,) = tmp_path.glob("*.gch")
    header.write_bytes(header.read_bytes()[:5000])
    monkeypatch.setattr(builds, "_whole", set())
    compiler.compile("empty", source, "host", {})
    assert header.stat().st_size > 5000


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))

    def make(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with pytest.raises(pytest.fail.Exception, match=r"cannot be written.*No space left") as caught:
        builds.built(make, ".so")
    assert "\n" not in str(caught.value)


def test_a_compiler_that_cannot_write_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))
    cause = "fatal error: error writing to x.gch: No space left on device"
    lines = f"in function\n{cause}\ncompilation terminated."
    compiler = tmp_path / "g++"
    compiler.write_text(f"#!{sys.executable}\nimport sys\nsys.exit({lines!r})\n")
    compiler.chmod(0o755)
    with pytest.raises(pytest.fail.Exception) as caught:
        builds.precompiled("// a header", (str(compiler),))
    assert str(caught.value) == f"{compiler} wrote nothing to {tmp_path}: {cause}"
    assert sorted(path.suffix for path in tmp_path.glob("*.*")) == [".h", ".sum"]


def test_a_folder_without_room_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(builds._BUILDS, "")
    monkeypatch.setattr(builds, "KEPT", tmp_path / "build")
    assert builds.open_folder()[1] == ""
    assert builds.kept("x") == tmp_path / "build" / "x"

    def full(**_: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    clean_up, note = builds.open_folder()
    other = builds.kept("x").parent
    assert other.is_dir()
    assert other != tmp_path / "build"
    assert note.startswith(f"{tmp_path / 'build'} cannot be written (No space left on device): ")
    clean_up()
    assert not other.exists()
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(pytest.UsageError, match=r"No space left on device\. Free some space, or"):
        builds.open_folder()


@pytest.mark.slow
def test_files_that_cannot_be_collected_have_one_line_each(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    causes = {
        "import nothing_like_this": "ModuleNotFoundError: No module named 'nothing_like_this'",
        "def test(:": "SyntaxError: invalid syntax",
        "raise ValueError('several\\nlines')": "lines",
    }
    for number, text in enumerate(causes):
        (tmp_path / f"test_{number}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", str(tmp_path)]
    # In a worker of pytest-xdist, it would leave the report to another process.
    env = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        command, cwd=pytestconfig.rootpath, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    found = [each for each in done.stdout.splitlines() if "cannot be collected" in each]
    assert [each.partition(" cannot be collected: ")[2] for each in found] == [*causes.values()]
    assert all(f"test_{number}.py" in line for number, line in enumerate(found))
