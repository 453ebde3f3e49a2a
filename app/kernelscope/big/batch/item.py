"""The values of a batch: its files, how they are read and written, hints, reports and the pause."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernelscope.base.json_fields import Number
from kernelscope.engine.control import CancelToken
from kernelscope.images.levels import given_levels
from kernelscope.images.record import Record
from kernelscope.schema.samples import Levels

JOURNAL = "kernelscope-batch.jsonl"  # name of the journal in the output folder

PARTS = ".kernelscope-batch-parts"
"""Folder in the output folder, for results of workers that are not at their places yet."""


@dataclass(frozen=True)
class Item:
    # Of a DICOM series, `source` is one of its files.
    source: Path
    target: Path
    reference: Path | None = None  # the file that the result is compared with
    slices: tuple[Path, ...] = ()
    """All files of a DICOM series, with those that may be its damaged slices."""
    by_folder: bool = False
    """Whether a series was found in a folder, and not by the name of one of its files."""

    @property
    def files(self) -> tuple[Path, ...]:
        return self.slices or (self.source,)


_LOOK_SECONDS = 0.05  # a paused batch looks this often whether it was cancelled


class FileState(StrEnum):
    WAITING = "waiting"
    READING = "reading"
    FILTERING = "filtering"
    WRITING = "writing"
    DONE = "done"
    SKIPPED = "skipped"  # it was done before, by the journal
    FAILED = "failed"


class Pause:
    """Holds a batch before its next file; any thread may call it."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._go.set()

    @property
    def paused(self) -> bool:
        return not self._go.is_set()

    def pause(self) -> None:
        """Hold the batch; the file that is filtered and those that are written are finished."""
        self._go.clear()

    def go_on(self) -> None:
        self._go.set()

    def wait(self, token: CancelToken) -> None:
        """Return when the batch may go on, or was cancelled."""
        while not token.cancelled and not self._go.wait(_LOOK_SECONDS):
            pass


@dataclass(frozen=True)
class Handling:
    nan: Number | None = None  # replaces NaN; without it, files with NaN fail
    as_float: bool = False  # volumes are not rounded to the type of their file
    lossy: bool = False  # write even if a format loses something
    quality: int | None = None  # that of a JPEG
    # Of floats and volumes; by default those of the samples.
    white: Number | None = None
    black: Number | None = None

    @property
    def levels(self) -> Levels | None:
        return given_levels(self.white, self.black)

    @property
    def signature(self) -> str:
        """The options that decide results beside the recipe; empty if all are as usual."""
        values = {"nan": self.nan, "float": self.as_float or None, "quality": self.quality}
        values |= {"white": self.white, "black": self.black}
        return ", ".join(f"{name} {each}" for name, each in values.items() if each is not None)


AS_USUAL = Handling()


@dataclass(frozen=True)
class Hints:
    """Hints of failures; by default those of the command line."""

    own_input: str = "Choose another --out."  # a result would replace its own input
    there: str = "Add --overwrite, or move it."  # a file of the name of a result is there
    earlier: str = "Go on with --resume, begin again with --overwrite, or choose another folder."
    """The output folder has a journal, and it was not to be resumed."""
    other_recipe: str = "Choose another folder, or leave out --resume and add --overwrite."
    """The journal is that of another recipe."""
    memory: str = "Use fewer --jobs, close other programs, or filter it with “apply --memory”."
    """There is not enough memory."""
    lossy: str = "Or add --lossy."  # a format cannot keep something, which may be allowed
    blocks: str = "“apply --memory 2G”"  # how a file is filtered that is too large


COMMAND_LINE = Hints()


@dataclass(frozen=True)
class ResultReport:
    notices: tuple[str, ...] = ()
    """Those that ``apply`` prints: of reading, of each step, of writing."""
    # See `Record`.
    kept: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @classmethod
    def of(cls, notices: Iterable[str], record: Record | None = None) -> ResultReport:
        """Return a report without the notices that pages, volumes or steps have in common."""
        record = record or Record()
        once = tuple(dict.fromkeys([*notices, *record.losses]))
        return cls(once, record.kept, record.changed, record.lost)

    @property
    def record(self) -> Record:
        return Record(self.kept, self.changed, self.lost)

    def as_json(self) -> dict[str, list[str]]:
        return {each.name: [*getattr(self, each.name)] for each in fields(self)}

    @classmethod
    def from_json(cls, content: Any) -> ResultReport:
        """Return the report of `as_json`; an empty one of anything else."""
        if not isinstance(content, Mapping):
            return cls()
        texts = {each.name: content.get(each.name) for each in fields(cls)}
        return cls(**{k: tuple(map(str, v)) for k, v in texts.items() if isinstance(v, list)})


EMPTY = ResultReport()
