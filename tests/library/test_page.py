"""Page of the library, gallery and notebook are true: their code gives their outputs."""

from __future__ import annotations

import base64
import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import kernelscope as ks
from kernelscope.base import memory
from kernelscope.base.paths import RESOURCES
from kernelscope.cli.main import main
from kernelscope.files import read_image
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from kernelscope.teach import handbook, manual
from kernelscope.teach.handbook import pages, pictures
from tests.scripts import load_script

PAGE = manual.FOLDER / "library.md"
PICTURE = RESOURCES / "screenshots" / "library-denoise.png"

_EXAMPLE = re.compile(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", re.DOTALL)


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
def test_examples_print_what_the_page_says(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident", lambda: 300 << 20)  # and not that of all tests
    shutil.copy(RESOURCES / "camera.bmp", here)
    text = PAGE.read_text(encoding="utf-8")
    outputs = run_page(text)
    # One more needs a GPU, see test_on_device.py.
    assert len(outputs) == text.count("```python\n") - 1 == 13
    for expected, printed in outputs:
        assert printed == expected
    with Image.open("library-denoise.png") as made, Image.open(PICTURE) as shown:
        np.testing.assert_array_equal(np.asarray(made), np.asarray(shown))


@pytest.mark.slow
@pytest.mark.parametrize("spec", handbook.FILTERS.values(), ids=lambda spec: spec.id)
def test_both_ways_of_the_gallery_have_the_effect_that_it_shows(
    spec: FilterSpec, here: Path
) -> None:
    """Of volumes, which are shown rounded, both ways have the same result."""
    arguments = shlex.split(pages.command(spec))[1:]
    source, target = arguments[2:4]
    read: Any
    if spec.kind is Kind.VOLUME:
        truth = ks.phantom((5, 24, 24), weighting="t1")
        noisy = Volume.from_array(ks.noise(truth, "rician", sigma=18.0), "head")
        write_volume(noisy, source)
        result = eval(pages.call(spec), {"ks": ks, "volume": noisy.voxels})
        read = lambda path: read_volume(path).voxels  # noqa: E731
    else:
        shown = pictures.effect(spec.id)
        Image.fromarray(shown.before).save(source)
        result = eval(pages.call(spec), {"ks": ks, "image": shown.before})
        np.testing.assert_array_equal(result, shown.after)
        read = lambda path: read_image(path).pixels  # noqa: E731
    assert main([*arguments, "--quiet"]) == 0
    np.testing.assert_array_equal(read(target), result)


def pixels(data: dict[str, str]) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) as picture:
        return np.asarray(picture).astype(np.int16)


@pytest.mark.slow
def test_notebook_has_the_outputs_of_its_code() -> None:
    """If not: python resources/make_notebook.py."""
    runner = load_script(RESOURCES / "make_notebook.py")
    notebook = runner.read()
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(stored) > 5
    for outputs, made in zip(stored, runner.run(notebook), strict=True):
        for output, other in zip(outputs, made, strict=True):
            assert output.get("text") == other.get("text")
            if "data" in output:
                first, second = pixels(output["data"]), pixels(other["data"])
                assert first.shape == second.shape
                # Volumes are floats, which another processor may round to the next grey.
                assert np.abs(first - second).max() <= 1
