"""CPU kernels: plain Python functions that Numba compiles when they are first needed.

::

    @kernel                                    # stores the function; Numba is not imported
    def negate(source, output, start, stop):
        for y in range(start, stop):
            for x in range(source.shape[1]):
                output[y, x] = 255 - source[y, x]

    negate.function(source, output, 0, 9)      # interpreted: breakpoints work here
    negate.compile(source, output, 0, 9)       # for these types; computes nothing
    negate(source, output, 0, 9)               # compiled, without the GIL

Importing a filter must not import Numba: the window lists all filters at start-up and has to be
on screen well before anything is computed. A `JitKernel` therefore holds the function alone. The
backend calls `JitKernel.compile` on the worker thread, and passes the rows of the output in bands::

    first access:   function --> numba.njit --> dispatcher --> machine code for each set of types
                                                    |
                                              _CacheFiles: CACHE/kernelscope/numba-DIGEST/*.nbc
                                                           or PREBUILT/VERSIONS-numba-DIGEST/*.nbc

DIGEST is computed from the sources of all rooms that have kernels or constants of kernels, since
Numba itself would not notice a change in a kernel that another one calls.

A wheel may have code that was compiled when it was built (`.ci/prebuild.py`): a first run then
loads code that would take seconds to compile. It is for the same versions of the sources, of
Numba and of Python, and for processors of `BASELINE`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelscope.base import atomic, compiled, memory
from kernelscope.base.once import once

# Annotations of kernels' parameters. Numba infers the types from each call, so that they are
# for readers alone.

Plane = Any  # a picture: an array of shape (rows, columns, channels)
Voxels = Any  # a volume: an array of shape (slices, rows, columns, components)

Line = Any
"""An array with one axis: a row of samples, or the samples of several rows one after another."""

Array = Any  # an array with several axes; the docstring gives its shape
Like = Any  # an empty array that stands for its type: Numba takes no types
Index = Any  # a whole number: a place, a distance, a count or a code
Number = Any  # a sample, or a value computed from samples: float or integer, as the samples are
Flag = Any  # a bool, or None
Record = Any  # a tuple, or a named tuple of any of these


PREBUILT = Path(__file__).parents[1] / "prebuilt"
"""Code that came with the package: a folder for each set of versions."""

BASELINE = "x86-64-v3"
"""LLVM's name of the processors that such code is for: those of 2015 and later, most of them."""

_BASELINE_FEATURES = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


_lock = threading.Lock()

_spent = threading.local()


def seconds_spent() -> float:
    """Return how long this thread has waited for code to be compiled or loaded."""
    seconds: float = getattr(_spent, "seconds", 0.0)
    return seconds


@contextlib.contextmanager
def _spending() -> Iterator[None]:
    before, begun = seconds_spent(), time.perf_counter()
    try:
        yield
    finally:
        _spent.seconds = before + time.perf_counter() - begun


_elsewhere: Callable[[str, str, tuple[Any, ...]], None] | None = None


def compile_elsewhere(compiler: Callable[[str, str, tuple[Any, ...]], None] | None) -> None:
    """Have `compiler` put the code of kernels into the cache, from where it is loaded.

    It is called with the module, the name and the types of a kernel, and may fail silently.
    """
    global _elsewhere
    _elsewhere = compiler


class JitKernel:
    """A function for Numba, compiled on first use and cached on disk.

    It runs without the GIL and must not allocate memory per pixel. `fastmath` are LLVM flags, for
    float kernels that gain from reordering sums. `inline` makes the function part of its callers,
    however large it is. `plain`: see `_KernelMark.plain`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: frozenset[str] = frozenset(),
        inline: bool = False,
        plain: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._fastmath = fastmath
        self._inline, self._plain = inline, plain
        self._dispatchers: dict[bool, Any] = {}

    @property
    def dispatcher(self) -> Any:
        """The Numba dispatcher; the first access imports Numba."""
        return self._dispatcher_for(python=True)

    def _dispatcher_for(self, python: bool) -> Any:
        """Return the dispatcher for calls from Python, or for those from other kernels.

        The compiler makes a function around each kernel for calls from Python, and one for calls
        from C. Whatever calls the kernel would optimise both again, with all that is inlined in
        them: without those a filter compiles in four fifths of the time. See also `jit_parts`.
        """
        with _lock:
            if python not in self._dispatchers:
                numba = load_numba()
                from kernelscope.base import jit_parts

                cache = can_cache()
                dispatcher = self._dispatchers[python] = numba.njit(
                    nogil=True,
                    cache=cache,
                    fastmath=set(self._fastmath) or False,
                    forceinline=self._inline,
                    no_cpython_wrapper=not python,
                    no_cfunc_wrapper=True,
                    pipeline_class=jit_parts.compiler(part=not python, plain=self._plain),
                )(self.function)
                if cache:
                    files = dispatcher._cache
                    suffix = "" if python else ".part"
                    files._cache_file = _CacheFiles(self.function, files._cache_file, suffix)
                    if not python:
                        files._impl.rebuild = jit_parts.rebuild
        return self._dispatchers[python]

    @property
    def _numba_type_(self) -> Any:
        """Numba's protocol for globals: lets one kernel call another."""
        return load_numba().types.Dispatcher(self._dispatcher_for(python=False))

    def compile(self, *arguments: Any) -> bool:
        """Compile for the types of `arguments`, or load the code from the disk cache.

        Return False if this process had the code already.
        """
        with _spending():
            return self.compile_for(self.types_of(*arguments))

    def compile_for(self, types: tuple[Any, ...]) -> bool:
        """As `compile`, for types of Numba."""
        dispatcher = self.dispatcher
        is_new = types not in dispatcher.overloads
        if is_new and not can_cache():
            memory.require_compiling()
        elif is_new and _elsewhere and self._is_importable and not self._is_kept(types):
            _elsewhere(self.function.__module__, self.function.__name__, types)
        dispatcher.compile(types)
        return is_new

    def would_wait(self, *arguments: Any) -> bool:
        """Return whether a call would wait until another process has compiled."""
        if _elsewhere is None or not self._is_importable:
            return False
        types = self.types_of(*arguments)
        if types in self.dispatcher.overloads or not can_cache():  # or it is compiled here
            return False
        return not self._is_kept(types)

    def entry(self, *arguments: Any) -> Callable[..., Any]:
        """Return the code that was compiled for the types of `arguments`, for those types only.

        The dispatcher looks for it by the types of all arguments at each call, which takes as long
        as a small picture.
        """
        code: Callable[..., Any] = self.dispatcher.overloads[self.types_of(*arguments)].entry_point
        return code

    @property
    def _is_importable(self) -> bool:
        """Whether another process finds this kernel by the name of its module and its own."""
        name, module = self.function.__module__, sys.modules.get(self.function.__module__)
        return name != "__main__" and getattr(module, self.function.__name__, None) is self

    def _is_kept(self, types: tuple[Any, ...]) -> bool:
        cache = self.dispatcher._cache
        key = cache._index_key(types, self.dispatcher.targetctx.codegen())
        is_kept: bool = cache._cache_file.has(key)
        return is_kept

    @staticmethod
    def types_of(*arguments: Any) -> tuple[Any, ...]:
        """Return the types of `arguments` as Numba sees them."""
        typeof = load_numba().typeof
        return tuple(typeof(argument) for argument in arguments)

    def export(self, folder: Path, *arguments: Any) -> None:
        """Compile for the types of `arguments`, and save the code for `portable_name` there."""
        from numba.core.serialize import dumps

        self.compile(*arguments)
        dispatcher, types = self.dispatcher, self.types_of(*arguments)
        cache = dispatcher._cache
        key = cache._index_key(types, dispatcher.targetctx.codegen())
        path = cache._cache_file.portable_path(folder, key)
        entry = dumps(cache._impl.reduce(dispatcher.overloads[types]))
        compiled.keep(path, entry, private=False)

    def __call__(self, *arguments: Any) -> Any:
        # Before the dispatcher compiles by itself.
        if _elsewhere or not self._dispatchers or not self.dispatcher.overloads:
            self.compile(*arguments)
        return self.dispatcher(*arguments)


class Intrinsic:
    """A function for kernels whose LLVM code is generated by Python; see `intrinsic`."""

    def __init__(self, emit: Callable[..., Any], result: str) -> None:
        self._emit = emit
        self._result = result

    def __call__(self, *values: Any) -> None:
        """Do nothing in the interpreter if this is advice for LLVM, and refuse other code."""
        if values:
            raise TypeError(f"{self._emit.__name__} is generated for compiled kernels only.")

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """Numba's protocol for globals; the first access imports Numba."""
        numba = load_numba()
        from numba.core.typing.templates import make_intrinsic_template

        def define(typing_context: Any, *types: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                value = self._emit(context, builder, signature.args, *values)
                return context.get_dummy_value() if self._result == "void" else value

            result = types[0] if self._result == "first" else getattr(numba.types, self._result)
            return result(*types), generate

        # Numba matches a call with the names of the parameters after the first.
        names = list(inspect.signature(self._emit).parameters.values())[2:]
        define.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
        template = make_intrinsic_template(self, define, self._emit.__name__)
        return numba.types.Function(template)


def intrinsic(emit: Callable[..., Any], result: str = "void") -> Any:
    """Let kernels call the code that `emit` generates (decorator).

    ``emit(context, builder, types, *values)`` appends code to an llvmlite builder for
    arguments of those Numba types; it runs once for each set of types. It returns the value of
    the call, of the Numba type `result`, if there is one; "first" is that of the first argument.
    """
    return Intrinsic(emit, result)


@dataclass(frozen=True)
class _KernelMark:
    """Marks a function as a CPU kernel (decorator)."""

    inline: bool = False
    is_plain: bool = False

    def __call__(self, function: Callable[..., Any]) -> JitKernel:
        return JitKernel(function, inline=self.inline, plain=self.is_plain)

    @property
    def plain(self) -> _KernelMark:
        """The mark of one whose loops, and those inlined into it, LLVM does not vectorise.

        Each kernel of level *serial* with its own loop needs it. One that other levels have as well
        has a parameter `plain`, which is None there.
        """
        return replace(self, is_plain=True)


kernel = _KernelMark()

inlined = _KernelMark(inline=True)
"""For kernels that become part of their callers, as they are called for every sample: a call passes
arrays field by field, which takes as long as adding up nine cells."""


@functools.cache
def _digest_of(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


class _CacheFiles:
    """The cache files of one function, in place of Numba's own.

    Numba's files hold pickles, which can run any code, and machine code. Numba checks neither
    before it uses them, and a truncated file ends the process; `compiled` does.

    `files` is the object that Numba would use, for its folder and versions. A function that is
    compiled in several ways has a `suffix` for each.
    """

    def __init__(self, function: Callable[..., Any], files: Any, suffix: str = "") -> None:
        room = function.__module__.removeprefix("kernelscope.")
        self._name = f"{room}.{function.__name__}{suffix}"
        self._state: tuple[Any, ...] = files._version, sys.version
        if _is_own_cache() and room != function.__module__:
            # Another checkout or installation of these sources has the same code.
            self._folder = Path(os.environ["NUMBA_CACHE_DIR"])
            # The folder is that of the sources at the start, and this file may have changed since.
            self._state += (_digest_of(function.__code__.co_filename),)
        else:
            self._folder = Path(files._cache_path)
            self._state += (files._source_stamp,)

    def _path(self, key: Any) -> Path:
        digest = hashlib.sha256(repr((self._state, key)).encode()).hexdigest()
        return self._folder / f"{self._name}-{digest[:32]}.nbc"

    def portable_path(self, folder: Path, key: Any) -> Path:
        """Return the path of an entry among those that came with the package."""
        types, _, code = key
        digest = hashlib.sha256(repr((types, code)).encode()).hexdigest()
        return folder / f"{self._name}-{digest[:32]}.nbc"

    def _prebuilt(self, key: Any) -> Any:
        """Return the entry that came with the package; None if it has none for this machine."""
        folder = _prebuilt_folder()
        path = folder and self.portable_path(folder, key)
        entry = compiled.load_packaged(path) if path else None
        return _nothing() if entry is None else pickle.loads(entry)

    def has(self, key: Any) -> bool:
        """Return whether there is a file for `key`, here or in the package."""
        folder = _prebuilt_folder()
        paths = [self._path(key), *([self.portable_path(folder, key)] if folder else ())]
        return any(path.exists() for path in paths)

    def load(self, key: Any) -> Any:
        """Return the entry saved under `key`, or None if there is none that can be trusted."""
        entry = compiled.load(self._path(key))
        return self._prebuilt(key) if entry is None else pickle.loads(entry)

    def save(self, key: Any, data: Any) -> None:
        """Save `data`; if that fails, the next start compiles again."""
        from numba.core.serialize import dumps

        compiled.try_to_keep(self._path(key), dumps(data))


def _nothing() -> None:
    """Return None, as nothing is kept; raise `OutOfMemory` if there is no memory to compile it."""
    memory.require_compiling()


@once
def load_numba() -> Any:
    """Import Numba, with its disk cache in our own folder.

    Raises `OutOfMemory` if the process has too little memory for the compiler.
    """
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
    memory.require_compiler()
    import numba

    return numba


def portable_name() -> str:
    """Return the name of the folder of code that came with the package for these versions."""
    numba = load_numba()
    llvmlite = sys.modules["llvmlite"]  # which Numba has loaded
    python, system = sys.implementation.cache_tag, sysconfig.get_platform()
    versions = f"numba-{numba.__version__}", f"llvmlite-{llvmlite.__version__}"
    return "-".join((*versions, str(python), system, BASELINE, cache_folder().name))


@functools.cache
def _prebuilt_folder() -> Path | None:
    """Return the folder of code that came with the package, if this machine can run it."""
    if not PREBUILT.is_dir():
        return None
    from llvmlite import binding  # type: ignore[import-untyped]

    folder, features = PREBUILT / portable_name(), binding.get_host_cpu_features()
    usable = folder.is_dir() and all(features.get(name) for name in _BASELINE_FEATURES)
    return folder if usable else None


@once
def _is_own_cache() -> bool:
    """Return whether the cache is that of exactly these sources, not a folder of the user's."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) == cache_folder()


@once
def can_cache() -> bool:
    """Return whether the cache can be written. Numba would fail, or use another folder."""
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    try:
        if _is_own_cache():  # a folder of the user's choice may be shared: leave it
            atomic.own_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


_WITH_KERNELS = ("files/pictures/", "filters/", "images/", "base/jit", "schema/")
"""Places of the kernels, and of the constants that they use."""


def cache_folder() -> Path:
    """Return the folder of kernels compiled from exactly these sources."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith(_WITH_KERNELS):
            continue
        digest.update(name.encode())
        digest.update(path.read_bytes())
    return compiled.cache_folder(f"numba-{digest.hexdigest()[:16]}")
