"""Calls of microseconds, and those of a process that has not loaded Numba: the same results."""

from __future__ import annotations

import inspect
import logging
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.images.source import Source
from kernelscope.library import quick
from kernelscope.library.session import LibrarySession, session
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, FilterSpec
from kernelscope.schema.levels import PARALLEL, Level
from tests.pairs import all_pairs
from tests.scripts import run_python

SHAPES = ((20, 33), (20, 33, 1), (20, 33, 3), (70, 80))
TYPES = ("uint8", "uint16", "float32")
OTHERS: dict[str, list[dict[str, Any]]] = {
    "median": [{"size": 5}, {"level": "serial-huang"}],
    "mean": [{"size": 17}],
    "sobel": [{"form": "angle-colour"}, {"form": "directions"}],
    "mask": [{"divisor": "one", "negative": "absolute"}],
    "greyscale": [{}],
    "nlm": [{"search_radius": 2, "patch": 3}],
}


def pixels(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray[Any]:
    values = np.random.default_rng(seed).random(shape)
    return (values * (1 if dtype == "float32" else np.iinfo(dtype).max)).astype(dtype)


def both_ways(name: str, image: NDArray[Any], named: dict[str, Any]) -> None:
    """Compare a call that may be quick with one that reports its progress, which is not."""
    function = getattr(ks, name)
    try:
        usual = function(image, **named, progress=lambda stage, fraction: None)
    except ks.AppError as refusal:
        with pytest.raises(type(refusal), match=re.escape(str(refusal))):
            function(image, **named)
        return
    np.testing.assert_array_equal(function(image, **named), usual, strict=True)


PLAIN = [name for name, spec in filters.discover().items() if spec.resolve is FilterSpec.resolve]


@pytest.mark.parametrize("name", PLAIN)
def test_the_next_array_has_the_result_of_a_request(name: str) -> None:
    spec = filters.get(name)
    others = OTHERS.get(name, [{}])
    for border, shape, dtype, more in all_pairs(spec.borders, SHAPES, TYPES, others):
        named = {**more, **({"border": str(border)} if len(spec.borders) > 1 else {})}
        for seed in range(2):  # of the first call, and of its successor
            both_ways(name, pixels(shape, dtype, seed), named)


@pytest.mark.parametrize("name", ["median", "mean", "weighted_mean", "negative"])
def test_calls_made_often_run_the_code_at_once(name: str) -> None:
    """Where the rim is kept, or reduced masks have arrays of their own, they are planned."""
    spec = filters.get(name)
    for border in spec.borders:
        named = {"border": str(border)} if len(spec.borders) > 1 else {}
        for seed in range(quick._ENOUGH + 3):
            both_ways(name, pixels((20, 40), "uint8", seed), named)
        key = quick.key_of(pixels((20, 40), "uint8", 0), named)
        calls = inspect.getclosurevars(getattr(ks, name)).nonlocals["known_calls"]
        assert (calls[key]._code is None) == (border in (Border.KEEP, Border.REDUCE)), border


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A log that takes every run, as commands of other tests leave it, has no quick calls."""
    caplog.set_level(logging.WARNING, "kernelscope")


@pytest.fixture
def no_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prepare a median of bytes, and fail if another one makes a request or a thread."""
    for _ in range(2):
        ks.median(pixels((20, 33), "uint8", 0), size=5)
    session()

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("this call is not quick")

    with monkeypatch.context() as patched:
        patched.setattr(LibrarySession, "run", refuse)
        patched.setattr(threading.Thread, "start", refuse)
        yield


def test_a_call_like_one_before_makes_no_request(no_requests: None) -> None:
    for seed in range(3):
        made = ks.median(pixels((20, 33), "uint8", seed), size=5)
        made[0, 0] = 1  # the caller's own


@pytest.mark.parametrize("change", [{"border": "wrap"}, {"size": 3}, {"level": "serial"}])
def test_every_argument_counts(no_requests: None, change: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="not quick"):
        ks.median(pixels((20, 33), "uint8", 1), **{"size": 5, **change})


@pytest.mark.parametrize("image", [pixels((20, 33), "uint16", 1), pixels((33, 20), "uint8", 1)])
def test_type_and_shape_count(no_requests: None, image: NDArray[Any]) -> None:
    with pytest.raises(AssertionError, match="not quick"):
        ks.median(image, size=5)


def test_equal_values_of_another_type_are_refused_as_ever() -> None:
    image = pixels((20, 33), "uint8", 0)
    with pytest.raises(ks.InvalidParameter, match="grey"):
        ks.median(image, size=3, grey=0)  # type: ignore[call-overload]
    ks.median(image, size=3, grey=False)
    with pytest.raises(ks.InvalidParameter, match="grey"):
        ks.median(image, size=3, grey=0)  # type: ignore[call-overload]


@pytest.mark.parametrize(("value", "error"), [(np.nan, ks.NotANumber), (np.inf, ks.InvalidImage)])
def test_floats_are_looked_at_each_time(value: float, error: type[Exception]) -> None:
    image = pixels((20, 33), "float32", 0)
    ks.median(image)
    ks.median(image)
    image[3, 4] = value
    with pytest.raises(error):
        ks.median(image)


def test_strided_and_foreign_arrays_go_the_usual_way() -> None:
    wide = pixels((40, 66), "uint16", 5)
    expected = ks.median(wide[::2, ::2].copy())
    for image in (wide[::2, ::2], wide[::2, ::2].astype(">u2"), wide[::2, ::2].tolist()):
        if isinstance(image, list):
            image = np.asarray(image, np.uint16)
        np.testing.assert_array_equal(ks.median(image), expected)


def test_threads_share_a_longer_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_SHARED_SECONDS", 0.0)
    monkeypatch.setattr(quick, "_SURELY_SHARED_SECONDS", 0.0)
    image = pixels((301, 200), "uint8", 6)
    expected = ks.mean(image, size=9, progress=lambda stage, fraction: None)
    for _ in range(5):
        np.testing.assert_array_equal(ks.mean(image, size=9), expected)


def call_of(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], with_code: bool
) -> tuple[Callable[[int], None], list[int]]:
    """Return a function that makes a number of calls, and the threads that each of them took.

    - `seconds`: of a run, by its threads.
    """
    now, used = 0.0, list[int]()

    def run(threads: int) -> bool:
        nonlocal now
        now += seconds[threads]
        used.append(threads)
        return True

    code = (lambda *arguments: run(1), ()) if with_code else None
    cpu = SimpleNamespace(
        compute=lambda spec, task, threads: run(threads), code_of=lambda spec, task: code
    )
    monkeypatch.setattr(quick, "_session", lambda: SimpleNamespace(cpu=lambda: cpu))
    monkeypatch.setattr(quick, "time", SimpleNamespace(perf_counter=lambda: now))
    image = pixels((20, 33), "uint8", 0)
    call = quick.Quick(Step.create("mean", {"size": 3}), "parallel", image, threads=2)

    def make(calls: int) -> None:
        for _ in range(calls):
            call(image)

    return make, used


@pytest.mark.parametrize("with_code", [False, True])
def test_threads_that_were_busy_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, with_code: bool
) -> None:
    """The code is called at once meanwhile, where there is one pass."""
    seconds = {1: 1e-3, 2: 2e-3}
    make, used = call_of(monkeypatch, seconds, with_code)
    make(3 * quick._AGAIN)
    assert used.count(2) == quick._ENOUGH + 2
    seconds[2] = 0.5e-3
    make(2 * quick._AGAIN)
    assert used[-quick._AGAIN :].count(2) >= quick._AGAIN - 1


def test_a_short_call_that_waited_at_first_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {1: 1e-3, 2: 0.9e-3}
    make, used = call_of(monkeypatch, seconds, with_code=True)
    make(2 * quick._ENOUGH + 1)
    assert used[-1] == 2
    seconds.update({1: 2e-5, 2: 1e-5})
    make(3 * quick._AGAIN)
    assert used[-quick._AGAIN :] == [1] * quick._AGAIN


def test_a_long_run_is_left_to_requests_that_can_be_cancelled(
    monkeypatch: pytest.MonkeyPatch, no_requests: None
) -> None:
    monkeypatch.setattr(quick, "_MOST_SECONDS", 0.0)
    image = pixels((20, 33), "uint8", 0)

    def several() -> None:
        for _ in range(quick._ENOUGH + 1):
            ks.median(image, size=5)

    with pytest.raises(AssertionError, match="not quick"):
        several()


def test_a_log_has_every_run(no_requests: None, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kernelscope"), pytest.raises(AssertionError):
        ks.median(pixels((20, 33), "uint8", 1), size=5)


def test_few_calls_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelscope.library import functions

    monkeypatch.setattr(functions, "_MOST_QUICK", 2)
    calls: list[functions._Call] = []
    made = functions._Call
    monkeypatch.setattr(functions, "_Call", lambda spec: calls.append(made(spec)) or calls[-1])
    median = functions.function_of(filters.get("median"))
    for width in range(20, 27):
        median(np.zeros((20, width), np.uint8))
    assert 0 < len(calls[0].quick) <= 2


FIRST_CALLS = """
import pickle, sys
import kernelscope as ks
from kernelscope.library import quick
quick._MOST_NUMPY_SECONDS = 1e9
first_cases = pickle.load(sys.stdin.buffer)
made = [getattr(ks, name)(image, **named) for name, image, named in first_cases]
assert "numba" not in sys.modules, "Numba was loaded"
image = first_cases[0][1]
assert [(ks.mean(image, size=9), "numba" in sys.modules)[1] for _ in range(3)] == [0, 0, 1]
assert "numba" in sys.modules
sys.stdout.buffer.write(pickle.dumps(made))
"""


def first_cases() -> list[tuple[str, Any, dict[str, Any]]]:
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


@pytest.mark.slow
def test_numpy_gives_the_bytes_of_compiled_code() -> None:
    listed = first_cases()
    assert {"mean", "median", "minimum", "negative", "sobel"} <= {name for name, *_ in listed}
    command = [sys.executable, "-c", FIRST_CALLS]
    done = subprocess.run(command, input=pickle.dumps(listed), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    for (name, image, named), found in zip(listed, pickle.loads(done.stdout), strict=True):
        expected = getattr(ks, name)(image, **named)
        np.testing.assert_array_equal(found, expected, f"{name} {named}", strict=True)


@pytest.mark.slow
def test_nothing_is_imported_that_a_first_call_does_not_need() -> None:
    """It was a third of the time of such a call."""
    program = (
        "import sys, numpy, kernelscope; kernelscope.median(numpy.zeros((64, 64), 'u1'));"
        "print(*sorted(name for name in sys.modules if name.startswith('kernelscope.')))"
    )
    loaded = set(run_python(program).split())
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


class _Gpu:
    """A GPU that computes on the processor."""

    id, name = "gpu", "GPU"

    def __init__(self) -> None:
        self.there = True

    def availability(self) -> Availability:
        return Availability(self.there, "A card." if self.there else "It was taken out.")

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return tuple(spec.levels("gpu"))

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        return session().cpu().run(request, PARALLEL, context)


def test_arguments_of_a_call_on_a_gpu_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _Gpu()
    monkeypatch.setitem(session().backends(), "gpu", cast(Backend, gpu))
    images = [pixels((21, 34, 1), "uint8", seed) for seed in range(3)]
    wanted = [ks.median(each, size=7, device="cpu") for each in images]
    read = mock.Mock(wraps=Step.create)
    monkeypatch.setattr(Step, "create", read)
    for image, expected in zip(images, wanted, strict=True):
        made = ks.median(image, size=7, device="gpu")
        np.testing.assert_array_equal(made, expected, strict=True)
        made[0, 0] = 1
    assert read.call_count == 1
    gpu.there = False
    with pytest.raises(ks.AppError, match=r"median\(\): .*It was taken out"):
        ks.median(images[0], size=7, device="gpu")
