"""Shared parts of the commands."""

from __future__ import annotations

import argparse
import difflib
import json
import logging
import math
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kernelscope import filters
from kernelscope.base.durations import duration
from kernelscope.base.errors import AppError, NotANumber
from kernelscope.base.text import PrintableFormatter, one_line, printable
from kernelscope.engine.control import CancelToken
from kernelscope.engine.timing import TimeLeft
from kernelscope.images.judging.whiteness import describe_correlation
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import Choice, Parameter, read_number
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:
    from types import FrameType

    from kernelscope.engine.backend import Backend
    from kernelscope.engine.options import RunOptions
    from kernelscope.engine.recipe import Recipe
    from kernelscope.engine.result import Result
    from kernelscope.images.image import Image
    from kernelscope.images.record import Record
    from kernelscope.images.source import Source
    from kernelscope.images.volume import Volume

MOST_BYTES = 2**62  # larger than any memory, and still a number that the system's interfaces accept

STATUS = """\
Exit status: 0 on success; 1 for an error that you can correct (a file, a value
out of range) or something that this machine lacks (a GPU); 2 for wrong usage,
such as an unknown name; 130 after Ctrl+C."""


def file_path(text: str) -> Path:
    """Read the name of a file or a folder; an empty one would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return Path(text)


class _StoreOnce(argparse.Action):
    """Stores the value of an option, and refuses a second one rather than taking the last."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None and isinstance(parser, Parser):
            if self.dest in parser.given:
                way = (
                    "leave out all but one" if self.nargs is None else "write its values after one"
                )
                raise argparse.ArgumentError(self, f"it is given more than once: {way}")
            parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Takes complete names of options, each once, and prints errors without control characters."""

    def __init__(self, **how: Any) -> None:
        super().__init__(allow_abbrev=False, **how)
        self.given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        """Parse from the start: no option was given yet."""
        self.given.clear()
        return super().parse_known_args(*arguments, **named)

    def error(self, message: str) -> NoReturn:
        """End the program with status 2 and a line: the error, and where the options are listed."""
        wrong, mark, words = message.partition("unrecognized arguments: ")
        if mark and not wrong:
            message = self._unknown(words.split())
        stop = "" if message.endswith((".", "?")) else "."
        way = f"“{self.prog} --help” lists the options."
        self.exit(2, f"error: {one_line(message)}{stop} {way}\n")

    def _unknown(self, words: Sequence[str]) -> str:
        """Return the message for arguments that the command does not have."""
        options = [each for each in words if each.startswith("-")]
        if not options:
            return f"unexpected argument {' '.join(words)}"
        name = options[0].partition("=")[0]
        known = [each for each in self._option_string_actions if each.startswith("--")]
        alike = difflib.get_close_matches(name, known, n=2, cutoff=0.7)
        hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
        return f"there is no option {name}{hint}"


def show(text: str) -> None:
    print(printable(text), flush=True)


def add_options(group: argparse._ActionsContainer, text: str, **how: Any) -> None:
    """Add options that are written as their help shows them: names and a placeholder, then words.

    The placeholder says how a value is read, with dots how several are; an option without one is a
    flag. A name without dashes is a positional argument. `how`: the choices of an option, or
    further arguments of ``add_argument``, by its name.
    """
    for head, words in re.findall(r"^(\S.*)\n((?: .*\n?)*)", textwrap.dedent(text), re.MULTILINE):
        names = [each.rstrip(",") for each in head.split() if each.startswith("-")]
        names = names or head.split()[:1]
        placeholder = head.split()[len(names) :]
        settings: dict[str, Any] = {"help": " ".join(words.split())}
        given = how.get(names[0].lstrip("-").replace("-", "_"), {})
        settings |= given if isinstance(given, dict) else {"choices": given}
        if placeholder:
            settings.setdefault("metavar", placeholder[0].removesuffix("..."))
            settings.setdefault("type", _READERS.get(settings["metavar"], str))
            if placeholder[0].endswith("..."):
                settings.setdefault("nargs", "+")
        elif "choices" not in settings:
            settings["action"] = "store_true"
        group.add_argument(*names, **settings)


def add_gpu_option(parser: argparse._ActionsContainer, **how: Any) -> None:
    """Add the choice among several GPUs; `how` is for ``add_argument``."""
    how.setdefault("type", _gpu_numbers)
    text = """
        --gpu, --gpus N[,N]
            number of the GPU to use, or several, which share volumes and pictures too large for one
            (default: the variable KERNELSCOPE_GPU, or 0)
        """
    add_options(parser, text, gpu=how)


def _gpu_numbers(text: str) -> tuple[int, ...]:
    from kernelscope.backends import gpu_numbers

    try:
        return gpu_numbers(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def every_filter() -> dict[str, FilterSpec]:
    """Return the filters in the order of their ids, those of pictures first."""
    return {key: spec for kind in Kind for key, spec in sorted(filters.discover(kind).items())}


def switches(parameter: Parameter) -> dict[str, Choice]:
    """Return the options without a value that select choices of a parameter."""
    return {f"--{each.switch}": each for each in parameter.named_values() if each.switch}


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number like 0, 1, 2")
    return int(text)


def volume_numbers(text: str) -> list[int]:
    return [positive(number) for number in text.split(",")]


def byte_size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", text.upper())
    number = float(match[1]) * 1024 ** " KMG".index(match[2] or " ") if match else 0.0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a size like 256M or 2G")
    if number >= MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{text} is larger than any memory")
    return int(number)


@contextmanager
def nan_option() -> Iterator[None]:
    """Mention the option --nan if a file with NaN is refused."""
    try:
        yield
    except NotANumber as error:
        raise NotANumber(error.message, f"{error.hint} That is --nan 0.") from None


def thread_block(text: str) -> tuple[int, int]:
    from kernelscope.schema.blocks import read_block

    try:
        return read_block(text)
    except AppError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number like 1, 2, 3") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def quality(text: str) -> int:
    number = positive(text)
    if number > 100:
        raise argparse.ArgumentTypeError(f"{number} is not at most 100")
    return number


def real_number(text: str) -> float:
    """Read a number like 0, 0.5, -20, with a decimal point or a decimal comma."""
    try:
        return read_number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number like 0, 0.5, -20") from None


_READERS: Mapping[str, Any] = {
    **dict.fromkeys(("FILE", "FILE.json", "DIR", "INPUT", "OUTPUT", "RECIPE"), file_path),
    "N": positive,
    "SIZE": byte_size,
    "X": real_number,
    "WxH": thread_block,
}
"""How a value is read that stands for a placeholder; all others are texts."""


def namesakes(spec: FilterSpec, kind: Kind) -> list[FilterSpec]:
    """Return the filters of `kind` that share a word of their id with `spec`: nlm, mri_nlm."""
    words = set(spec.id.split("_"))
    return [
        each
        for each in every_filter().values()
        if each.kind is kind and each.id != spec.id and words & set(each.id.split("_"))
    ]


@contextmanager
def open_backends(gpus: Sequence[int] | None = None) -> Iterator[dict[str, Backend]]:
    from kernelscope.backends import create_backends
    from kernelscope.engine.backend import close_all

    backends = create_backends(gpus, emulated=True)
    try:
        yield backends
    finally:
        close_all(backends.values())


@contextmanager
def interruptible() -> Iterator[CancelToken]:
    """Provide a token that Ctrl+C sets, so that helper threads stop together with this one."""
    token = CancelToken()

    def interrupt(number: int, frame: FrameType | None) -> None:
        token.cancel()
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield token
    finally:
        signal.signal(signal.SIGINT, previous)


class StatusLine:
    """One line of stderr that is kept up to date; silent if stderr is no terminal."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._left = TimeLeft()

    def progress(self, stage: str, fraction: float) -> None:
        self.show(f"{stage} {100 * fraction:.0f} %{self._left.describe(stage, fraction)}")

    def show(self, text: str) -> None:
        if self._shown:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{one_line(text)[:width]:{width}}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        self.show("")
        if self._shown:
            print("\r", end="", file=sys.stderr, flush=True)


class Speaker:
    """Prints results on stdout and notices on stderr; nothing if quiet.

    With `as_json` the only output on stdout is a report as JSON.
    """

    def __init__(self, quiet: bool, *, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json

    def line(self, text: str) -> None:
        if not (self._quiet or self._as_json):
            show(text)

    def report(
        self,
        source: Path,
        output: Path,
        recipe: Recipe,
        record: Record,
        results: Sequence[Result] = (),
        **more: Any,
    ) -> None:
        """Print the report of a command as JSON, if that is wanted.

        `results`: of the last step, one for each picture or volume. `more`: further entries.
        """
        if self._as_json:
            content = {
                "input": str(source),
                "output": str(output),
                "steps": json.loads(recipe.to_json())["steps"],
                "record": record.as_json(),
                **more,
            }
            if results:
                content["results"] = [_figures(each) for each in results]
            found = [each.correlation for each in results]
            found = [None if each is None else round(each, 4) for each in found]
            if found != [None] * len(found):
                content["residual"] = (
                    {"correlation": found[0]} if len(found) == 1 else {"correlations": found}
                )
            show(json.dumps(content, indent=2))

    def notices(self, notices: Iterable[str]) -> None:
        if not self._quiet:
            for notice in notices:
                print(f"note: {one_line(notice)}", file=sys.stderr)

    def results(self, name: str, results: Sequence[Result]) -> None:
        for number, result in enumerate(results, 1):
            several = f", {number} of {len(results)}" if len(results) > 1 else ""
            self.result(f"{name}{several}", result)

    def result(self, name: str, result: Result) -> None:
        *sides, _ = result.request.source.shape
        cells = "pixels" if len(sides) == 2 else "voxels"
        self.notices(result.notices)
        taken = f" in {duration(result.seconds)}, {result.speed:.1f} {result.speed_unit}"
        self.line(
            f"{name}: {result.describe()}; {'×'.join(map(str, reversed(sides)))} {cells}"
            f"{', not timed' if result.is_emulated else taken}"
        )
        if result.quality:
            if result.quality.before:
                self.line(f"  before: {result.quality.before.describe()}")
            self.line(f"  after:  {result.quality.after.describe()}")
        elif result.correlation is not None:
            self.line(f"  residual: {describe_correlation(result.correlation)}")


def _figures(result: Result) -> dict[str, Any]:
    """Return device, seconds and quality of a result; null where PSNR is infinite."""
    found: dict[str, Any] = {"device": result.where}
    if not result.is_emulated:
        found["seconds"] = round(result.seconds, 9)
    if result.quality:
        both = {"before": result.quality.before, "after": result.quality.after}
        found["quality"] = {
            name: {
                key: None if value is None or not math.isfinite(value) else float(value)
                for key in ("psnr", "ssim", "mse", "mae", "bias", "psnr_inside")
                if hasattr(quality, key)
                for value in (getattr(quality, key),)
            }
            for name, quality in both.items()
            if quality
        }
    return found


def run_steps(
    recipe: Recipe,
    sources: Sequence[Source],
    reference: Image | Volume | None,
    options: RunOptions,
    gpus: tuple[int, ...] | None,
    status: StatusLine,
    say: Speaker,
) -> list[Result]:
    """Run the steps of a recipe on each source, report each but the last; return the last results.

    `reference`: every result is compared with it.
    """
    from kernelscope.engine.costs import Costs, default_path
    from kernelscope.engine.steps import execute_recipe

    made = []
    with open_backends(gpus) as backends, interruptible() as token:
        say.notices(missing_gpu(gpus, options.device, backends))
        for source in sources:
            results = execute_recipe(
                recipe,
                source,
                backends,
                token,
                status.progress,
                Costs(default_path()),
                options=options,
                reference=reference,
            )
            try:
                for number, result in enumerate(results, 1):
                    status.clear()
                    if number < len(recipe.steps):
                        say.result(f"step {number}", result)
            finally:
                status.clear()
            made.append(result)
    return made


def missing_gpu(
    gpus: Sequence[int] | None, device: str, backends: Mapping[str, Backend]
) -> list[str]:
    """Return a notice if GPUs were chosen, none is available, and Auto takes the CPU."""
    state = backends[Device.GPU].availability()
    if gpus is None or device != "auto" or state.available:
        return []
    return [f"--gpu has no effect, because the CPU computes: {state.summary}"]


_SILENT = logging.NullHandler()


def silence_libraries() -> None:
    """Keep log records of libraries off stderr, where Python prints them without a handler."""
    for name in ("PIL", "imagecodecs", "nibabel", "numba", "pydicom", "tifffile"):
        logger = logging.getLogger(name)
        if _SILENT not in logger.handlers:
            logger.addHandler(_SILENT)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the program's own log off stderr, too."""
    logger = logging.getLogger("kernelscope")
    handler = logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def log_to_file(path: Path) -> None:
    """Write the program's log to a new file, from DEBUG on."""
    try:
        handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    except OSError as error:
        raise AppError(
            f"“{path}” cannot be written: {error.strerror or error}.", "Choose another file."
        ) from error
    handler.setFormatter(PrintableFormatter("%(asctime)s  %(levelname)-7s %(message)s"))
    logger = logging.getLogger("kernelscope")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


def log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        PrintableFormatter("%(relativeCreated)8.0f ms  %(levelname)-7s %(message)s")
    )
    logging.basicConfig(handlers=[handler])
    logging.getLogger("kernelscope").setLevel(logging.DEBUG)
