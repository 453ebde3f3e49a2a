"""What this machine is and which versions run on it, for reports and for asking for help."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from importlib import metadata
from pathlib import Path

import app

_LIBRARIES = (
    "numpy",
    "numba",
    "pillow",
    "tifffile",
    "imagecodecs",
    "PySide6-Essentials",
    "pyqtgraph",
    "pycuda",
    "opencv-python-headless",
)


def facts() -> dict[str, str]:
    """Return what a reader needs to know to judge a timing, in the order to show it."""
    return {
        "Kernelscope": app.__version__,
        "Date": datetime.now().astimezone().isoformat(sep=" ", timespec="minutes"),
        "System": platform.platform(),
        "CPU": f"{cpu_name()}, {os.cpu_count()} cores",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
    }


def cpu_name() -> str:
    """Return the processor's name as its maker gives it, or its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(distribution: str) -> str:
    """Return the version of an installed package, or ``not installed``."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
