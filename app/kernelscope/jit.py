"""CPU kernels: plain Python functions that Numba compiles when they are first needed.

Importing a filter must not import Numba: the window lists all filters at start-up and has
to be on screen well before anything is computed. `kernel` therefore only remembers the
function; the compiler comes in when a backend asks for it, on the worker thread.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs

from kernelscope import atomic, memory

_logger = logging.getLogger(__name__)

_lock = threading.Lock()


class Kernel:
    """A function for Numba, compiled on first use and cached on disk.

    A kernel may call other kernels. It runs without the GIL and must not allocate per
    pixel. The disk cache lives in a folder named after the content of all modules with kernels,
    because Numba itself would not notice a change in a kernel that another one calls.

    Parameters
    ----------
    function : callable
        Python function in the subset that Numba compiles.
    fastmath : set of str
        LLVM fast-math flags, for float kernels that gain from reordering sums.
    inline : bool
        Whether to make the function part of its callers, however large it is.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: frozenset[str] = frozenset(),
        inline: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._fastmath = fastmath
        self._inline = inline
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """The Numba dispatcher; the first access imports Numba."""
        with _lock:
            if self._dispatcher is None:
                numba = _numba()
                cache = _can_cache()
                self._dispatcher = numba.njit(
                    nogil=True,
                    cache=cache,
                    fastmath=set(self._fastmath) or False,
                    forceinline=self._inline,
                )(self.function)
                if cache:
                    files = self._dispatcher._cache
                    files._cache_file = _Store(self.function, files._cache_file)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """Numba's protocol for globals: lets one kernel call another."""
        return _numba().types.Dispatcher(self.dispatcher)

    def compile(self, *arguments: Any) -> bool:
        """Compile for the types of `arguments`, or load that from the disk cache.

        Returns
        -------
        bool
            Whether that had not been done yet.
        """
        numba = _numba()
        dispatcher = self.dispatcher
        types = tuple(numba.typeof(argument) for argument in arguments)
        is_new = types not in dispatcher.overloads
        if is_new and not _can_cache():
            memory.require_compiling()
        dispatcher.compile(types)
        return is_new

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)


class Intrinsic:
    """A procedure that kernels call, whose LLVM code is written by Python; see `intrinsic`."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self._emit = emit

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """Numba's protocol for globals; the first access imports Numba."""
        numba = _numba()
        from numba.core.typing.templates import make_intrinsic_template

        def define(typing_context: Any, *types: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                self._emit(context, builder, signature.args, *values)
                return context.get_dummy_value()

            return numba.types.void(*types), generate

        # Numba matches a call with the names of the parameters after the first.
        names = list(inspect.signature(self._emit).parameters.values())[2:]
        define.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
        template = make_intrinsic_template(self, define, self._emit.__name__)
        return numba.types.Function(template)


def intrinsic(emit: Callable[..., None]) -> Any:
    """Let kernels call what `emit` generates (decorator).

    ``emit(context, builder, types, *values)`` appends code to an llvmlite builder for
    arguments of those Numba types; it runs once for each set of types. There is no result.
    """
    return Intrinsic(emit)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Mark `function` as a CPU kernel (decorator)."""
    return Kernel(function)


def inlined(function: Callable[..., Any]) -> Kernel:
    """Mark `function` as a CPU kernel that becomes part of its callers (decorator).

    For what is called for every sample: a call passes arrays field by field, which takes as
    long as the sum of nine cells.
    """
    return Kernel(function, inline=True)


class _Store:
    """Takes the place of Numba's cache files of one function.

    Numba reads pickles back, which can run anything, and machine code, and looks at neither
    before it uses them; one that is cut off ends the run. Here an entry is the user's own and
    whole, or it is made again.

    Parameters
    ----------
    function : callable
        Whose code it is; the files are named after it.
    files : IndexDataCacheFile
        What Numba would use.
    """

    def __init__(self, function: Callable[..., Any], files: Any) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._folder = Path(files._cache_path)
        self._state = (files._version, sys.version, files._source_stamp)

    def _path(self, key: Any) -> Path:
        digest = hashlib.sha256(repr((self._state, key)).encode()).hexdigest()
        return self._folder / f"{self._name}-{digest[:32]}.nbc"

    def load(self, key: Any) -> Any:
        """Return what was saved under `key`; None if there is nothing that can be trusted."""
        path = self._path(key)
        try:
            content = atomic.read_own(path, _MOST_BYTES)
        except FileNotFoundError:
            return _nothing()
        except OSError as error:
            _logger.warning("compiled code will be made again: %s", error)
            return _nothing()
        digest, entry = content[:_DIGEST], content[_DIGEST:]
        if digest != _digest(path, entry):
            _logger.warning("%s is damaged and will be made again", path)
            return _nothing()
        return pickle.loads(entry)

    def save(self, key: Any, data: Any) -> None:
        """Keep `data`; where that cannot be, the next start compiles again."""
        from numba.core.serialize import dumps

        path, entry = self._path(key), dumps(data)
        try:
            atomic.own_folder(path.parent)
            atomic.replace(path, _digest(path, entry) + entry, private=True, durable=False)
        except OSError as error:
            _logger.warning("compiled code cannot be kept in %s: %s", path.parent, error)


def _nothing() -> None:
    """Say that nothing is kept, if there is memory to compile it.

    Raises
    ------
    OutOfMemory
        If there is not.
    """
    memory.require_compiling()


_MOST_BYTES = 64 << 20
"""More than any function compiles to."""

_DIGEST = hashlib.sha256().digest_size


def _digest(path: Path, entry: bytes) -> bytes:
    """Return what stands before `entry`: it belongs to this name, and is whole."""
    return hashlib.sha256(path.name.encode() + entry).digest()


@functools.cache
def _numba() -> Any:
    """Import Numba with its disk cache pointed at our own folder."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
    memory.require_compiler()
    import numba

    return numba


@functools.cache
def _can_cache() -> bool:
    """Tell whether the cache can be written; Numba would fail, or use other folders."""
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    try:
        if folder == cache_folder():  # not one that the user shares with other programs
            atomic.own_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


_WITHOUT_KERNELS = ("backends/", "bench/", "cli/", "engine/", "gui/")
"""Rooms in which a change leaves every compiled kernel as it was."""


def cache_folder() -> Path:
    """Return the folder of compiled kernels for exactly these sources."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith(_WITHOUT_KERNELS):
            continue
        digest.update(name.encode())
        digest.update(path.read_bytes())
    base = platformdirs.user_cache_path("kernelscope", appauthor=False)
    return base / f"numba-{digest.hexdigest()[:16]}"
