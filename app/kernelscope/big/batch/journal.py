"""The journal of a batch: lines of JSON in the output folder, each written to the disk at once.

::

    {"recipe": "9f2c...", "version": 1, "earlier": {"b.tif": "/scans/b.tif"}}   the first line
    {"begin": "a.tif", "before": null, "source": ..., "report": {...}}   before a result is written
    {"failed": "a.tif"}                                               it was not written
    {"done": "a.tif", "source": "/scans/a.tif", "bytes": 4194560, "changed": 1763900000000000000}

A process that is killed leaves whole results, since these appear in one step, and perhaps half a
line at the end, which is ignored. A result that was begun and is there without its *done* was
written just before: it is recognised by its time.

A batch that begins anew keeps the names of earlier results, so that none is taken for an input.

Names that are not UTF-8 are written as `text.json_text` does.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from kernelscope.base import atomic
from kernelscope.base.errors import AppError, ImageWriteError
from kernelscope.base.text import json_text
from kernelscope.big.batch.item import (
    AS_USUAL,
    COMMAND_LINE,
    JOURNAL,
    Handling,
    Hints,
    Item,
    ResultReport,
)
from kernelscope.engine.recipe import Recipe
from kernelscope.files.write_errors import explained

_VERSION = 1
_MOST_BYTES = 1 << 30


class Journal:
    """Knows which results are done, and notes new ones; closed at the end.

    `folder`: where the results go; made if it is not there. `recipe`: a journal of another one
    cannot be resumed. `resume`: go on where an earlier batch stopped. `anew`: forget an earlier
    batch. `handling`: with another one, results would differ. `hints`: the ways out of failures.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        *,
        resume: bool = False,
        anew: bool = False,
        handling: Handling = AS_USUAL,
        hints: Hints = COMMAND_LINE,
    ) -> None:
        self._hints = hints
        self.path = folder / JOURNAL
        self._done: dict[str, dict[str, Any]] = {}
        self._begun: dict[str, dict[str, Any]] = {}
        self._folder = folder
        signature = hashlib.sha256((recipe.to_json() + handling.signature).encode()).hexdigest()
        with explained(folder):
            if folder.exists() and not folder.is_dir():
                raise ImageWriteError(f"{folder}: this is no folder.", "Choose another place.")
            folder.mkdir(parents=True, exist_ok=True)
        with explained(self.path):
            there = self.path.exists()
            if there and not (resume or anew):
                raise AppError(
                    f"“{folder}” has the results of an earlier batch.",
                    hints.earlier,
                )
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._file = os.open(self.path, flags, 0o666)
        try:
            self._begin(signature, is_new=not (there and resume))
        except BaseException:
            self.close()
            raise

    def _begin(self, signature: str, *, is_new: bool) -> None:
        """Read the journal, or begin it, once no other batch has it."""
        with explained(self.path):
            if atomic.lock(self._file) is atomic.Lock.TAKEN:
                raise AppError(
                    f"Another batch is writing its results to “{self._folder}”.",
                    "Wait until it has ended, or choose another folder.",
                )
            if not is_new:
                self._read(signature)
                return
            earlier = earlier_results(self._folder)
            os.ftruncate(self._file, 0)
        more = {"earlier": earlier} if earlier else {}
        self._write({"recipe": signature, "version": _VERSION, **more})

    def _read(self, signature: str) -> None:
        if self.path.stat().st_size > _MOST_BYTES:
            raise AppError(f"{self.path}: this is no journal of a batch.", "Delete it.")
        text, lines = _lines(self.path)
        if not lines or lines[0].get("recipe") != signature:
            raise AppError(
                f"The journal “{self.path}” belongs to another recipe, or other options.",
                self._hints.other_recipe,
            )
        for line in lines[1:]:
            if isinstance(name := line.get("done"), str):
                self._done[name] = {**self._begun.get(name, {}), **line}
            elif isinstance(name := line.get("begin"), str):
                self._begun[name] = line
                self._done.pop(name, None)  # its result may have been replaced since
            elif isinstance(name := line.get("failed"), str):
                self._begun.pop(name, None)
        if not text.endswith("\n"):  # half a line of a process that was killed
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write("\n")

    def is_done(self, item: Item) -> bool:
        name, made = self._name(item), _changed(item.target)
        if made is None:
            return False
        line = self._done.get(name)
        if line is None:
            line = self._begun.get(name)
            if line is None or made == line.get("before"):
                return False
        source = line.get("source"), line.get("bytes"), line.get("changed")
        return source == (str(item.source.absolute()), *(state_of(*item.files) or (None, None)))

    def report(self, item: Item) -> ResultReport:
        name = self._name(item)
        return ResultReport.from_json(
            (self._done.get(name) or self._begun.get(name, {})).get("report")
        )

    def begin(self, item: Item, state: tuple[int, int] | None, report: ResultReport) -> None:
        """Note that the result of a file of this size and time is about to be written."""
        line = {"begin": self._name(item), "before": _changed(item.target), **_of(item, state)}
        self._write({**line, "report": report.as_json()})

    def done(self, item: Item, state: tuple[int, int] | None) -> None:
        self._write({"done": self._name(item), **_of(item, state)})

    def failed(self, item: Item) -> None:
        self._write({"failed": self._name(item)})

    def close(self) -> None:
        os.close(self._file)

    def _name(self, item: Item) -> str:
        return item.target.relative_to(self._folder).as_posix()

    def _write(self, line: dict[str, Any]) -> None:
        with explained(self.path):
            os.write(self._file, (json_text(line) + "\n").encode("utf-8"))
            os.fsync(self._file)


def earlier_results(folder: Path) -> dict[str, str]:
    """Return the names of the results in the journal of a folder, each with its source."""
    found: dict[str, str] = {}
    try:
        path = folder / JOURNAL
        lines = _lines(path)[1] if path.stat().st_size <= _MOST_BYTES else []
    except OSError:
        return found
    for line in lines:
        if isinstance(earlier := line.get("earlier"), dict):
            found |= {str(name): str(source) for name, source in earlier.items()}
        elif isinstance(name := line.get("begin") or line.get("done"), str):
            found[name] = str(line.get("source"))
    return found


def _lines(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of a journal, and its lines; damaged ones are left out."""
    # Not by splitlines(), for which a line also ends at characters that names may have.
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return text, [line for line in map(_parsed, text.split("\n")) if line is not None]


def _of(item: Item, state: tuple[int, int] | None) -> dict[str, Any]:
    size, changed = state or (None, None)
    return {"source": str(item.source.absolute()), "bytes": size, "changed": changed}


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _changed(path: Path) -> int | None:
    state = state_of(path)
    return state[1] if state else None


def state_of(*files: Path) -> tuple[int, int] | None:
    """Return the sums of the sizes and of the times of files, of those in folders as well; None if
    one is not there.
    """
    try:
        found = [each.stat() for file in files for each in (file, *file.rglob("*"))]
    except OSError:
        return None
    return sum(each.st_size for each in found), sum(each.st_mtime_ns for each in found)
