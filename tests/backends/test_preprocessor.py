"""The lines that the macros of a launch leave in, beside those of a real preprocessor."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from kernelscope.backends.cuda.inspection import PlannedLaunch, plan, plans
from kernelscope.backends.cuda.sources import (
    SourceFile,
    active_lines,
    find_kernel,
    read_source,
    source_files,
)
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.levels import GPU_LEVELS
from tests.pairs import together

TUNED = next(level for level in GPU_LEVELS if level.id == "tuned")


def request(
    filter_id: str, parameters: dict[str, object] | None = None, dtype: type = np.uint8
) -> Request:
    image = Image.from_array(np.zeros((40, 50), dtype))
    return Request.create(image, filter_id, parameters or {}, level="tuned")


def lines(text: str, **defines: str) -> str:
    """Return the letters that stand in lines that are compiled."""
    kept = active_lines([SourceFile("a.cu", text)], defines)["a.cu"]
    pairs = zip(text.split("\n"), kept, strict=True)
    return "".join(line for line, active in pairs if active and not line.startswith("#"))


@together(
    ("condition", "holds"),
    [
        ("A", True),
        ("!A", False),
        ("B", False),
        ("UNKNOWN", False),
        ("A == 2 && B != 0", False),
        ("A == 1 || !B", True),
        ("A + 1 == 3 && A * 2 - 1 == 3", True),
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
        ("(A == 2 ? B : A) == 0", True),
        ("A << 3 >= 16 && 0x10 > 15", True),
        ("1 + 2 * 3 == 7", True),
        ("defined(A) && !defined NOTHING", True),
        ("A == 2 // as usual", True),
        ("TWICE == 4", True),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    text = f"#define TWICE (A + A)\n#if {condition}\nx\n#else\ny\n#endif\nz"
    assert lines(text, A="2", B="0") == ("xz" if holds else "yz")


def test_the_first_branch_that_holds_is_taken() -> None:
    text = "#if A == 1\na\n#elif A >= 2\nb\n#elif A >= 3\nc\n#else\nd\n#endif"
    assert [lines(text, A=str(value)) for value in range(4)] == ["d", "a", "b", "b"]


def test_branches_within_branches_and_definitions() -> None:
    inner = "#ifdef B\nb\n#endif\n#else\nc\n#if 1\nd\n#endif\n"
    text = f"#ifndef A\n#define A 1\n{inner}#endif\n#if A\ne\n#endif"
    assert lines(text) == "e"
    assert lines(text, B="") == "be"
    assert lines(text, A="0") == "cd"
    assert lines("#define A 1\n#undef A\n#ifdef A\na\n#endif\nb") == "b"


def test_branches_that_depend_on_the_gpu_are_all_kept() -> None:
    text = "#if __CUDA_ARCH__ >= 900\na\n#elif A\nb\n#else\nc\n#endif"
    assert lines(text, A="0") == "ac"
    assert lines(text, A="1") == "ab"
    assert lines("#if A(1)\na\n#else\nb\n#endif", A="1") == "ab", "beyond this reader"
    assert lines("#define A A\n#if A\na\n#else\nb\n#endif") == "ab", "no endless loop"


def test_headers_are_read_where_they_are_included() -> None:
    files = [
        SourceFile("a.cu", '#define WIDE 1\n#include "b.cuh"\n#include "b.cuh"\n'),
        SourceFile("b.cuh", "#ifndef B\n#define B\n#if WIDE\nx\n#else\ny\n#endif\n#endif"),
        SourceFile("c.cuh", "z"),
    ]
    kept = active_lines(files, {})
    assert kept["b.cuh"] == (True, True, True, True, True, False, True, True)
    assert kept["c.cuh"] == (False,)


@pytest.mark.parametrize(("search", "whole"), [({"search": "image"}, 1), ({}, 0)])
def test_the_kernel_of_the_launch_is_found(search: dict[str, object], whole: int) -> None:
    wanted = request("nlm", search, np.uint16)
    (planned,) = (each for each in plans(wanted, TUNED) if each.launch.kernel == "nlm_tuned")
    files = source_files("nlm")
    assert planned.launch.defines["WHOLE"] == str(whole)
    place = find_kernel(files, "nlm_tuned", planned.launch.defines)
    assert place is not None
    (text,) = (file.text.split("\n") for file in files if file.name == place.file)
    above = [line for line in text[: place.start] if line.startswith(("#if WHOLE", "#else"))]
    assert above[-1].startswith("#if WHOLE" if whole else "#else")


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
@pytest.mark.parametrize("filter_id", ["mean", "median", "sobel", "laplace", "nlm", "greyscale"])
def test_a_compiler_keeps_the_same_lines(filter_id: str) -> None:
    planned = plan(request(filter_id), TUNED)
    kept = active_lines(source_files(filter_id), planned.launch.defines)
    expected = kept_by_a_compiler(filter_id, planned)
    for file in source_files(filter_id):
        ours, theirs = [], []
        for number, text in enumerate(file.text.split("\n"), 1):
            if re.match(r"\s*\w[\w ]*[({]", text):  # neither directives nor comments nor joined
                ours.append((number, kept[file.name][number - 1]))
                theirs.append((number, (file.name, number) in expected))
        assert ours == theirs, file.name


def kept_by_a_compiler(filter_id: str, planned: PlannedLaunch) -> set[tuple[str, int]]:
    """Return the file and the line of everything that ``g++ -E`` prints."""
    defines = [f"-D{name}={value}" for name, value in planned.launch.defines.items()]
    command = ["g++", "-E", "-xc++", "-D__CUDA_ARCH__=900", *defines, "-"]
    source = re.sub(r"^\s*#include\s*<.*", "", read_source(filter_id), flags=re.MULTILINE)
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    found, name, number = set(), "", 0
    for line in done.stdout.split("\n"):
        if match := re.match(r'# (\d+) "([^"]*)"', line):
            name, number = match[2], int(match[1])
            continue
        if line.strip():
            found.add((name, number))
        number += 1
    return found
