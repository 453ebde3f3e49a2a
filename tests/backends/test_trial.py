"""Edited kernels in a process of their own: compiling, limits, messages."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from pathlib import Path

import pytest

from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.trial import child, parent
from kernelscope.backends.trial.compiling import expanded
from kernelscope.backends.trial.parent import TrialOutcome, try_out
from kernelscope.backends.trial.protocol import (
    COMPILE_ONLY,
    ERROR,
    MOST_MESSAGES,
    WARNING,
    CompilerMessage,
    Ending,
    TrialJob,
    TrialLimits,
    TrialReport,
    parse,
)
from kernelscope.base.errors import AppError
from kernelscope.base.paths import KERNELS
from kernelscope.engine.control import CancelToken
from kernelscope.engine.timing import Resources
from tests.patience import PATIENCE

MEAN = (KERNELS / "mean.cu").read_text(encoding="utf-8")


def job(text: str = MEAN, kernel: str = "mean_shared", target: str = COMPILE_ONLY) -> TrialJob:
    return TrialJob(target, "mean.cu", text, kernel, {"SIZE": "5"})


# Messages -----------------------------------------------------------------------------


def test_messages_of_nvrtc() -> None:
    log = (
        'mean.cu(39): warning #177-D: variable "x" was declared but never referenced\n'
        "          int x; sum += prt;\n"
        "              ^\n\n"
        'Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"\n\n'
        'mean.cu(39): error: identifier "prt" is undefined\n'
        "          int x; sum += prt;\n"
        "                        ^\n\n"
        'box.cuh(7): catastrophic error: cannot open source file "x.h"\n'
    )
    assert parse(log) == (
        CompilerMessage(ERROR, 'identifier "prt" is undefined', "mean.cu", 39, 23),
        CompilerMessage(ERROR, 'cannot open source file "x.h"', "box.cuh", 7, 0),
        CompilerMessage(
            WARNING, 'variable "x" was declared but never referenced', "mean.cu", 39, 13
        ),
    )


def test_messages_of_host_compilers() -> None:
    log = (
        "mean.cu: In member function 'int f()':\n"
        "mean.cu:12:5: error: 'prt' was not declared in this scope; did you mean 'part'?\n"
        "   12 |     prt\n"
        "mean.cu:9:7: warning: unused variable 'x' [-Wunused-variable]\n"
        "mean.cu:3: fatal error: no.h: No such file\n"
        "/usr/bin/ld: a.o: undefined reference to `f()'\n"
    )
    assert parse(log) == (
        CompilerMessage(
            ERROR, "'prt' was not declared in this scope; did you mean 'part'?", "mean.cu", 12, 5
        ),
        CompilerMessage(ERROR, "no.h: No such file", "mean.cu", 3, 0),
        CompilerMessage(ERROR, "undefined reference to `f()'"),
        CompilerMessage(WARNING, "unused variable 'x'", "mean.cu", 9, 7),
    )


def test_messages_of_the_assembler_stand_at_no_line() -> None:
    log = "ptxas error   : Entry function 'k' uses too much shared data (0x800000 bytes)"
    assert parse(log) == (
        CompilerMessage(ERROR, "Entry function 'k' uses too much shared data (0x800000 bytes)"),
    )
    assert not parse("ptxas info    : Used 4 registers")


def test_messages_are_bounded_and_each_is_there_once() -> None:
    log = "".join(f'a.cu({n}): error: expected a ";"\n' for n in range(1, 1000)) * 2
    assert len(parse(log)) == MOST_MESSAGES
    assert len(parse(log.splitlines()[0] * 2)) == 1


# The source ---------------------------------------------------------------------------


@pytest.mark.parametrize("filter_id", ["mean", "median", "mri_nlm"])
def test_an_unchanged_source_compiles_as_the_program_s(filter_id: str) -> None:
    text = (KERNELS / f"{filter_id}.cu").read_text(encoding="utf-8")
    wanted = read_source(filter_id)
    assert expanded(f"{filter_id}.cu", text) == wanted


def test_other_headers_stay_for_the_compiler_to_complain_about() -> None:
    text = expanded("a.cu", '#include "/etc/passwd"\n#include "../x.cuh"\n#include "no.cuh"\n')
    assert text.split("\n")[1:4] == [
        '#include "/etc/passwd"', '#include "../x.cuh"', '#include "no.cuh"'
    ]  # fmt: skip


# Compiling ----------------------------------------------------------------------------
@pytest.mark.slow
def test_a_source_is_compiled() -> None:
    report = try_out(job()).report
    assert report.ending is Ending.DONE, report
    assert set(report.resources) == {"sm_75", "sm_90"}
    assert all(each.registers > 8 for each in report.resources.values())
    assert "NVRTC" in report.compiler
    assert report.seconds["compile"] > 0


@pytest.mark.usefixtures("trials_here")
@pytest.mark.slow
def test_errors_stand_at_the_lines_of_the_edited_source() -> None:
    line = next(n for n, text in enumerate(MEAN.split("\n"), 1) if "sum += part" in text)
    report = try_out(job(MEAN.replace("sum += part;", "int unused;\nsum += prt;"))).report
    assert report.ending is Ending.NOT_COMPILED
    assert [(each.kind, each.file, each.line) for each in report.messages] == [
        (ERROR, "mean.cu", line + 1),
        (WARNING, "mean.cu", line),
    ]
    assert "prt" in report.messages[0].text


@pytest.mark.usefixtures("trials_here")
@pytest.mark.slow
def test_a_source_without_its_kernel() -> None:
    report = try_out(job(MEAN.replace("mean_shared", "mean_shred"))).report
    assert report.ending is Ending.NOT_COMPILED
    assert "no kernel “mean_shared”" in report.messages[0].text


@pytest.mark.usefixtures("trials_here")
@pytest.mark.slow
@pytest.mark.parametrize("size", ["10ll << 30", "1 << 20"])
def test_too_much_shared_memory_is_an_error(size: str) -> None:
    # The assembler refuses the smaller one, but counts the larger one with 32 bits.
    large = f"__shared__ char all[{size}]; all[threadIdx.x] = 1; output[0] = all[g.width];\n    "
    place = MEAN.index("compute(", MEAN.index("mean_shared"))
    report = try_out(job(MEAN[:place] + large + MEAN[place:])).report
    assert report.ending is Ending.NOT_COMPILED
    assert any(re.search("shared (data|memory)", each.text) for each in report.messages), report
    assert not report.resources


# Limits -------------------------------------------------------------------------------


def gone(folder: Path) -> bool:
    return not list(folder.glob("kernelscope-trial-*"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folders of trials are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_compiling_without_end_is_stopped(folder: Path) -> None:
    tree = "\n".join(
        f"#define A{n} A{n - 1} A{n - 1} A{n - 1} A{n - 1}" for n in range(1, 20)
    )  # 4^19 tokens
    slow = f"{MEAN}\n#define A0 +1\n{tree}\n__device__ int endless = 0 A19;\n"
    start = time.monotonic()
    report = try_out(job(slow), limits=TrialLimits(compile=0.7)).report
    assert time.monotonic() - start < PATIENCE
    assert report.ending in (Ending.TIME, Ending.MEMORY, Ending.DIED), report
    assert report.ending is not Ending.TIME or "Compiling took more than 0.7 s" in report.text
    assert gone(folder)


def test_a_process_that_does_not_start_in_time_is_named(folder: Path) -> None:
    report = try_out(job(), limits=TrialLimits(start=0.0)).report
    assert report.ending is Ending.TIME
    assert report.text.startswith("Starting the process")
    assert gone(folder)


def test_cancelling_ends_the_process(folder: Path) -> None:
    token, outcomes = CancelToken(), list[TrialOutcome]()
    work = threading.Thread(target=lambda: outcomes.append(try_out(job(), token=token)))
    work.start()
    token.cancel()
    work.join()
    assert outcomes[0].report.ending is Ending.CANCELLED
    assert gone(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "ending", "text"),
    [
        ("import os; os.kill(os.getpid(), 11)", Ending.DIED, "wrote or read outside"),
        ("import os; os.abort()", Ending.DIED, "damaged its memory"),
        ("import sys; sys.exit(3)", Ending.DIED, "failed (3)"),
        ("bytearray(1 << 33)", Ending.MEMORY, "more memory"),
        ("pass", Ending.DIED, "left no report"),
        ("while True: pass", Ending.TIME, "0.5 s"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_process_that_dies_is_named(
    code: str, ending: Ending, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dying.py").write_text(
        "import sys; from pathlib import Path\n"
        "from kernelscope.backends.trial.child import limit\n"
        "from kernelscope.backends.trial.protocol import StageNotes\n"
        "from kernelscope.backends.trial.protocol import TrialStage\n"
        "limit(4 << 30)\n"
        "with StageNotes(Path(sys.argv[1])).stage(TrialStage.RUN):\n"
        f"    {code}\n"
    )
    monkeypatch.setattr(parent, "_MODULE", "dying")
    monkeypatch.syspath_prepend(str(tmp_path))
    report = try_out(
        job(), limits=TrialLimits(run=0.5 if ending is Ending.TIME else PATIENCE)
    ).report
    assert report.ending is ending, report
    assert text in report.text


# Messages between the processes ---------------------------------------------------------


def test_jobs_and_reports_survive_the_way(tmp_path: Path) -> None:
    sent = TrialJob("x", "a.cu", "ß", "k", {"A": "1"}, "mean", 7, 3)
    sent.write(tmp_path)
    assert TrialJob.read(tmp_path) == sent
    messages = (CompilerMessage(ERROR, "no", "a.cu", 3, 4),)
    report = TrialReport(
        Ending.FAULT,
        "t",
        "h",
        "c",
        messages,
        {"sm_75": Resources(1, 2, 3, 4, 5)},
        {"run": 0.5},
        (7,),
    )
    report.write(tmp_path)
    assert TrialReport.read(tmp_path) == report


@pytest.mark.parametrize(
    ("old", "new"),
    [('"fault"', '"odd"'), ("0.5", '"x"'), ('"line": 3', '"line": -3'), ('"text"', '"texts"')],
)
def test_a_damaged_report_is_refused(tmp_path: Path, old: str, new: str) -> None:
    messages = (CompilerMessage(ERROR, "no", "a.cu", 3, 4),)
    TrialReport(Ending.FAULT, messages=messages, seconds={"run": 0.5}).write(tmp_path)
    path = tmp_path / "report.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(AppError):
        TrialReport.read(tmp_path)


def test_an_unknown_failure_of_the_child_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> TrialReport:
        raise AppError("There is no compiler.", "Install one.")

    monkeypatch.setattr(child, "limit", lambda memory: None)
    monkeypatch.setitem(child._TARGETS, COMPILE_ONLY, refuse)
    job().write(tmp_path)
    child.main(tmp_path)
    assert TrialReport.read(tmp_path) == TrialReport(
        Ending.REFUSED, "There is no compiler.", "Install one."
    )


def test_the_child_ends_with_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = iter([7, 7, 1])
    ended = []
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(child, "_PARENT_SECONDS", 0)
    child.follow_parent(7)
    assert ended == [1]
    assert not list(parents)
