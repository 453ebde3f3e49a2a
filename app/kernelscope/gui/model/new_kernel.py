"""New kernels: a template to begin with, and the files to add one to the project."""

from __future__ import annotations

import pprint
import re
from collections.abc import Mapping
from typing import Any

from kernelscope.base.errors import AppError
from kernelscope.base.paths import RESOURCES
from kernelscope.schema.launch import Launch

FOLDER = RESOURCES / "templates"

_GLOBAL = re.compile(r"__global__[^;{}()]*(?:\([^()]*\)\s*)?\b(\w+)\s*\(")
"""The name of a kernel, behind ``__launch_bounds__`` where it has some."""


def template_for(level_id: str, launch: Launch, radius: int) -> str:
    """Return the source of a kernel that can be launched as that of a level, and copies the image.

    `radius`: of the filter's mask, in pixels: the template's default.

    Returns empty if no template has the arguments of this launch.
    """
    path = FOLDER / f"{level_id}.cu"
    if launch.constants or launch.tables or launch.scratch or not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    return text.replace("@KERNEL@", launch.kernel).replace("@SIDE@", str(2 * radius + 1))


def files_for(
    name: str, text: str, filter_id: str, parameters: Mapping[str, Any]
) -> dict[str, str]:
    """Return a source and its test under the name of a new filter.

    `name`: id of the new filter. Kernels that begin with `filter_id` begin with `name` then.
    `text`: a version of a kernel of a filter. `filter_id`: that filter, whose results on the CPU
    the test expects. `parameters`: those that the test tries.

    Texts by the names of their files: ``NAME.cu`` and ``test_NAME.py``.

    Raises `AppError`: if the name is not an id, is that of the filter, or `text` has no kernel of
    the filter.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", name) or name == filter_id:
        raise AppError(
            f"“{name}” cannot be the id of a new filter.",
            "Choose another file name, of small letters, digits and underscores: own_mean.cu",
        )
    kernels = [each for each in _GLOBAL.findall(text) if each.startswith(f"{filter_id}_")]
    if not kernels:
        raise AppError(
            f"The source has no kernel whose name begins with “{filter_id}_”.",
            "Name the kernel as the original does.",
        )
    for each in kernels:
        text = re.sub(rf"\b{each}\b", f"{name}_{each.removeprefix(f'{filter_id}_')}", text)
    case = pprint.pformat(dict(parameters), width=90, sort_dicts=False)
    test = (FOLDER / "test_filter.txt").read_text(encoding="utf-8")
    test = test.replace("@FILTER@", filter_id).replace("@CASE@", case)
    return {f"{name}.cu": text, f"test_{name}.py": test}
