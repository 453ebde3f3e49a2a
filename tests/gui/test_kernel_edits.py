"""The user's own kernels: their files, templates, and new filters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda.inspection import plan
from kernelscope.backends.cuda.sources import source_files
from kernelscope.backends.emulator import checking
from kernelscope.backends.emulator.checking import CheckedBackend
from kernelscope.backends.trial.compiling import expanded
from kernelscope.base.errors import AppError
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.gui.model import kernel_edits
from kernelscope.gui.model.kernel_edits import (
    FIRST,
    Edit,
    Edits,
    checked_name,
    digest,
    files_for,
    template_for,
)
from kernelscope.images.image import DTYPES, Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import GLOBAL, SHARED, TEXTURE, Level
from kernelscope.schema.samples import Kind
from tests.backends.emulated import needs_compiler
from tests.pairs import in_turn


def edit(name: str = FIRST, text: str = "int ß;\n") -> Edit:
    return Edit("mean", "shared", name, digest("original"), text)


def file_of(edits: Edits) -> Path:
    (path,) = edits.folder.glob("*.json")
    return path


def test_a_version_is_kept(edits: Edits) -> None:
    assert edits.read("mean", "shared", FIRST) is None
    edits.write(edit())
    assert Edits(edits.folder).read("mean", "shared", FIRST) == edit()
    assert edits.read("mean", "global", FIRST) is None
    assert edits.read("median", "shared", FIRST) is None


def test_only_the_user_may_read_it(edits: Edits) -> None:
    edits.write(edit())
    assert file_of(edits).stat().st_mode & 0o077 == 0


def test_several_versions_side_by_side(edits: Edits) -> None:
    for name in ("b", FIRST, "A (2)"):
        edits.write(edit(name, f"// {name}"))
    assert edits.names("mean", "shared") == [FIRST, "A (2)", "b"]
    assert edits.names("mean", "global") == []
    edits.remove("mean", "shared", FIRST)
    edits.remove("mean", "shared", FIRST)
    assert edits.names("mean", "shared") == ["A (2)", "b"]
    found = edits.read("mean", "shared", "b")
    assert found is not None
    assert found.text == "// b"


@pytest.mark.parametrize(
    "name", ["", "   ", "x" * 41, "a/b", "..\\a", "a\nb", "a\0"], ids=lambda name: repr(name)[:9]
)
def test_names_that_are_none(edits: Edits, name: str) -> None:
    with pytest.raises(AppError, match="cannot be used"):
        checked_name(name)
    with pytest.raises(AppError, match="cannot be used"):
        edits.write(edit(name))


def test_spaces_around_a_name_do_not_count() -> None:
    assert checked_name("  rows of 4 ") == "rows of 4"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("filter", "median"),
        ("level", "global"),
        ("name", "a/b"),
        ("original", 3),
        ("text", ["int x;"]),
        ("more", 1),
    ],
)
def test_a_damaged_file_is_refused_and_named(edits: Edits, field: str, value: object) -> None:
    edits.write(edit())
    path = file_of(edits)
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(AppError, match=path.name):
        edits.read("mean", "shared", FIRST)
    assert edits.names("mean", "shared") == []
    (reason,) = edits.damaged("mean", "shared")
    assert path.name in reason


def test_a_file_under_the_name_of_another_version_is_refused(edits: Edits) -> None:
    edits.write(edit("one"))
    path = file_of(edits)
    path.write_text(path.read_text().replace('"one"', '"two"'))
    with pytest.raises(AppError, match="holds the version “two”"):
        edits.read("mean", "shared", "one")


def test_sources_are_bounded(edits: Edits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_edits, "MOST_BYTES", 100)
    with pytest.raises(AppError, match="was not kept"):
        edits.write(edit(text="ß" * 51))
    edits.write(edit(text="ß" * 50))
    monkeypatch.setattr(kernel_edits, "MOST_BYTES", 90)
    with pytest.raises(AppError, match="too large"):
        edits.read("mean", "shared", FIRST)
    monkeypatch.setattr(kernel_edits, "MOST_BYTES", 20)
    with pytest.raises(AppError, match="cannot be read"):
        edits.read("mean", "shared", FIRST)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file")
    with pytest.raises(AppError, match="cannot be kept"):
        Edits(tmp_path / "kernels").write(edit())


SHAPE = (37, 41)


BORDERS = [each for each in Border if each is not Border.KEEP]


def request(
    filter_id: str, dtype: DTypeLike = np.uint8, channels: int = 1, **options: Any
) -> Request:
    white = 1 if np.dtype(dtype).kind == "f" else 255
    pixels = np.random.default_rng(1).uniform(0, white, (*SHAPE, channels)).astype(dtype)
    return Request.create(Image.from_array(pixels), filter_id, **options)


def template(of: Request, level: Level) -> str:
    spec = of.step.filter
    launch = plan(of, level).launch
    return template_for(level.id, launch, spec.radius(of.step.parameters))


def on_cpu(of: Request, backend: CpuBackend) -> np.ndarray:
    return backend.run(of, backend.levels(of.step.filter)[0], RunContext()).planes


def run(
    of: Request, level: Level, text: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[np.ndarray, list[str]]:
    """Return the output of a source in place of a filter's own, and the mistakes in it."""
    monkeypatch.setattr(checking, "read_source", lambda file: expanded("own.cu", text))
    backend = CheckedBackend()
    output = backend.run(of, level, RunContext()).planes
    return output, [str(each) for each in backend.findings]


def test_kernels_with_weights_or_tables_have_no_template() -> None:
    for spec in filters.discover(Kind.PICTURE).values():
        for level in spec.levels("gpu"):
            of = request(spec.id)
            launch = plan(of, level).launch
            plain = not (launch.constants or launch.tables or launch.scratch)
            expected = plain and level in (GLOBAL, SHARED, TEXTURE)
            assert bool(template(of, level)) == expected, (spec.id, level.id)
    assert template(request("mean"), SHARED)
    assert not template(request("laplace"), SHARED)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "number"), in_turn((GLOBAL, SHARED, TEXTURE), range(len(BORDERS)), every=2)
)
def test_a_template_copies_the_picture_without_mistakes(
    level: Level, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    border = BORDERS[number]
    of = request("median", DTYPES[number % 3], (1, 3)[number % 2], border=border)
    output, found = run(of, level, template(of, level), monkeypatch)
    assert not found
    inside = slice(1, -1) if border is Border.VALID else slice(None)
    np.testing.assert_array_equal(output, of.source.planes[inside, inside])


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "border"),
    in_turn((GLOBAL, SHARED, TEXTURE), (Border.REFLECT, Border.VALID, Border.WRAP), every=3),
)
def test_the_examples_in_the_comments_make_a_mean(
    level: Level, border: Border, backend: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = request("mean", parameters={"size": 5}, border=border)
    text = template(of, level)
    text = re.sub(r"// >>> .*for example: (.*;)\n.*result = cell;\n", r"\1\n", text)
    text = re.sub(r"// >>> .*for example: ", "", text)
    text = text.replace("Sample result = 0;", "Sample result = 0; Sum sum = 0;")
    output, found = run(of, level, text, monkeypatch)
    assert not found
    np.testing.assert_array_equal(output, on_cpu(of, backend))


def test_files_have_the_new_name() -> None:
    text = source_files("mean")[0].text
    files = files_for("own_mean", text, "mean", {"size": 5})
    assert set(files) == {"own_mean.cu", "test_own_mean.py"}
    kernels = re.findall(r"\n    (\w+)\(const Sample\*", files["own_mean.cu"])
    assert kernels == [f"own_mean_{each}" for each in ("single_block", "global", "shared", "tuned")]
    assert "own_mean_texture(cudaTextureObject_t" in files["own_mean.cu"]
    assert (
        "mean" not in re.sub("own_mean", "", files["own_mean.cu"]).split("RADIUS")[1].split("//")[0]
    )


@pytest.mark.parametrize("border", [Border.REFLECT, Border.VALID])
def test_the_saved_test_expects_the_results_of_the_filter(
    border: Border, backend: CpuBackend
) -> None:
    files = files_for("own_mean", source_files("mean")[0].text, "mean", {"size": 5})
    module = ModuleType("test_own_mean")
    exec(files["test_own_mean.py"], module.__dict__)
    assert module.CASES == [{"size": 5}]
    of = request("mean", parameters={"size": 5}, border=border)
    made = module.oracle(of.source.planes, {"size": 5}, border)
    np.testing.assert_array_equal(made, on_cpu(of, backend))


@pytest.mark.parametrize("name", ["mean", "Own", "own-mean", "1mean", "own__mean", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(AppError, match="cannot be the id"):
        files_for(name, source_files("mean")[0].text, "mean", {})


def test_a_source_without_a_kernel_of_the_filter_is_refused() -> None:
    text = 'extern "C" __global__ void median_shared() {}'
    with pytest.raises(AppError, match="no kernel whose name begins with “mean_”"):
        files_for("own", text, "mean", {})


def test_only_names_of_kernels_change() -> None:
    text = """// mean_of(x) is no kernel.
__device__ int mean_of(int x) { return x; }
extern "C" __global__ void __launch_bounds__(THREADS)
    mean_global(int* out) { *out = mean_of(1); }
"""
    made = files_for("own", text, "mean", {})["own.cu"]
    assert made == text.replace("mean_global", "own_global")
