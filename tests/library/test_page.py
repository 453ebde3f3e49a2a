"""The page of the library is true: its code runs, prints what it says, and makes its picture."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kernelscope import manual
from kernelscope.paths import RESOURCES

PAGE = manual.FOLDER / "library.md"
PICTURE = RESOURCES / "screenshots" / "library-denoise.png"

_EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def run_page(text: str) -> list[tuple[str, str]]:
    """Return the output in the page, and the real one, of each example."""
    variables: dict[str, Any] = {}
    found = []
    for code, expected in _EXAMPLE.findall(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), variables)
        found.append((expected, printed.getvalue()))
    return found


@pytest.mark.slow
def test_examples_print_what_the_page_says(here: Path) -> None:
    shutil.copy(RESOURCES / "camera.bmp", here)
    text = PAGE.read_text(encoding="utf-8")
    outputs = run_page(text)
    assert len(outputs) == text.count("```python\n") == 8
    for expected, printed in outputs:
        assert printed == expected
    with Image.open("library-denoise.png") as made, Image.open(PICTURE) as shown:
        np.testing.assert_array_equal(np.asarray(made), np.asarray(shown))
