"""Facts about this machine and the versions on it, for reports of timings and of problems."""

from __future__ import annotations

import functools
import os
import platform
from datetime import datetime
from pathlib import Path

import kernelscope

_LIBRARIES = (
    "numpy",
    "numba",
    "pillow",
    "tifffile",
    "imagecodecs",
    "PySide6-Essentials",
    "pyqtgraph",
    "pycuda",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "cupy-cuda13x",
    "opencv-python-headless",
)


def facts() -> dict[str, str]:
    return {
        "Kernelscope": f"{kernelscope.__version__}, commit {commit()}",
        "Date": datetime.now().astimezone().isoformat(sep=" ", timespec="minutes"),
        "System": platform.platform(),
        "CPU": f"{cpu_name()}, {os.cpu_count()} cores",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
    }


def gpu_facts() -> dict[str, str]:
    query = _output(
        "nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"
    )
    if not query:
        return {}
    name, driver, memory = query.splitlines()[0].split(", ")
    return {"GPU": f"{name}, {memory}", "Driver": driver}


def commit() -> str:
    """Return ``KERNELSCOPE_COMMIT`` if it is set, or the commit of the checkout."""
    folder = str(Path(__file__).parents[1])
    described = _output("git", "-C", folder, "describe", "--always", "--dirty", "--exclude=*")
    return os.environ.get("KERNELSCOPE_COMMIT") or described or "unknown"


def _output(*command: str) -> str:
    """Return the output of a command; empty if it does not exist or fails."""
    import subprocess

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(distribution: str) -> str:
    from importlib import metadata  # 20 ms, for the name of a processor

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
