"""Check that Qt can open a window, before it tries: Qt itself would abort the process.

The check is for Linux only. There the wheels of Qt contain its platform plugins, but not the
system libraries that these load, some of which a bare Debian or Ubuntu lacks.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from kernelscope.base.errors import AppError
from kernelscope.base.installed import install_command
from kernelscope.base.paths import RESOURCES

PACKAGES: Mapping[str, str] = tomllib.loads(
    (RESOURCES / "desktop" / "libraries.toml").read_text(encoding="utf-8")
)
"""The package of Debian and Ubuntu for each library that Qt loads."""

_VARIABLES = {"wayland": "WAYLAND_DISPLAY", "xcb": "DISPLAY"}
"""The variable that names the display, for each platform, in the order in which Qt tries them."""

_NO_SCREEN = "Log in on one, or use the command line: kernelscope --help."


def check_installed() -> None:
    """Raise `AppError` if the packages of the window are not installed."""
    missing = [name for name in ("PySide6", "pyqtgraph") if importlib.util.find_spec(name) is None]
    if missing:
        raise AppError(
            f"The window is not installed: it needs {' and '.join(missing)}.",
            f"{install_command('window')}, or use the command line: kernelscope --help.",
        )


def check(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse to start Qt if it would abort the process.

    Raises `AppError` if there is no screen, it cannot be reached, or libraries are missing; the
    hint names the command that installs them.
    """
    if sys.platform != "linux":
        return
    platforms = _platforms(environment)
    if not platforms:
        raise AppError("There is no screen to open the window on.", _NO_SCREEN)
    problems = []
    for platform in platforms:
        problem = _problem(platform, environment)
        if problem is None:
            return
        problems.append(problem)
    raise problems[0]


def _platforms(environment: Mapping[str, str]) -> list[str]:
    """Return the platforms that Qt will try, in this order."""
    chosen = environment.get("QT_QPA_PLATFORM", "")
    if chosen:
        return [name.partition(":")[0] for name in chosen.split(";")]
    return [name for name, variable in _VARIABLES.items() if environment.get(variable)]


def _problem(platform: str, environment: Mapping[str, str]) -> AppError | None:
    """Return why Qt cannot start on a platform; None if it can, or if that is unknown."""
    folder = _plugins()
    if folder is None or not folder.is_dir() or environment.get("QT_QPA_PLATFORM_PLUGIN_PATH"):
        return None
    name = "wayland" if platform.startswith("wayland") else platform
    plugin = f"libq{name}.so"
    if not (folder / plugin).exists():
        known = sorted(each.stem.removeprefix("libq") for each in folder.glob("libq*.so"))
        return AppError(
            f"Qt has no platform “{platform}”, which QT_QPA_PLATFORM names.",
            f"Unset it, or use one of {', '.join(known)}.",
        )
    if name not in _VARIABLES:
        return None
    missing = _loading_problem(str(folder / plugin))
    if missing:
        return libraries_missing(missing)
    if {"xcb": _reaches_x, "wayland": _reaches_wayland}[name]():
        return None
    variable = _VARIABLES[name]
    value = environment.get(variable)
    where = f"{variable} is “{value}”" if value else f"{variable} is not set"
    return AppError(f"The screen cannot be reached: {where}.", _NO_SCREEN)


def _plugins() -> Path | None:
    """Return the folder of Qt's platform plugins, without importing it."""
    found = importlib.util.find_spec("PySide6")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "Qt" / "plugins" / "platforms"


def load(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(name)


def _loading_problem(library: str) -> str:
    """Return the system's message if a library cannot be loaded, or an empty text."""
    try:
        load(library)
    except OSError as error:
        return str(error)
    return ""


def libraries_missing(problem: str) -> AppError:
    """Return the failure to load Qt, with the command that installs the missing libraries.

    `problem` is the system's message, such as ``libEGL.so.1: cannot open shared object file``,
    which names the first missing library only.
    """
    missing = [name for name in PACKAGES if _loading_problem(name)]
    named = re.match(r"([\w.+-]+\.so[.\d]*): cannot open", problem)
    if named and named[1] not in missing:
        missing.append(named[1])
    if not missing:
        return AppError(f"Qt cannot be loaded: {problem}.", "Install it again.")
    message = f"Qt lacks libraries of the system: {', '.join(missing)}."
    if shutil.which("apt-get"):
        packages = dict.fromkeys(PACKAGES.get(name, name) for name in missing)
        return AppError(message, f"Install them: sudo apt-get install {' '.join(packages)}")
    return AppError(message, "Install the packages of your system that have them.")


def _reaches_x() -> bool:
    """Return whether an X server answers, as described in xcb_connect(3)."""
    try:
        xcb = load("libxcb.so.1")
    except OSError:
        return False
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    xcb.xcb_connection_has_error.argtypes = (ctypes.c_void_p,)
    xcb.xcb_disconnect.argtypes = (ctypes.c_void_p,)
    connection = xcb.xcb_connect(None, None)
    try:
        return not xcb.xcb_connection_has_error(connection)
    finally:
        xcb.xcb_disconnect(connection)


def _reaches_wayland() -> bool:
    """Return whether a compositor answers wl_display_connect of libwayland."""
    environment = os.environ
    named = environment.get("WAYLAND_DISPLAY", "").startswith("/")
    if not (named or environment.get("XDG_RUNTIME_DIR") or environment.get("WAYLAND_SOCKET")):
        return False  # libwayland has no place to look, and would print a line of its own
    try:
        wayland = load("libwayland-client.so.0")
    except OSError:
        return False
    wayland.wl_display_connect.restype = ctypes.c_void_p
    wayland.wl_display_connect.argtypes = (ctypes.c_char_p,)
    wayland.wl_display_disconnect.argtypes = (ctypes.c_void_p,)
    display = wayland.wl_display_connect(None)
    if display:
        wayland.wl_display_disconnect(display)
    return bool(display)
