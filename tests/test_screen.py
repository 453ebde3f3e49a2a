"""Where Qt could only end the process, the program says why in one line."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelscope.base import screen
from kernelscope.base.errors import AppError
from tests.pairs import together
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")

Load = Callable[[str], object]


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Libraries that this computer shall lack; all others it has."""
    names: set[str] = set()

    def load(name: str) -> object:
        base = Path(name).name
        lacks = names if base.startswith("libq") else names & {base}
        if lacks:
            first = min(lacks)
            raise OSError(f"{first}: cannot open shared object file: No such file or directory")
        return ctypes.CDLL(None)

    monkeypatch.setattr(screen, "load", load)
    monkeypatch.setattr(screen, "_reaches_x", lambda: True)
    monkeypatch.setattr(screen, "_reaches_wayland", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return names


def refusal(**environment: str) -> str:
    with pytest.raises(AppError) as caught:
        screen.check(environment)
    return str(caught.value)


def test_the_packages_that_are_missing_are_named(missing: set[str]) -> None:
    missing |= {"libxcb-cursor.so.0", "libxcb-icccm.so.4"}
    assert refusal(DISPLAY=":0") == (
        "Qt lacks libraries of the system: libxcb-cursor.so.0, libxcb-icccm.so.4. "
        "Install them: sudo apt-get install libxcb-cursor0 libxcb-icccm4"
    )


def test_a_library_that_nobody_expected_is_named(
    missing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing.add("libnew.so.7")
    assert "libraries of the system: libnew.so.7. Install them" in refusal(DISPLAY=":0")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert refusal(DISPLAY=":0").endswith("Install the packages of your system that have them.")


@pytest.mark.parametrize(
    "environment",
    [
        {"DISPLAY": ":0"},
        {"QT_QPA_PLATFORM": "xcb"},
        {"QT_QPA_PLATFORM": "offscreen"},
        {"QT_QPA_PLATFORM": "vnc:size=640x480"},
        {"QT_QPA_PLATFORM": "wayland;xcb"},
        {"DISPLAY": ":0", "WAYLAND_DISPLAY": "gone"},
        {"QT_QPA_PLATFORM": "mine", "QT_QPA_PLATFORM_PLUGIN_PATH": "/mine"},
    ],
)
def test_where_nothing_is_missing_qt_starts(environment: dict[str, str], missing: set[str]) -> None:
    screen.check(environment)


def test_screens_that_are_not_there(missing: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "_reaches_x", lambda: False)
    assert refusal().startswith("There is no screen")
    assert refusal(DISPLAY=":7").startswith("The screen cannot be reached: DISPLAY is “:7”.")
    assert "DISPLAY is not set" in refusal(QT_QPA_PLATFORM="xcb")
    assert "WAYLAND_DISPLAY is “w”" in refusal(WAYLAND_DISPLAY="w", DISPLAY=":7")
    assert refusal(QT_QPA_PLATFORM="magic").startswith("Qt has no platform “magic”")


@pytest.mark.slow
@together("platform", ["xcb", "wayland", "magic", "wayland;xcb"])
def test_no_core_dump(platform: str) -> None:
    """Qt itself ends the process with SIGABRT here, whether libraries or a screen are missing."""
    environment = {k: v for k, v in os.environ.items() if "DISPLAY" not in k}
    run = subprocess.run(
        [sys.executable, "main.py"],
        cwd=ROOT,
        env=environment | {"QT_QPA_PLATFORM": platform},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert re.fullmatch(r"error: (Qt|The screen) .*\n", run.stderr)


def test_a_server_that_answers_is_reached() -> None:
    """A stand-in that says no more than “welcome”, as the X Window System Protocol begins."""
    welcome = struct.pack("<BxHHH", 1, 11, 0, 8) + bytes(32)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(12)
                connection.sendall(welcome)
                connection.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        code = (
            "from kernelscope.base.screen import _reaches_x; "
            "raise SystemExit(0 if _reaches_x() else 3)"
        )
        where = os.environ | {"DISPLAY": f"127.0.0.1:{port - 6000}"}
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=where).returncode == 0
        thread.join()
    gone = os.environ | {"DISPLAY": f"127.0.0.1:{port - 6000}"}
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=gone).returncode == 3


def test_the_readme_installs_all_that_plugins_load() -> None:
    """Packages that others bring along stand in the table, not in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = (
        text.partition("<!-- system-libraries -->")[2].partition("```sh\n")[2].partition("\n")[0]
    )
    installed = set(re.findall(r" (lib\S+)", command))
    brought = {
        *("libx11-6", "libfreetype6", "libwayland-client0", "libxcb-image0", "libxcb-render0"),
        *("libxcb-render-util0", "libxcb-shm0", "libxcb-util1", "libxcb-xkb1", "libxcb1"),
        "libxkbcommon0",
    }
    assert installed == set(screen.PACKAGES.values()) - brought
