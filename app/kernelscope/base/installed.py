"""How the program was installed, so that hints show a command that works on this installation."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = "kernelscope"


PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "window": ("the window", ("PySide6", "pyqtgraph")),
    "cuda": ("NVIDIA GPUs", ("pycuda", "cuda")),
    "emulator": ("a compiler for the emulated GPU, where there is no g++ or clang++", ("ziglang",)),
    "dicom": ("compressed DICOM", ("pylibjpeg",)),
    "zarr": ("OME-Zarr", ("zarr",)),
    "cluster": ("Dask clusters", ("distributed",)),
}
"""The optional parts: their purpose, and the modules that they bring."""


def missing_parts() -> dict[str, str]:
    """Return the command that installs each optional part that is not there."""
    return {
        name: install_command(name)
        for name, (_, modules) in PARTS.items()
        if any(importlib.util.find_spec(module) is None for module in modules)
    }


def install_command(extra: str) -> str:
    """Return the command that adds an optional part, such as ``cuda``, to this installation.

    The origin of an installation is recorded as described in the packaging specification
    *Recording the Direct URL Origin of installed distributions* (PEP 610). Without a record it
    came from an index; a program that is not installed runs from a checkout. If the file or
    folder that was installed is gone, the command names the packages of the part instead.
    """
    record = _record()
    if record is None:
        return _editable(Path(__file__).parents[3], extra)
    url = record.get("url", "")
    if url.startswith("file:") and not _local(url).exists():
        return pip_command(*_packages(extra))
    if "dir_info" in record:
        folder = _local(url)
        if record["dir_info"].get("editable"):
            return _editable(folder, extra)
        return pip_command(f"{folder}[{extra}]")
    if "vcs_info" in record:
        kind, commit = record["vcs_info"]["vcs"], record["vcs_info"]["commit_id"]
        return pip_command(f"{NAME}[{extra}] @ {kind}+{url}@{commit}")
    if url:
        return pip_command(f"{NAME}[{extra}] @ {url}")
    return pip_command(f"{NAME}[{extra}]")


_MISSING = re.compile(r"requires the '(\w+)' package|No module named '(\w+)")
"""How tifffile asks for a package, and how pydicom repeats an error of Python."""


def missing_package(error: Exception) -> str | None:
    """Return the package that is not installed, if that caused an error of a library."""
    found = _MISSING.search(str(error))
    name = found and (found[1] or found[2])
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
    if not name or name == NAME:
        return None
    # Without imagecodecs tifffile looks for decoders in modules of later versions of Python.
    return {"PIL": "pillow", "compression": "imagecodecs"}.get(name, name)


def pip_command(*arguments: str) -> str:
    """Return the command that installs packages where this program finds them.

    It begins with ``pip`` only if the shell would run the pip of this environment. Otherwise it
    names the interpreter, or uv for an environment that uv made, which has no pip.
    """
    return " ".join(map(_quoted, [*_installer(), *arguments]))


def _installer() -> list[str]:
    pip = shutil.which("pip")
    if pip is not None and Path(pip).parent == Path(sysconfig.get_path("scripts")):
        return ["pip", "install"]
    interpreter = Path(sys.executable)
    if interpreter.is_relative_to(Path.cwd()):
        interpreter = interpreter.relative_to(Path.cwd())
    if importlib.util.find_spec("pip") is None and shutil.which("uv") is not None:
        return ["uv", "pip", "install", "--python", str(interpreter)]
    return [str(interpreter), "-m", "pip", "install"]


def _record() -> dict[str, Any] | None:
    """Return the record of the installation; None if the program is not installed."""
    from importlib import metadata  # 20 ms, which only a hint is worth

    try:
        distribution = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return None
    text = distribution.read_text("direct_url.json")
    try:
        record = json.loads(text) if text else {}
    except ValueError:
        record = {}
    return record if isinstance(record, dict) else {}


def _packages(extra: str) -> list[str]:
    """Return the requirements of an optional part, as recorded when this was installed."""
    from importlib import metadata

    marker = re.compile(rf"(.*?)\s*;\s*extra == ['\"]{re.escape(extra)}['\"]")
    required = metadata.distribution(NAME).requires or []
    return [found[1] for found in map(marker.fullmatch, required) if found]


def _local(url: str) -> Path:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # with the modules of networks

    return Path(url2pathname(urlsplit(url).path))


def _editable(folder: Path, extra: str) -> str:
    if folder == Path.cwd():
        folder = Path()
    return pip_command("-e", f"{folder}[{extra}]")


def _quoted(text: str) -> str:
    if sys.platform != "win32":
        return shlex.quote(text)
    return text if re.fullmatch(r"[\w.:\\/-]+", text) else f'"{text}"'
