"""The menu entry: it starts this program, names every type that is read, and can be removed."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import stat
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image as PillowImage

from kernelscope.base import desktop
from kernelscope.base.errors import AppError
from kernelscope.base.paths import RESOURCES
from kernelscope.cli.main import main
from kernelscope.files.picture_formats import READABLE
from kernelscope.files.volumes.volume_formats import READABLE_VOLUMES
from tests.paths import ROOT

FOLDER = RESOURCES / "desktop"
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"

TYPES = {
    ".png": "image/png",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".bmp": "image/bmp",
    ".dib": "image/bmp",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".jpe": "image/jpeg",
    ".jfif": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".pgm": "image/x-portable-graymap",
    ".ppm": "image/x-portable-pixmap",
    ".pbm": "image/x-portable-bitmap",
    ".pnm": "image/x-portable-anymap",
    ".dcm": "application/dicom",
    ".ima": "application/dicom",
    ".nii": "application/x-nifti",
    ".nii.gz": "application/x-compressed-nifti",
    ".npy": "application/x-npy",
}
"""As in shared-mime-info 2.2; the last three are in the program's own file."""


def entry_of(path: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser["Desktop Entry"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of data with an entry of another program in it, on Linux without tools."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    (tmp_path / "share" / "applications").mkdir(parents=True)
    (tmp_path / "share" / "applications" / "other.desktop").write_text("")
    return tmp_path / "share"


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_readable_type_is_named() -> None:
    suffixes = {each for form in (*READABLE, *READABLE_VOLUMES) for each in form.suffixes}
    assert suffixes == TYPES.keys()
    named = entry_of(FOLDER / "kernelscope.desktop")["MimeType"].removesuffix(";").split(";")
    assert sorted(named) == sorted(set(TYPES.values()))


def test_types_of_our_own_have_their_suffixes() -> None:
    root = ElementTree.parse(FOLDER / "kernelscope-mime.xml").getroot()
    found = {
        glob.attrib["pattern"].removeprefix("*"): kind.attrib["type"]
        for kind in root.iter(f"{MIME}mime-type")
        for glob in kind.iter(f"{MIME}glob")
    }
    assert found == {suffix: TYPES[suffix] for suffix in (".nii", ".nii.gz", ".npy")}


def test_names_agree() -> None:
    """Desktops find icon, window and description by these names."""
    entry = entry_of(FOLDER / "kernelscope.desktop")
    start = (ROOT / "app" / "kernelscope" / "gui" / "starting.py").read_text(encoding="utf-8")
    assert 'setDesktopFileName("kernelscope")' in start
    assert f'setApplicationName("{entry["StartupWMClass"]}")' in start
    description = ElementTree.parse(FOLDER / "kernelscope.metainfo.xml").getroot()
    assert description.findtext("launchable") == "kernelscope.desktop"
    assert description.findtext("icon") == entry["Icon"] == "kernelscope"
    with PillowImage.open(RESOURCES / "icon.png") as icon:
        assert icon.size == (256, 256)  # as the name of its folder says


@pytest.mark.slow
def test_the_entry_starts_this_program(home: Path, tmp_path: Path) -> None:
    assert main(["--install-desktop"]) == 0
    entry = entry_of(home / "applications" / "kernelscope.desktop")
    assert Path(entry["TryExec"]).is_file()
    *words, last = shlex.split(entry["Exec"])
    assert last == "%f"
    outside = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*words, "--version"], cwd=tmp_path, env=outside, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Kernelscope ")


def test_removed_without_a_trace(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_in(home)
    assert main(["--install-desktop"]) == 0
    assert len(files_in(home) - before) == 5
    capsys.readouterr()
    assert main(["--remove-desktop"]) == 0
    assert files_in(home) == before
    assert capsys.readouterr().out.count("removed ") == 5
    assert main(["--remove-desktop"]) == 0
    assert capsys.readouterr().out == ""


def test_an_installed_program_names_its_script(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Characters that the specification, or a shell, would take for its own are escaped."""
    scripts = tmp_path / 'a "b" $c % `d` \\e'
    scripts.mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(scripts))
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    package = tmp_path / "site-packages" / "kernelscope"
    monkeypatch.setattr(desktop, "__file__", str(package / "desktop.py"))
    assert desktop.command() == ["/usr/bin/python3", "-m", "kernelscope"]
    (scripts / "kernelscope").write_text("")
    assert desktop.command() == [str(scripts / "kernelscope")]
    entry = entry_of(desktop.install())
    inner = entry["Exec"].replace("\\\\", "\\")  # a string of the file format,
    quoted, last = re.fullmatch(r'"((?:[^"`$\\]|\\.)*)" (%f)', inner).groups()  # type: ignore[union-attr]
    literal = re.sub(r"\\(.)", r"\1", quoted).replace("%%", "%")  # and an argument inside of it
    assert (literal, last) == (str(scripts / "kernelscope"), "%f")
    assert entry["TryExec"].replace("\\\\", "\\") == str(scripts / "kernelscope")


def test_caches_are_brought_up_to_date(home: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("update-desktop-database", "update-mime-database"):
        (tools / name).write_text(f'#!/bin/sh\necho "$1" > {tools}/{name}.called\n')
        (tools / name).chmod(stat.S_IRWXU)
    desktop.install()
    called = [
        (tools / f"update-{kind}-database.called").read_text() for kind in ("desktop", "mime")
    ]
    assert called == [f"{home / 'applications'}\n", f"{home / 'mime'}\n"]


def test_a_folder_that_cannot_be_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "icons").write_text("a file")
    assert main(["--install-desktop"]) == 1
    assert "The menu entry cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_other_systems_have_no_such_menu(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr("sys.platform", system)
    for change in (desktop.install, desktop.remove):
        with pytest.raises(AppError, match="Linux only"):
            change()


def test_an_image_is_not_opened_at_the_same_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--install-desktop", "a.png"])
    assert caught.value.code == 2
    assert "cannot be opened" in capsys.readouterr().err
