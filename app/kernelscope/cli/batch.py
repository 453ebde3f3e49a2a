"""The command ``batch``: a recipe on many files, which can be resumed."""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelscope.base.errors import UnknownName
from kernelscope.base.text import PROGRAM, json_text, one_line, table_text, without_name
from kernelscope.cli.arguments import levels_of
from kernelscope.cli.common import (
    STATUS,
    Parser,
    Speaker,
    StatusLine,
    add_options,
    every_filter,
    interruptible,
    log_to_stderr,
    missing_gpu,
    open_backends,
    unlogged,
)
from kernelscope.cli.shared_options import (
    WITHOUT_LEVELS,
    add_axis_option,
    add_computing_options,
    add_file_options,
    add_float_option,
    add_level_options,
    add_output_options,
    add_tls_options,
    cluster_of,
    knows_levels,
    run_options,
    tls_of,
)
from kernelscope.cli.sources import across
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.images.levels import given_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kernelscope.big.batch.conductor import FileOutcome
    from kernelscope.big.batch.item import Handling, Item
    from kernelscope.big.batch.journal import Journal
    from kernelscope.engine.backend import Backend
    from kernelscope.engine.recipe import Recipe
    from kernelscope.images.judging.metrics import Quality

_TEXTS, _TIMES = ("reason", "size", "device"), ("read", "filtered", "written")
_RECORD = ("kept", "changed", "lost")
_JOBS = 2  # files that are read ahead and written behind for each GPU

_FIGURES = ("psnr_before", "psnr", "ssim_before", "ssim", "levels", "note")
"""Fields of an outcome, in the order of a summary; the figures where there are references."""


def batch(arguments: list[str]) -> int:
    """Filter many files with a recipe, and go on after an interruption."""
    parser = _parser()
    options = parser.parse_args(arguments)
    tls_of(options)
    if options.scheduler and options.gpu is not None:
        parser.error("--gpu is for this machine: pin workers of --scheduler as they are started")
    if options.summary and not options.summary.name.lower().endswith((".json", ".csv")):
        raise UnknownName(
            f"--summary {options.summary}: the name has no format.", "Use .json or .csv."
        )
    given_levels(options.white, options.black)  # refuses a white that is not above black
    if options.quiet and options.verbose:
        parser.error("argument --quiet: not allowed with argument --verbose")
    if options.verbose:
        log_to_stderr()
    with nullcontext() if options.verbose else unlogged():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from kernelscope.big.batch.conductor import FileOutcome
    from kernelscope.big.batch.item import FileState, Item
    from kernelscope.big.batch.journal import Journal
    from kernelscope.big.batch.listing import find_items
    from kernelscope.files import read_recipe
    from kernelscope.files.write_errors import check_target, replace_file

    recipe = read_recipe(options.recipe)
    found = find_items(options.inputs, options.out, options.suffix, options.reference)
    if options.summary:
        check_target(options.summary)
    if options.axis:
        recipe = across(recipe, options.axis)
    journal = Journal(
        options.out,
        recipe,
        resume=options.resume,
        anew=options.overwrite,
        handling=_handling(options),
    )
    status, say = StatusLine(not (options.quiet or options.verbose)), Speaker(options.quiet)
    if options.white is not None and not (options.reference or knows_levels(recipe)):
        say.notices([WITHOUT_LEVELS])
    start, total = time.perf_counter(), len(found.items)
    problems = [
        FileOutcome(Item(path, path), FileState.FAILED, f"The folder cannot be read: {reason}.")
        for path, reason in found.problems
    ]
    for each in problems:
        _print_failure(each)
    outcomes: list[FileOutcome] = []

    def report(outcome: FileOutcome) -> None:
        outcomes.append(outcome)
        status.clear()
        if outcome.status is FileState.FAILED:
            _print_failure(outcome)
        status.progress(f"{len(outcomes)} of {total} files,", len(outcomes) / total)

    token = CancelToken()
    try:
        with interruptible() as token:
            work = _on_cluster if options.local_cluster or options.scheduler else _here
            work(options, recipe, found.items, journal, token, report, say)
    except KeyboardInterrupt:
        token.cancel()
    finally:
        status.clear()
        journal.close()
        if options.summary:
            judged = bool(options.reference)
            places = {item: number for number, item in enumerate(found.items)}
            outcomes.sort(key=lambda outcome: places[outcome.item])  # workers have none
            text = _summary([*problems, *outcomes], options.summary, judged=judged)
            replace_file(options.summary, text.encode("utf-8"))
    counts = Counter(each.status for each in (*problems, *outcomes))
    say.notices(_grouped([each for each in outcomes if each.status is not FileState.SKIPPED]))
    say.notices([*found.remarks, *_unjudged(outcomes, options.reference)])
    cut_off = sum(each.is_cut_off for each in outcomes)
    say.line(_closing(counts, cut_off, total, time.perf_counter() - start))
    if token.cancelled:
        left = total - len(outcomes)
        say.notices([f"Stopped with {left} files left: the same command with --resume goes on."])
        return 130
    return 1 if counts[FileState.FAILED] else 0


def _here(
    options: argparse.Namespace,
    recipe: Recipe,
    items: list[Item],
    journal: Journal,
    token: CancelToken,
    report: Callable[[FileOutcome], None],
    say: Speaker,
) -> None:
    from kernelscope.big.batch.conductor import Batch
    from kernelscope.engine.costs import Costs, default_path

    with _backends_of_gpus(options.gpu) as (backends, *more):
        say.notices(missing_gpu(options.gpu, run_options(vars(options)).device, backends))
        Batch(
            recipe,
            items,
            backends,
            run_options(vars(options)),
            more=more,
            handling=_handling(options),
            overwrite=options.overwrite,
            jobs=options.jobs or _JOBS * (1 + len(more)),
            costs=Costs(default_path()),
        ).run(journal, token, report)


@contextmanager
def _backends_of_gpus(gpus: Sequence[int] | None) -> Iterator[list[dict[str, Backend]]]:
    """Provide the backends of each GPU; they share one for the CPU.

    Those that are not there are left out, unless none is.
    """
    from kernelscope.backends import usual_gpus

    with ExitStack() as stack:
        sets = [stack.enter_context(open_backends([each])) for each in gpus or usual_gpus()]
        there = [each for each in sets if each[Device.GPU].availability().available] or sets[:1]
        yield [each | {Device.CPU.value: there[0][Device.CPU]} for each in there]


def _on_cluster(
    options: argparse.Namespace,
    recipe: Recipe,
    items: list[Item],
    journal: Journal,
    token: CancelToken,
    report: Callable[[FileOutcome], None],
    say: Speaker,
) -> None:
    from kernelscope.big.batch.cluster import ClusterBatch
    from kernelscope.big.batch.item import PARTS
    from kernelscope.big.batch.task import TaskSettings

    parts = options.out.absolute() / PARTS
    with cluster_of(options, say, options.jobs or _JOBS) as (client, threads):
        settings = TaskSettings(
            recipe, run_options(vars(options)), parts, _handling(options), threads
        )
        ClusterBatch(items, settings, client, overwrite=options.overwrite).run(
            journal, token, report
        )


def _handling(options: argparse.Namespace) -> Handling:
    from kernelscope.big.batch.item import Handling

    found = options.nan, options.as_float, options.lossy, options.quality
    return Handling(*found, options.white, options.black)


def _print_failure(outcome: FileOutcome) -> None:
    source = outcome.item.source
    text = one_line(f"failed: {source}: {without_name(outcome.reason, source.name)}")
    print(text, file=sys.stderr, flush=True)


def _grouped(outcomes: Sequence[FileOutcome]) -> list[str]:
    """Return the notices about files, each once: of several files with the first one's name."""
    groups = dict[str, list[tuple[Path, str]]]()
    for outcome in outcomes:
        item = outcome.item
        for text in outcome.report.notices:
            nameless = text.replace(item.target.name, "*").replace(item.source.name, "*")
            groups.setdefault(nameless, []).append((item.source, text))
    found = []
    for (source, text), *more in groups.values():
        others = f"{len(more) + 1} files, such as " if more else ""
        found.append(f"{others}{source}: {text}")
    return found


def _unjudged(outcomes: list[FileOutcome], references: Path | None) -> list[str]:
    """Return a notice about results that were not compared with a reference."""
    from kernelscope.big.batch.item import FileState

    if references is None:
        return []
    done = [each for each in outcomes if each.status is FileState.DONE]
    count = sum(each.quality is None for each in done)
    word = "result was" if count == 1 else "results were"
    return [f"{count} {word} not compared: see “note” in the summary."] if count else []


def _closing(counts: Counter[Any], cut_off: int, total: int, seconds: float) -> str:
    """Return the last line: ``198 of 200 files in 12.3 s, 1 cut off, 2 failed``."""
    from kernelscope.big.batch.item import FileState

    parts = [f"{counts[FileState.DONE]} of {total} files in {seconds:.1f} s"]
    if counts[FileState.SKIPPED]:
        parts.append(f"{counts[FileState.SKIPPED]} were done before")
    if cut_off:
        parts.append(f"{cut_off} cut off")
    if counts[FileState.FAILED]:
        parts.append(f"{counts[FileState.FAILED]} failed")
    return ", ".join(parts)


def _summary(outcomes: list[FileOutcome], path: Path, *, judged: bool) -> str:
    """Return the outcome of each file, as JSON or as a table with commas."""
    rows: list[dict[str, Any]] = [
        {
            "source": str(each.item.source),
            "target": str(each.item.target),
            "status": each.status_name,
            **{name: getattr(each, name) for name in _TEXTS},
            **{name: round(getattr(each, name), 6) for name in _TIMES},
            "notices": [*each.report.notices],
            "record": each.report.record.as_json(),
            **(_figures(each) if judged else {}),
        }
        for each in outcomes
    ]
    if path.name.lower().endswith(".json"):
        return json_text({"files": rows}, indent=1) + "\n"
    text = io.StringIO()
    names = (
        "source",
        "target",
        "status",
        *_TEXTS,
        *_TIMES,
        "notices",
        *_RECORD,
        *(_FIGURES if judged else ()),
    )
    table = csv.DictWriter(text, names, lineterminator="\n")
    table.writeheader()
    for row in rows:
        record = {name: "; ".join(row["record"][name]) for name in _RECORD}
        cells = row | {"notices": " ".join(row["notices"])} | record
        del cells["record"]
        texts = {name: one_line(cell) for name, cell in cells.items() if isinstance(cell, str)}
        places = {name: table_text(row[name]) for name in ("source", "target")}
        table.writerow(cells | texts | places)
    return text.getvalue()


def _figures(outcome: FileOutcome) -> dict[str, object]:
    before, after = outcome.before, outcome.quality
    missing = "There is no reference." if outcome.item.reference is None else ""
    return {
        "psnr_before": _decibels(before),
        "psnr": _decibels(after),
        "ssim_before": before.ssim if before is not None else None,
        "ssim": after.ssim if after is not None else None,
        "levels": after.levels if after is not None else "",
        "note": outcome.note or missing,
    }


def _decibels(quality: Quality | None) -> float | str | None:
    if quality is None:
        return None
    return round(quality.psnr, 4) if math.isfinite(quality.psnr) else "inf"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"{PROGRAM} batch",
        description="Applies a recipe to many pictures and volumes. Reading, filtering and "
        "writing overlap. A file that fails is listed with its reason, and the others go on. "
        "DIR gets a journal, by which --resume skips what is done after an interruption.",
        epilog=STATUS,
    )
    text = f"""
        recipe RECIPE
            recipe saved by the window or by “{PROGRAM} apply --save-recipe”
        inputs INPUT...
            files, and folders with all pictures, volumes and DICOM series in and below them
        --out DIR
            folder for the results, made if it is not there; files in folders keep their places
        --suffix .EXT
            format of the results (default: that of each file, or .tif where it is not written, and
            .nii.gz for DICOM series)
        """
    add_options(parser, text, out={"required": True})
    add_computing_options(
        parser,
        levels_of(every_filter().values()),
        help="number of the GPU to use, or several, each of which takes files from the same queue "
        "(default: the variable KERNELSCOPE_GPU, or 0)",
    )
    text = f"""
        --jobs N
            files that are read ahead and written behind; memory holds 2 N + 1 of them (default:
            {_JOBS} for each GPU); with --local-cluster, files that each worker has in work
        """
    add_options(parser, text)
    text = """
        --local-cluster N
            filter in N worker processes on this machine, each with a GPU of its own
        --scheduler ADDRESS
            filter on the workers of a Dask cluster, such as tcp://node1:8786; all machines have
            INPUT and DIR under the same names
        """
    add_options(parser.add_mutually_exclusive_group(), text)
    add_tls_options(parser)
    text = """
        --overwrite
            replace files that are there
        --resume
            skip files that are done by the journal of DIR
        """
    add_options(parser, text)
    add_level_options(parser)
    add_file_options(parser)
    add_axis_option(parser)
    add_float_option(parser)
    text = """
        --summary FILE
            write what became of each file, with notices and times in seconds, to FILE: .json or
            .csv
        --reference DIR
            folder of references at the places of their files, to which --summary compares inputs
            and results: PSNR and SSIM
        """
    add_options(parser, text)
    add_output_options(parser, "print nothing but failures")
    return parser
