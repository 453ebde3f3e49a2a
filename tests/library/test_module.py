"""The package as a module: threads, forks, imports, names, signatures and the stub."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import threading
import typing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.library import names
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import FootprintParameter
from kernelscope.schema.samples import Kind
from tests.library.test_functions import function, picture
from tests.paths import ROOT
from tests.patience import PATIENCE
from tests.scripts import load_script, run_python

generate = load_script(ROOT / ".ci" / "generate.py")

SPECS = [spec for kind in Kind for spec in filters.discover(kind).values()]


# Threads and processes ----------------------------------------------------------------


@pytest.mark.slow
def test_eight_threads_at_once() -> None:
    """Each has its own filter or recipe, type and size; results are those of calls alone."""
    jobs: list[tuple[Callable[..., Any], NDArray[Any], dict[str, Any]]] = [
        (call, np.ascontiguousarray(picture(dtype)[: 19 - n, :]), arguments)
        for n, (call, dtype, arguments) in enumerate(
            (call, dtype, arguments)
            for call, arguments in (
                (ks.median, {"size": 5}),
                (ks.nlm, {"search_radius": 3}),
                (ks.gaussian_noise, {}),
                (ks.Recipe(ks.gaussian_noise(seed=3), ks.mean(border="mirror")), {}),
            )
            for dtype in (np.uint8, np.float32)
        )
    ]
    expected = [call(array, **arguments) for call, array, arguments in jobs]
    ready = threading.Barrier(8)

    def work(thread: int) -> None:
        ready.wait(PATIENCE)
        for i in range(len(jobs)):
            call, array, arguments = jobs[(i + thread) % len(jobs)]
            wanted = expected[(i + thread) % len(jobs)]
            np.testing.assert_array_equal(call(array, **arguments), wanted)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, thread) for thread in range(8)]:
            done.result(PATIENCE * 4)


@pytest.mark.slow
def test_the_first_use_may_be_by_eight_threads() -> None:
    """They import the library, Numba and kernels at the same time."""
    code = (
        "import sys, threading, numpy as np, kernelscope as ks\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "sys.setswitchinterval(1e-5)\n"
        "image, ready = np.arange(400, dtype=np.uint8).reshape(20, 20), threading.Barrier(8)\n"
        "def work(name):\n"
        "    ready.wait()\n"
        "    function = getattr(ks, name)\n"
        "    return function, function(image).sum()\n"
        "names = ['median', 'mean', 'sobel', 'negative'] * 2\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    made = list(pool.map(work, names))\n"
        "same = all(function is getattr(ks, name) for name, (function, _) in zip(names, made))\n"
        "print(same, all(total == function(image).sum() for function, total in made))"
    )
    assert run_python(code).split() == ["True", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.slow
def test_a_forked_process_filters() -> None:
    code = (
        "import os, signal, numpy as np, kernelscope as ks\n"
        "image = np.arange(4096, dtype=np.uint16).reshape(64, 64)\n"
        "first = ks.median(image, size=9)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    signal.alarm(50)  # a child that hangs must not outlive the test\n"
        "    same = (ks.median(image, size=9) == first).all()\n"
        "    os._exit(0 if same and (ks.negative(image) == 65535 - image).all() else 3)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    assert run_python(code) == "0\n"


# The module ---------------------------------------------------------------------------


def test_import_is_light() -> None:
    """Its own module and those of the standard library that look for it; nothing else."""
    code = (
        "import importlib.util, sys\n"
        "before = set(sys.modules)\n"
        "import kernelscope\n"
        "print(len(set(sys.modules) - before), 'numpy' in sys.modules)"
    )
    assert run_python(code) == "1 False\n"


def test_the_first_function_imports_no_compiler_and_no_window() -> None:
    code = (
        "import kernelscope as ks, sys\n"
        "ks.median\n"
        "heavy = {'numba', 'PySide6', 'pycuda', 'PIL', 'tifffile', 'scipy', 'cv2', 'nibabel'}\n"
        "print(sorted(heavy & set(sys.modules)), len(sys.modules) < 700)"
    )
    assert run_python(code) == "[] True\n"


@pytest.mark.slow
def test_submodules_are_not_hidden() -> None:
    folder = Path(ks.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix in ("", ".py")}
    assert modules & set(names()) == set()
    code = (
        "import kernelscope\n"
        "print(hasattr(kernelscope, 'files'), hasattr(kernelscope, 'no_such_thing'))\n"
        "from kernelscope import files\n"
        "print(kernelscope.files is files)"
    )
    assert run_python(code).split() == ["False", "False", "True"]


def test_names_are_completed_and_corrected() -> None:
    assert set(dir(ks)) >= {*(spec.id for spec in SPECS), "AppError", "__version__"}
    with pytest.raises(AttributeError) as error:
        function("medain")
    assert (error.value.name, error.value.obj) == ("medain", ks)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_function_has_the_parameters_of_its_spec(spec: FilterSpec) -> None:
    found = function(spec.id)
    signature, documentation = inspect.signature(found), inspect.getdoc(found) or ""
    for parameter in spec.parameters:
        given = signature.parameters[parameter.name]
        assert given.kind is inspect.Parameter.KEYWORD_ONLY
        expected = "estimate" if parameter.is_estimated else parameter.default
        assert given.default == expected
        assert f"\n{parameter.name} : " in documentation
    assert ("border" in signature.parameters) == (len(spec.borders) > 1)
    hints = typing.get_type_hints(found)
    assert set(hints) == {*signature.parameters, "return"}
    for parameter in spec.parameters:
        if parameter.named_values():
            values = typing.get_args(hints[parameter.name])
            if isinstance(parameter, FootprintParameter):  # or an array
                values = typing.get_args(values[0])
            assert values == tuple(each.value for each in parameter.named_values())
    assert pickle.loads(pickle.dumps(found)) is found
    assert max(map(len, documentation.splitlines())) <= 96


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_example_of_the_docstring_runs(spec: FilterSpec) -> None:
    documentation = inspect.getdoc(function(spec.id)) or ""
    code = "\n".join(re.findall(r"^>>> (.*)$", documentation, re.MULTILINE))
    image = picture(np.uint8)
    variables: dict[str, Any] = {"image": image, "volume": np.ones((4, 9, 9), np.float32)}
    exec(code, variables)
    assert variables["result"].shape[0] in (image.shape[0], 4)


def test_names_of_filters_are_known_without_an_import() -> None:
    assert filters.names() == {spec.id for spec in SPECS}


@pytest.mark.parametrize("file", generate.FILES, ids=lambda file: file.name)
def test_generated_files_are_those_of_the_specs(file: Path) -> None:
    """If not: python .ci/generate.py."""
    assert file.read_text(encoding="utf-8") == generate.FILES[file]()


def test_the_reference_has_every_member_and_argument() -> None:
    page = generate.reference()
    for name in names():
        assert f"### {name}\n" in page or f"| `ks.{name}` |" in page, name
    for spec in SPECS:
        section = page.partition(f"### {spec.id}\n")[2].partition("\n### ")[0]
        for parameter in inspect.signature(function(spec.id)).parameters:
            assert f"`{parameter}`" in section or parameter in ("image", "volume", "components")
