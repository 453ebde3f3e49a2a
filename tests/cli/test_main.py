"""The command line, in this process where possible and as a user's process where it matters."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PillowImage
from scipy import ndimage

import kernelscope
from kernelscope import filters
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.base import installed
from kernelscope.cli import catalogue
from kernelscope.cli.common import every_filter, open_backends
from kernelscope.cli.main import main
from kernelscope.engine.step import default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS
from kernelscope.schema.parameters import MaskParameter, OddParameter
from kernelscope.teach.manual import allowed
from tests.oracle import to_dtype, windows
from tests.paths import ROOT
from tests.patience import PATIENCE

SPECS = list(filters.discover().values())

each_filter = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)


def noise(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(2).integers(0, 256, shape, np.uint8)


@pytest.fixture
def grey(tmp_path: Path) -> Path:
    """A grey picture, 30x20 pixels."""
    path = tmp_path / "in.png"
    PillowImage.fromarray(noise(20, 30)).save(path)
    return path


def read(path: Path) -> NDArray[Any]:
    with PillowImage.open(path) as image:
        return np.asarray(image)


def apply(*arguments: object) -> int:
    return main(["apply", *map(str, arguments)])


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start the program as a user would."""
    return subprocess.Popen(
        [sys.executable, "main.py", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# apply --------------------------------------------------------------------------------


def test_apply_filters_the_picture(
    grey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a folder" / "größe.png"
    out.parent.mkdir()
    assert apply("mean", grey, out, "--size", 5, "--border", "wrap", "--level", "serial") == 0
    cells, _ = windows(read(grey)[:, :, None], 2, Border.WRAP)
    expected = to_dtype(cells.mean(axis=(3, 4))[:, :, 0], np.dtype(np.uint8))
    np.testing.assert_array_equal(read(out), expected)
    line, end = capsys.readouterr().out.split("\n")
    assert not end
    assert str(out) in line
    assert "Mean, mask size 5 px, wrap border, CPU serial; 30×20 pixels in " in line


@pytest.mark.skipif(HostCompiler.find() is None, reason="no C++ compiler")
def test_an_emulated_run_has_no_time(
    grey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply("mean", grey, tmp_path / "o.png", "--device=emulated", "--level=shared") == 0
    said = capsys.readouterr()
    assert said.out.rstrip().endswith("Emulated GPU shared memory; 30×20 pixels, not timed")
    assert " ms" not in said.err


@each_filter
def test_help_shows_every_parameter(spec: FilterSpec, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        apply(spec.id.replace("_", "-"), "--help")
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for parameter in spec.parameters:
        assert f"--{parameter.name.replace('_', '-')} " in text
        assert parameter.help in text
        assert allowed(parameter) in text


@each_filter
def test_help_is_one_screen_and_all_of_it_on_request(
    spec: FilterSpec, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    pages = []
    for word in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as stop:
            apply(spec.id, word)
        assert stop.value.code == 0
        pages.append(capsys.readouterr().out)
    option = re.compile(r"^  (?:-\w, )?(--[\w-]+)", re.MULTILINE)
    brief, whole = (set(option.findall(page)) for page in pages)
    assert brief < whole
    assert {"--repeat", "--memory", "--json", "--save-recipe"} <= whole - brief
    assert pages[0].rstrip().endswith(f"--help-all shows {len(whole - brief)} more options.")
    assert len(pages[0].splitlines()) <= 45 + 8 * len(spec.parameters)


@each_filter
def test_defaults_can_be_typed(spec: FilterSpec, grey: Path, tmp_path: Path) -> None:
    """An option accepts the default that the help shows, with the same result."""
    options: list[str] = []
    for parameter in spec.parameters:
        options.append(f"--{parameter.name.replace('_', '-')}")
        options.append(default_text(parameter))
    assert apply(spec.id, grey, tmp_path / "plain.png", "--quiet") == 0
    assert apply(spec.id, grey, tmp_path / "typed.png", "--quiet", *options) == 0
    np.testing.assert_array_equal(read(tmp_path / "plain.png"), read(tmp_path / "typed.png"))


def test_apply_takes_a_mask(grey: Path, tmp_path: Path) -> None:
    (spec,) = (s for s in SPECS if any(isinstance(p, MaskParameter) for p in s.parameters))
    mask = "-1 0 0; 0 2 0; 0 0 0"
    assert apply(spec.id, grey, tmp_path / "out.png", "--mask", mask, "--border", "wrap") == 0
    before = read(grey).astype(int)
    after = 2 * before - np.roll(before, (1, 1), (0, 1))
    np.testing.assert_array_equal(read(tmp_path / "out.png"), np.clip(after, 0, 255))


@pytest.mark.parametrize(
    ("sides", "size"), [("4", (4, 4)), ("3,5", (5, 3)), ("6x3", (3, 6)), ("1 × 4", (4, 1))]
)
def test_masks_of_any_sides_have_a_width_and_a_height(
    sides: str, size: tuple[int, int], tmp_path: Path, grey: Path
) -> None:
    """The filters of SciPy have a height and a width."""
    image, out = read(grey), tmp_path / "out.png"
    functions = {
        "median": ndimage.median_filter,
        "minimum": ndimage.minimum_filter,
        "maximum": ndimage.maximum_filter,
    }
    for name, function in functions.items():
        recipe = tmp_path / f"{name}.json"
        assert apply(name, grey, out, "--size", sides, "--save-recipe", recipe) == 0
        np.testing.assert_array_equal(read(out), function(image, size, mode="reflect"))
        assert apply("--recipe", recipe, grey, out) == 0
        np.testing.assert_array_equal(read(out), function(image, size, mode="reflect"))
    assert apply("mean", grey, out, "--size", sides) == 0
    exact = ndimage.uniform_filter(image.astype(float), size, mode="reflect")
    assert np.abs(read(out) - exact).max() <= 0.5 + 1e-9
    assert apply("morphology", grey, out, "--size", sides, "--operation", "opening") == 0
    np.testing.assert_array_equal(read(out), ndimage.grey_opening(image, size))


def test_apply_converts_to_grey(tmp_path: Path) -> None:
    source, out = tmp_path / "in.png", tmp_path / "out.png"
    PillowImage.fromarray(noise(9, 9, 3)).save(source)
    assert apply("mean", source, out, "--grey") == 0
    assert read(out).shape == (9, 9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["threshold-mean", "IN", "OUT", "--size", "4"], "4 is even"),
        (["threshold-mean", "IN", "OUT", "--size", "3,5"], "“3,5” is not a whole number"),
        (["mean", "IN", "OUT", "--size", "3,0"], "“3,0” is not a whole number"),
        (["mean", "IN", "OUT", "--size", "3x40"], "a mask of 40×3 cells is too large"),
        (["median", "IN", "OUT", "--size", "4", "--footprint", "disk"], "4×4 is no square"),
        (["mean", "IN", "OUT", "--size", "1001"], "1001 is out of range"),
        (["mean", "IN", "OUT", "--size", "big"], "“big” is not a whole number"),
        (["mean", "IN", "OUT", "--size", "21", "--border", "valid"], "does not fit"),
        (["mean", "IN", "OUT", "--device", "cpu", "--level", "tuned"], "no level “tuned”"),
        (["mean", "nowhere.png", "OUT"], "nowhere.png"),
        (["mean", "IN", "out.nonsense"], "out.nonsense"),
    ],
)
def test_what_the_user_can_mend_is_status_1(
    arguments: list[str],
    message: str,
    grey: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"IN": str(grey), "OUT": "out.png"}
    assert apply(*(names.get(argument, argument) for argument in arguments)) == 1
    output = capsys.readouterr()
    assert not output.out
    assert output.err.startswith("error: ")
    assert message in output.err
    assert output.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "in.png"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-filter", "in.png", "out.png"],
        ["mean", "in.png"],
        ["median", "in.png", "out.png", "--mask", "1"],
        ["mean", "in.png", "out.png", "--siz", "3"],
        ["mean", "in.png", "out.png", "--border", "soft"],
        ["mean", "in.png", "out.png", "--level", "fastest"],
        ["mean", "in.png", "out.png", "--quiet", "--verbose"],
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        apply(*arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1


def test_losing_alpha_needs_consent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.png", tmp_path / "out.jpg"
    PillowImage.fromarray(noise(8, 8, 4)).save(source)
    assert apply("mean", source, out) == 1
    assert "--lossy" in capsys.readouterr().err
    assert not out.exists()
    assert apply("mean", source, out, "--lossy") == 0
    assert read(out).shape == (8, 8, 3)


def test_notices_go_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.tif", tmp_path / "out.png"
    PillowImage.fromarray(noise(8, 8, 4), "CMYK").save(source)
    assert apply("mean", source, out) == 0
    output = capsys.readouterr()
    assert "CMYK" in output.err
    assert "CMYK" not in output.out
    assert apply("mean", source, out, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_verbose_logs_the_stages(grey: Path, tmp_path: Path) -> None:
    process = start("apply", "mean", str(grey), str(tmp_path / "out.png"), "--verbose")
    out, err = process.communicate()
    assert process.returncode == 0
    assert len(out.splitlines()) == 1
    for stage in ("prepare", "compile", "compute", "convert"):
        assert f"{stage}: " in err


def test_gpu_that_cannot_be_used_is_explained(
    grey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_backends() as backends:
        state = backends["gpu"].availability()
    if state.available:
        pytest.skip("this machine has a GPU")
    assert apply("mean", grey, tmp_path / "out.png", "--device", "gpu") == 1
    assert state.summary in capsys.readouterr().err


@pytest.mark.slow
def test_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    source, out = tmp_path / "in.png", tmp_path / "out.png"
    PillowImage.fromarray(noise(3000, 3000)).save(source)
    options = ["--size", "99", "--level", "serial", "--verbose"]
    process = start("apply", "mean", str(source), str(out), *options)
    assert process.stderr is not None
    while "compile: " not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = process.communicate(timeout=10 * PATIENCE)
    assert time.monotonic() - begin < PATIENCE / 2  # not to the end of the filter
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == [tmp_path / "in.png"]


# list, info, --version ----------------------------------------------------------------


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    catalogue = json.loads(capsys.readouterr().out)
    entries = {entry["id"].replace("-", "_"): entry for entry in catalogue["filters"]}
    assert set(entries) == set(every_filter())
    for spec in every_filter().values():
        entry = entries[spec.id]
        assert entry["kind"] == spec.kind
        assert [p["option"] for p in entry["parameters"]] == [
            f"--{p.name.replace('_', '-')}" for p in spec.parameters
        ]
        assert entry["borders"] == list(spec.borders)
        own = ["serial", "serial-bubble", "serial-huang"]
        serial = own if entry["id"] == "median" else ["serial"]
        assert entry["levels"]["cpu"] == [*serial, "parallel"]
        for parameter, described in zip(spec.parameters, entry["parameters"], strict=True):
            if parameter.is_estimated:
                assert described["default"] == described["estimate"]
            else:
                assert parameter.parse(described["default"]) == parameter.default
            if isinstance(parameter, OddParameter):
                assert described["minimum"] == parameter.minimum
    assert {level.id for level in GPU_LEVELS} <= set(catalogue["levels"])
    assert [device["id"] for device in catalogue["devices"]] == ["gpu", "cpu", "emulated"]


def test_list_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for spec in every_filter().values():
        assert f"  {spec.id.replace('_', '-')}: {spec.summary}" in text
    for border in Border:
        assert border.help in text
    levels = text.split("\nLevels\n")[1].split("\n\n")[0].splitlines()
    names = {level.id for spec in SPECS for level in spec.levels("gpu")}
    assert names <= {line.split("  ")[1] for line in levels}
    starts = [re.match(r"  [\w-]+ {2,}", line) for line in levels]
    assert len({start.end() for start in starts if start}) == 1, "one column of texts"
    assert all(starts)
    noise = text.split("  gaussian-noise: ")[1].split("\n  greyscale: ")[0]
    assert "levels on gpu: none" in noise
    assert "0 to 2147483647; default: 0" in noise


def test_info_tells_how_to_get_a_gpu_going(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    missing = installed.missing_parts()
    for name, (purpose, _) in installed.PARTS.items():
        found = f"missing: {missing[name]}" if name in missing else "installed"
        assert f"\n  {name:11}{purpose}; {found}\n" in text
    assert "window" not in missing
    assert f"Python       CPython {sys.version.split()[0]}" in text
    assert f"numpy {np.__version__}" in text
    with open_backends() as backends:
        state = backends["gpu"].availability()
    assert state.summary in text
    for number, step in enumerate(state.steps, 1):
        assert f"{number}. {step}" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"Kernelscope {kernelscope.__version__}\n"


# The window ---------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["./list"], ["picture.png"]])
def test_anything_but_a_command_opens_the_window(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("list", "picture.png"):
        (tmp_path / name).touch()
    opened: list[Path | None] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("kernelscope.gui.run", lambda path: opened.append(path) or 7)
    assert main(arguments) == 7
    assert opened == [Path(arguments[0]) if arguments else None]


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Open no window but log a line, and remove the handlers of the log afterwards."""

    def run(path: Path | None) -> int:
        logging.getLogger("kernelscope.gui").debug("opened %s", path)
        return 0

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("kernelscope.gui.run", run)
    logger = logging.getLogger("kernelscope")
    level, before = logger.level, logger.handlers[:]
    yield
    logger.setLevel(level)
    for handler in [each for each in logger.handlers if each not in before]:
        logger.removeHandler(handler)
        handler.close()


@pytest.mark.usefixtures("logs")
def test_the_window_logs_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--log", str(tmp_path / "log.txt")]) == 0
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \S+  DEBUG   opened None\n", (tmp_path / "log.txt").read_text()
    )
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("logs")
def test_the_window_logs_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's, beside which none is added
    assert main(["--debug"]) == 0
    assert capsys.readouterr().err.endswith(" ms  DEBUG   opened None\n")


@pytest.mark.usefixtures("logs")
def test_a_log_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "picture.png"
    picture.write_text("pixels")
    assert main(["--log", str(tmp_path / "no" / "log.txt")]) == 1
    assert "cannot be written: No such file or directory." in capsys.readouterr().err
    assert main(["--log", str(picture), str(picture)]) == 1
    assert "would overwrite the image" in capsys.readouterr().err
    assert picture.read_text() == "pixels"


def test_window_without_a_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 1
    assert "no screen" in capsys.readouterr().err


def test_everything_but_the_window_works_without_qt(tmp_path: Path) -> None:
    """One line, with the command that brings it; screens do not matter."""
    code = (
        "import sys; sys.modules |= dict.fromkeys(('PySide6', 'pyqtgraph', 'shiboken6')); "
        "from kernelscope.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    PillowImage.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "a.png")
    for line in ("list", "apply negative a.png b.png --quiet"):
        assert run(*line.split()).returncode == 0
    opened = run()
    assert opened.returncode == 1
    assert re.fullmatch(
        r"error: The window is not installed: it needs PySide6 and pyqtgraph\. "
        r".*pip install .*window.*, or use the command line: kernelscope --help\.\n",
        opened.stderr,
    )


def test_window_without_the_libraries_of_qt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(path: Path | None) -> int:
        raise ImportError("libEGL.so.1: cannot open shared object file", name="PySide6.QtGui")

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("kernelscope.gui.run", run)
    assert main([]) == 1
    assert "libEGL.so.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["denoise"],
        ["info"],
        ["list"],
        ["phantom"],
        ["warm-up"],
        ["completion"],
        ["apply", "mean"],
    ],
    ids=" ".join,
)
def test_help_fits_into_80_columns(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    wide = [line for line in lines if len(line) > 80 and "{" not in line]  # choices do not wrap
    assert wide == []


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for command in ("apply", "list", "info", "bench"):
        assert f"\n  {command} " in text


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("aply median a.png b.png", "Did you mean apply?"),
        ("Denoise a.png b.png", "Did you mean denoise?"),
        ("bacth", "Did you mean batch or bench?"),
        ("convert a.png b.png", "Use one of apply, denoise, batch"),
    ],
)
def test_a_command_that_does_not_exist_is_named(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: There is no command “{line.split()[0]}”. {hint}")
    assert len(error.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no list of threads")
def test_numpy_has_no_threads_of_its_own() -> None:
    code = (
        "import contextlib, os\n"
        "from kernelscope.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--version'])\n"
        "import numpy\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "1"


def test_a_wrong_value_is_refused_without_loading_devices() -> None:
    code = (
        "import sys; from kernelscope.cli.main import main; "
        "status = main(['apply', 'median', '--size', '4', 'a.png', 'b.png']); "
        "print(status, sorted({'numba', 'PIL', 'kernelscope.backends'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"


# Everything else that can happen ------------------------------------------------------


def test_bug_is_owned_up_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(arguments: list[str]) -> int:
        raise RuntimeError("odd")

    monkeypatch.setattr(catalogue, "list_filters", broken)
    assert main(["list"]) == 70
    error = capsys.readouterr().err
    assert "RuntimeError: odd" in error
    assert "bug in Kernelscope" in error


@pytest.mark.slow
def test_closed_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "main.py", "list", "--json"],
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr


@pytest.mark.slow
def test_terminal_without_unicode() -> None:
    done = subprocess.run(
        [sys.executable, "main.py", "list"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Filters" in done.stdout


def test_a_filter_of_pictures_points_to_that_of_volumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    volume = tmp_path / "in.npy"
    np.save(volume, np.arange(512, dtype=np.uint8).reshape(8, 8, 8))
    assert main(["apply", "nlm", str(volume), str(tmp_path / "out.npy")]) == 0
    assert "mri-nlm compares voxels of the whole volume" in capsys.readouterr().err


def test_commands_leave_no_handlers(tmp_path: Path) -> None:
    loggers = [logging.getLogger(name) for name in ("kernelscope", "PIL", "tifffile")]
    line = ["apply", "mean", str(tmp_path / "none.png"), "out.png", "--quiet"]
    assert main(line) == 1  # tifffile adds its own when it is imported
    before = [each.handlers[:] for each in loggers]
    for _ in range(2):
        assert main(line) == 1
    assert [each.handlers for each in loggers] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["medan", "a.png", "b.png"], "did you mean median or mean?"),
        (["median", "--size", "99", "a.png", "b.png"], "99 is out of range"),
        (["median", "a.png"], "give two files"),
    ],
)
def test_an_error_imports_no_other_filter(arguments: list[str], message: str) -> None:
    """That takes longer than finding the error."""
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules));"
        f"from kernelscope.cli.main import main; sys.exit(main({['apply', *arguments]}))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert message in done.stderr
    loaded = {name for name in done.stdout.split() if name.startswith("kernelscope.filters.")}
    own = ("kernelscope.filters.median", "kernelscope.filters.shared")
    assert all(name.startswith(own) for name in loaded), loaded


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("apply median --bad in.png out.png", "error: there is no option --bad"),
        (
            "apply median in.png out.png --footprnt disk",
            "error: there is no option --footprnt; did you mean --footprint?",
        ),
        ("apply median in.png out.png --dim=3d", "error: there is no option --dim"),
        ("batch --ressume r.json a.png --out d", "did you mean --resume?"),
        ("bench --bad", "error: there is no option --bad"),
        ("list all", "error: unexpected argument all"),
        ("--bad", "error: there is no option --bad"),
        ("phantom", "error: the following arguments are required"),
    ],
)
def test_the_error_comes_first_and_alone(
    line: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert first in error
    assert error.startswith("error: ")
    command = "kernelscope" if line.startswith("-") else f"kernelscope {line.split()[0]}"
    assert f" “{command}" in error
    assert error.endswith("--help” lists the options.")


def test_filters_are_listed_in_the_order_of_their_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["filters"]
    with pytest.raises(SystemExit):
        main(["apply", "--help"])
    shown = re.findall(r"^  ([a-z][a-z-]+)  +\S", capsys.readouterr().out, re.MULTILINE)
    for kind in ("picture", "volume"):
        names = [each["id"] for each in entries if each["kind"] == kind]
        assert names == sorted(names)
        assert len(names) > 2
        assert [each for each in shown if each in names] == names


def test_names_that_others_have_for_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for name, meant in (("doctor", "info"), ("filters", "list"), ("help", "--help")):
        assert main([name]) == 2
        assert f"Did you mean {meant}?" in capsys.readouterr().err
