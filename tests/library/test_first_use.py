"""Calls of a process that has not loaded Numba: the same results, and it stays so."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np

import kernelscope as ks
from kernelscope import filters
from kernelscope.library import quick
from kernelscope.schema.filter import Cpu, FilterSpec

PROGRAM = """
import pickle, sys
import kernelscope as ks
from kernelscope.library import quick
quick._MOST_NUMPY_SECONDS = 1e9
cases = pickle.load(sys.stdin.buffer)
made = [getattr(ks, name)(image, **named) for name, image, named in cases]
assert "numba" not in sys.modules, "Numba was loaded"
image = cases[0][1]
assert [(ks.mean(image, size=9), "numba" in sys.modules)[1] for _ in range(3)] == [0, 0, 1]
assert "numba" in sys.modules
sys.stdout.buffer.write(pickle.dumps(made))
"""


def cases() -> list[tuple[str, Any, dict[str, Any]]]:
    random = np.random.default_rng(4)
    made: list[tuple[str, Any, dict[str, Any]]] = []
    for name, spec in filters.discover().items():
        has_numpy = spec.implementation(Cpu).uncompiled is not Cpu.uncompiled
        if not has_numpy or spec.resolve is not FilterSpec.resolve:
            continue
        if any(each.is_estimated for each in spec.parameters):  # by compiled code
            continue
        defaults = spec.validate({})
        for border in spec.borders:
            named = {"border": str(border)} if len(spec.borders) > 1 else {}
            for shape, dtype in (((17, 33), "u1"), ((12, 9, 3), "u2"), ((40, 6, 1), "u1")):
                if min(shape[:2]) <= 2 * spec.radius(defaults):  # the usual way then
                    continue
                made.append(
                    (name, random.integers(0, np.iinfo(dtype).max + 1, shape, dtype), named)
                )
    return made


def test_numpy_gives_the_bytes_of_compiled_code() -> None:
    listed = cases()
    assert {"mean", "median", "minimum", "negative", "sobel"} <= {name for name, *_ in listed}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input=pickle.dumps(listed), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    for (name, image, named), found in zip(listed, pickle.loads(done.stdout), strict=True):
        expected = getattr(ks, name)(image, **named)
        np.testing.assert_array_equal(found, expected, f"{name} {named}", strict=True)


def test_nothing_is_imported_that_a_first_call_does_not_need() -> None:
    """It was a third of the time of such a call."""
    program = (
        "import sys, numpy, kernelscope; kernelscope.median(numpy.zeros((64, 64), 'u1'));"
        "print(*sorted(name for name in sys.modules if name.startswith('kernelscope.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "kernelscope.filters.median" in loaded
    for name in ("backends.cuda", "files", "engine.run", "filters.nlm", "library.session"):
        assert f"kernelscope.{name}" not in loaded


def test_large_pictures_and_slow_masks_are_left_to_compiled_code(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(quick, "_spent", 0.0)
    calls = []
    monkeypatch.setattr(quick, "shapes_of", lambda *given: calls.append(given) or 1 / 0)
    listed: list[tuple[Any, dict[str, Any]]] = [
        (np.zeros((2048, 2048), "u1"), {}),
        (np.zeros((300, 300), "u1"), {"size": 15}),
        (np.zeros((30, 30), "f4"), {}),
        (np.zeros((30, 30), "u1"), {"level": "serial"}),
        (np.zeros((30, 30), "u1"), {"grey": True}),
        (np.zeros((30, 30), "u1"), {"device": "emulated"}),
    ]
    for image, named in listed:
        step = ks.median(size=named.get("size", 3)).steps[0]
        arguments = first_use_arguments("median")
        given = {each.name: each.default for each in arguments[1:]} | {"image": image} | named
        assert quick.by_numpy(step, given, arguments, 0) is None
    assert not calls


def first_use_arguments(name: str) -> Any:
    from kernelscope.library.arguments import arguments_of

    return arguments_of(filters.get(name))
