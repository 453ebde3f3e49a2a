"""Runs a batch: reads ahead, filters one file after the other, writes behind.

::

    reading threads    read 3    read 4         at most `jobs` files ahead
    this thread              filter 2           all cores, or the GPU
    writing threads                   write 1   at most `jobs` files behind

So memory holds at most ``2 * jobs + 1`` inputs or results, and while one file is filtered others
are read and written. Several GPUs have a thread each, and take files from the one queue as they
become free. Whatever goes wrong with a file is its `FileOutcome`; the others go on.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any

from kernelscope.base.errors import (
    AppError,
    Cancelled,
    ImageReadError,
    ImageWriteError,
    LossyFormat,
)
from kernelscope.base.memory import is_shortage
from kernelscope.big.batch.item import (
    AS_USUAL,
    COMMAND_LINE,
    EMPTY,
    FileState,
    Handling,
    Hints,
    Item,
    Pause,
    ResultReport,
)
from kernelscope.big.batch.journal import Journal, state_of
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import DEFAULT_OPTIONS, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.result import Result
from kernelscope.engine.steps import execute_recipe, recipe_request
from kernelscope.files import (
    check_write,
    check_write_pages,
    is_one_of_several,
    read_image,
    read_pages,
    write_image,
    write_pages,
)
from kernelscope.files.formats import IS_CUT_OFF
from kernelscope.files.picture_formats import writer_of
from kernelscope.files.reading import read_head
from kernelscope.files.volumes import (
    check_write_volume,
    check_write_volumes,
    is_volume,
    read_volume,
    read_volumes,
    write_volume,
    write_volumes,
)
from kernelscope.files.volumes.writing import check_volume_suffix, record_of
from kernelscope.files.write_errors import explained
from kernelscope.files.writing import check_form, check_form_of_pages
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import Quality, VolumeQuality
from kernelscope.images.levels import with_levels
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume

_logger = logging.getLogger(__name__)


_Sum = Annotated[int, (-1 << 90, 1 << 90)]
"""Of sizes in bytes, or of times in nanoseconds, of all files of a series."""

_Quality = Annotated[
    Quality, lambda field: field.record(VolumeQuality if "bias" in field else Quality)
]


@dataclass(frozen=True)
class FileOutcome:
    item: Item
    status: FileState
    reason: str = ""  # of a failure: the cause and the way out
    size: str = ""  # ``640×480``, once it was read
    device: str = ""  # where the last step ran: ``CPU parallel``
    # Seconds that each took.
    read: float = 0.0
    filtered: float = 0.0
    written: float = 0.0
    # Of the input and of the result, where they can be compared with a reference.
    before: _Quality | None = None
    quality: _Quality | None = None
    note: str = ""  # the reason why there is no quality, where references were asked for
    report: ResultReport = EMPTY
    """Conversions, and whatever of the file the result does not keep; also of one done before."""
    state: tuple[_Sum, _Sum] | None = None  # size and time of the file before it was read

    @property
    def is_cut_off(self) -> bool:
        """Whether the result is one of the part that is there of a file that was cut off."""
        said = any(each.startswith(IS_CUT_OFF) for each in self.report.notices)
        return said and self.status is not FileState.FAILED

    @property
    def status_name(self) -> str:
        return f"{self.status}, cut off" if self.is_cut_off else str(self.status)


@dataclass(frozen=True, eq=False)
class _ReadFile:
    """A file in memory, with its size and time from before it was read."""

    sources: tuple[Source, ...]
    reference: Image | Volume | None
    note: str  # the reason why there is no reference, if it cannot be read
    state: tuple[int, int] | None
    seconds: float


@dataclass
class Batch:
    """A recipe on many files."""

    recipe: Recipe
    items: Sequence[Item]
    backends: Mapping[str, Backend]
    options: RunOptions = DEFAULT_OPTIONS  # for every step that has them
    _: KW_ONLY
    more: Sequence[Mapping[str, Backend]] = ()
    """Backends for each further file that is filtered at a time, such as those of another GPU."""
    handling: Handling = AS_USUAL
    overwrite: bool = False  # replace files that are there; otherwise such a file is a failure
    jobs: int = 2  # files that are read ahead, and written behind, at a time
    costs: Costs = field(default_factory=Costs)
    hints: Hints = COMMAND_LINE  # the ways out of failures

    def run(
        self,
        journal: Journal | None,
        token: CancelToken,
        report: Callable[[FileOutcome], None] = lambda outcome: None,
        *,
        begun: Callable[[Item, FileState], None] = lambda item, stage: None,
        pause: Pause | None = None,
    ) -> list[FileOutcome]:
        """Filter all files that the journal does not have; return the outcome of each.

        After `token` was cancelled, files that are being written are finished, and the rest is left
        out. `report` is called on this thread with each outcome, in the order of the files, first
        with those that are not filtered: done before, or of a `refusal`. `begun`
        is called with each file as a stage of the work on it begins, on any thread. `pause`: while
        it holds the batch, no file is begun. `journal`: None on a worker, whose client has it.
        """
        outcomes: list[FileOutcome] = []

        def note(outcome: FileOutcome) -> None:
            outcomes.append(outcome)
            report(outcome)

        waiting = list(self._waiting(journal, token, note))
        sets = (self.backends, *self.more)
        free = SimpleQueue[Mapping[str, Backend]]()
        for backends in sets:
            free.put(backends)
        with (
            _pool(self.jobs, "kernelscope-batch-write") as writers,
            _filters(len(sets)) as filters,
            _pool(self.jobs, "kernelscope-batch-read") as readers,
        ):
            begun_work: deque[Future[Future[FileOutcome] | None]] = deque()

            def work(item: Item, reading: Future[_ReadFile]) -> Future[FileOutcome] | None:
                if token.cancelled:
                    return None
                backends = free.get()
                try:
                    made = self._filter(item, reading, backends, token, begun)
                finally:
                    free.put(backends)
                return writers.submit(self._write, *made, journal, begun) if made else None

            try:
                read = partial(self._read, begun)
                for item, reading in _ahead(waiting, readers, read, self.jobs):
                    if pause is not None and pause.paused:
                        _empty(begun_work, note)
                        pause.wait(token)
                    if token.cancelled:
                        break
                    begun_work.append(filters.submit(work, item, reading))
                    most = self.jobs + len(sets) - 1
                    while len(begun_work) > most or (begun_work and _is_written(begun_work[0])):
                        _note_next(begun_work, note)
            finally:  # after Ctrl+C as well: these are on the disk
                _empty(begun_work, note)
        return outcomes

    def _waiting(
        self, journal: Journal | None, token: CancelToken, note: Callable[[FileOutcome], None]
    ) -> Iterator[Item]:
        for item in self.items:
            if token.cancelled:
                return
            if journal is not None and journal.is_done(item):
                note(FileOutcome(item, FileState.SKIPPED, report=journal.report(item)))
            elif reason := refusal(item, self.recipe, self.handling, self.hints):
                note(FileOutcome(item, FileState.FAILED, reason))
            else:
                yield item

    def _read(self, begun: Callable[[Item, FileState], None], item: Item) -> _ReadFile:
        begun(item, FileState.READING)
        start = time.perf_counter()
        check_target(item, self.hints, overwrite=self.overwrite)
        before = state_of(*item.files)
        with blocks_mentioned(item.source, self.hints.blocks):
            sources = read_sources(item, self.handling)
        if state_of(*item.files) != before:
            raise ImageReadError(
                f"{item.source.name}: the file changed while it was read.",
                "Filter it again when it is complete.",
            )
        reference, note = self._read_reference(item, sources)
        return _ReadFile(sources, reference, note, before, time.perf_counter() - start)

    def _read_reference(
        self, item: Item, sources: Sequence[Source]
    ) -> tuple[Image | Volume | None, str]:
        if item.reference is None:
            return None, ""
        if len(sources) > 1:
            return None, "Files of several pictures or volumes are not compared."
        try:
            read = read_volume if isinstance(sources[0], Scan) else read_image
            found: Image | Volume = read(item.reference, nan=self.handling.nan)
            return with_levels(found, self.handling.levels), ""
        except AppError as error:
            return None, f"The reference cannot be used: {error}"

    def _filter(
        self,
        item: Item,
        reading: Future[_ReadFile],
        backends: Mapping[str, Backend],
        token: CancelToken,
        begun: Callable[[Item, FileState], None],
    ) -> tuple[FileOutcome, list[Source]] | None:
        outcome = FileOutcome(item, FileState.DONE)
        outputs: list[Source] = []
        try:
            with self._failures(item) as failed:
                read = reading.result()
                size = describe_size(read.sources)
                notices = [text for source in read.sources for text in source.notices]
                report = ResultReport.of(notices)
                outcome = replace(
                    outcome, size=size, read=read.seconds, report=report, state=read.state
                )
                check_results(read.sources, self.recipe, item.target, self.handling)
                begun(item, FileState.FILTERING)
                start = time.perf_counter()
                for source in read.sources:
                    first, result, said = self._execute(source, read.reference, backends, token)
                    outputs.append(result.output)
                    notices += said
                record = record_of(item.target, *outputs)
                outcome = replace(outcome, report=ResultReport.of(notices, record))
                seconds = time.perf_counter() - start
                outcome = replace(outcome, filtered=seconds, device=result.where)
                outcome = _judged(outcome, first, result, read)
        except Cancelled:
            return None
        if failed:
            return replace(outcome, status=FileState.FAILED, reason=failed[0]), []
        return outcome, outputs

    def _execute(
        self,
        source: Source,
        reference: Image | Volume | None,
        backends: Mapping[str, Backend],
        token: CancelToken,
    ) -> tuple[Result, Result, list[str]]:
        results = execute_recipe(
            self.recipe,
            source,
            backends,
            token,
            costs=self.costs,
            options=self.options,
            reference=reference,
        )
        first = result = next(results)
        notices = [*first.notices]
        for result in results:  # which are not kept: each may be as large as its source
            notices += result.notices
        return first, result, notices

    def _write(
        self,
        outcome: FileOutcome,
        outputs: Sequence[Source],
        journal: Journal | None,
        begun: Callable[[Item, FileState], None],
    ) -> FileOutcome:
        """Write results, unless there are none after a failure; return their outcome."""
        if not outputs:
            return outcome
        item, start = outcome.item, time.perf_counter()
        begun(item, FileState.WRITING)
        with self._failures(item) as failed:
            if journal is not None:
                journal.begin(item, outcome.state, outcome.report)
            write_results(outputs, item.target, self.handling)
            if journal is not None:
                journal.done(item, outcome.state)
        if failed:
            with self._failures(item):
                if journal is not None:
                    journal.failed(item)
            return replace(outcome, status=FileState.FAILED, reason=failed[0])
        return replace(outcome, written=time.perf_counter() - start)

    @contextmanager
    def _failures(self, item: Item) -> Iterator[list[str]]:
        """Collect the reason for which the block failed; a bug is logged with its place."""
        found: list[str] = []
        try:
            yield found
        except Cancelled:
            raise
        except AppError as error:
            found.append(explain(error, self.hints))
        except Exception as error:
            if is_shortage(error):
                found.append(f"There is not enough memory. {self.hints.memory}")
                return
            _logger.exception("%s", item.source)
            found.append(f"A bug in the program: {type(error).__name__}: {error}. See the log.")


def check_target(item: Item, hints: Hints, *, overwrite: bool) -> None:
    """Refuse to replace an input by its result, and any other file unless the user wants it."""
    with explained(item.target):  # its name may be too long
        there = item.target.exists()
        own = there and any(map(item.target.samefile, filter(Path.exists, item.files)))
    if own:
        raise ImageWriteError(
            f"{item.target}: the result would replace its own input.", hints.own_input
        )
    if there and not overwrite:
        raise ImageWriteError(f"{item.target}: the file is there already.", hints.there)


def explain(error: AppError, hints: Hints) -> str:
    return f"{error} {hints.lossy}" if isinstance(error, LossyFormat) else str(error)


def refusal(item: Item, recipe: Recipe, handling: Handling, hints: Hints) -> str:
    """Return why the format of a result cannot keep it, by the head of its file; empty if it can.

    Reading the file may show more reasons, see `check_results`.
    """
    try:
        if item.slices or is_volume(item.source):
            check_volume_suffix(item.target)
        elif (head := read_head(item.source)) is not None:
            shape = recipe_request(recipe, head).whole_shape
            check_form(item.target, shape, head.dtype, lossy=handling.lossy)
            if is_one_of_several(head):
                check_form_of_pages(item.target)
    except ImageWriteError as error:
        return explain(error, hints)
    except AppError:  # the recipe does not suit the picture: said with the file
        pass
    return ""


def _judged(outcome: FileOutcome, first: Result, result: Result, read: _ReadFile) -> FileOutcome:
    if result.quality is not None:
        before = first.quality.before if first.quality is not None else None
        return replace(outcome, before=before, quality=result.quality.after)
    if read.reference is None:
        return replace(outcome, note=read.note)
    reasons = [each for each in result.notices if "reference" in each]
    return replace(outcome, note=" ".join(reasons) or "It cannot be compared.")


@contextmanager
def _pool(threads: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Provide threads; at the end those that are at work finish, and the rest is dropped."""
    pool = ThreadPoolExecutor(threads, name)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


class _Here(Executor):
    """Does the work at once, on the thread that asks, which Ctrl+C interrupts."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done = Future[Any]()
        done.set_result(work(*arguments, **named))
        return done


@contextmanager
def _filters(count: int) -> Iterator[Executor]:
    """Provide the workers that filter `count` files at a time."""
    if count == 1:
        yield _Here()
    else:
        with _pool(count, "kernelscope-batch-filter") as pool:
            yield pool


def _is_written(work: Future[Future[FileOutcome] | None]) -> bool:
    if not work.done():
        return False
    writing = work.result()
    return writing is None or writing.done()


def _note_next(
    work: deque[Future[Future[FileOutcome] | None]], note: Callable[[FileOutcome], None]
) -> None:
    """Wait until the first of these is written; note nothing of one that was stopped."""
    writing = work.popleft().result()
    if writing is not None:
        note(writing.result())


def _empty(
    work: deque[Future[Future[FileOutcome] | None]], note: Callable[[FileOutcome], None]
) -> None:
    """Wait until all of these are written."""
    while work:
        _note_next(work, note)


def _ahead(
    items: Iterable[Item],
    readers: ThreadPoolExecutor,
    read: Callable[[Item], _ReadFile],
    depth: int,
) -> Iterator[tuple[Item, Future[_ReadFile]]]:
    """Yield each file with its reading, while the next ones are read."""
    begun: deque[tuple[Item, Future[_ReadFile]]] = deque()
    for item in items:
        begun.append((item, readers.submit(read, item)))
        if len(begun) > depth:
            yield begun.popleft()
    yield from begun


def read_sources(item: Item, handling: Handling) -> tuple[Source, ...]:
    """Return all that a file holds: a picture, pages, a volume, or volumes of one shape."""
    path, nan, levels = item.source, handling.nan, handling.levels
    if not item.slices and not is_volume(path):
        image = read_image(path, nan=nan)
        pages = read_pages(path, nan=nan) if is_one_of_several(image) else [image]
        return tuple(with_levels(page, levels) for page in pages)
    named = path.parent if item.by_folder else path
    volumes = read_volumes(named, nan=nan, slices=item.slices)
    if handling.as_float:
        volumes = [each.with_voxels(each.voxels, as_float=True) for each in volumes]
    return tuple(Scan((with_levels(each, levels),)) for each in volumes)


def check_results(
    sources: Sequence[Source], recipe: Recipe, target: Path, handling: Handling
) -> None:
    """Refuse, before a long run, results that could not be written after it."""
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    first = sources[0]
    if isinstance(first, Scan):
        check_write_volume(first.volumes[0], target, lossy=handling.lossy)
        if len(sources) > 1:
            volumes = [each.volumes[0] for each in sources if isinstance(each, Scan)]
            check_write_volumes(volumes, target)
    elif isinstance(first, Image):
        for each in sources:
            assert isinstance(each, Image)
            shape = recipe_request(recipe, each).whole_shape
            check_write(target, shape, each.pixels.dtype, lossy=handling.lossy)
        if len(sources) > 1:
            check_write_pages(target)


def write_results(results: Sequence[Source], target: Path, handling: Handling) -> None:
    pictures = [each for each in results if isinstance(each, Image)]
    volumes = [each.volumes[0] for each in results if isinstance(each, Scan)]
    if len(pictures) > 1:
        write_pages(pictures, target)
    elif pictures:
        writer = writer_of(target.suffix.lower())
        quality = handling.quality if writer is not None and writer.encode_at else None
        write_image(pictures[0], target, lossy=handling.lossy, quality=quality)
    elif len(volumes) > 1:
        write_volumes(volumes, target)
    else:
        write_volume(volumes[0], target, lossy=handling.lossy)


def describe_size(sources: Sequence[Source]) -> str:
    size = sources[0].size
    if len(sources) == 1:
        return size
    return f"{size}, {len(sources)} {'pictures' if isinstance(sources[0], Image) else 'volumes'}"
