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
from kernelscope.base import installed
from kernelscope.base.installed import pip_command
from kernelscope.cli import catalogue
from kernelscope.cli.common import every_filter, open_backends, switches
from kernelscope.cli.main import main
from kernelscope.engine.step import default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS
from kernelscope.schema.parameters import OddParameter
from kernelscope.teach.manual import allowed
from tests.backends.emulated import needs_compiler
from tests.cli.running import refused, run
from tests.oracle import to_dtype, windows
from tests.paths import ROOT
from tests.patience import PATIENCE
from tests.scripts import run_python

SPECS = list(filters.discover().values())

each_filter = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)


def noise(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(2).integers(0, 256, shape, np.uint8)


@pytest.fixture(autouse=True)
def grey(here: Path) -> None:
    """A grey picture, 30x20 pixels: in.png."""
    PillowImage.fromarray(noise(20, 30)).save("in.png")


def read(name: str) -> NDArray[Any]:
    with PillowImage.open(name) as image:
        return np.asarray(image)


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


def test_apply_filters_the_picture() -> None:
    Path("a folder").mkdir()
    out = "a folder/größe.png"
    said = run("apply mean in.png", out, *["--size", "5", "--border", "wrap", "--level", "serial"])
    cells, _ = windows(read("in.png")[:, :, None], 2, Border.WRAP)
    expected = to_dtype(cells.mean(axis=(3, 4))[:, :, 0], np.dtype(np.uint8))
    np.testing.assert_array_equal(read(out), expected)
    (line,) = said.out.splitlines()
    assert f"{out}: Mean, mask size 5 px, wrap border, CPU serial; 30×20 pixels in " in line


@needs_compiler
def test_an_emulated_run_has_no_time() -> None:
    said = run("apply mean in.png o.png --device=emulated --level=shared")
    assert said.out.rstrip().endswith("Emulated GPU shared memory; 30×20 pixels, not timed")
    assert " ms" not in said.err


@pytest.mark.parametrize("spec", every_filter().values(), ids=lambda spec: spec.id)
def test_help_shows_every_parameter(spec: FilterSpec) -> None:
    text = " ".join(run(f"apply {spec.id.replace('_', '-')} --help").out.split())
    for parameter in spec.parameters:
        option = f"--{parameter.name.replace('_', '-')}"
        assert f"{option} " in text
        assert parameter.help in text
        assert allowed(parameter) in text
        for switch, choice in switches(parameter).items():
            assert f"{switch} the same as {option} {choice.value}" in text


@each_filter
def test_help_is_one_screen_and_all_of_it_on_request(
    spec: FilterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pages = [run(f"apply {spec.id} {word}").out for word in ("--help", "--help-all")]
    option = re.compile(r"^  (?:-\w, )?(--[\w-]+)", re.MULTILINE)
    brief, whole = (set(option.findall(page)) for page in pages)
    assert brief < whole
    assert {"--repeat", "--memory", "--json", "--save-recipe"} <= whole - brief
    assert pages[0].rstrip().endswith(f"--help-all shows {len(whole - brief)} more options.")
    assert len(pages[0].splitlines()) <= 50 + 5 * max(0, len(spec.parameters) - 4)


@each_filter
def test_defaults_can_be_typed(spec: FilterSpec) -> None:
    """An option accepts the default that the help shows, with the same result."""
    options: list[str] = []
    for parameter in spec.parameters:
        options += [f"--{parameter.name.replace('_', '-')}", default_text(parameter)]
    run(f"apply {spec.id} in.png plain.png --quiet")
    run(f"apply {spec.id} in.png typed.png --quiet", *options)
    np.testing.assert_array_equal(read("plain.png"), read("typed.png"))


@pytest.mark.parametrize(
    ("sides", "size"), [("4", (4, 4)), ("3,5", (5, 3)), ("6x3", (3, 6)), ("1 × 4", (4, 1))]
)
def test_masks_of_any_sides_have_a_width_and_a_height(sides: str, size: tuple[int, int]) -> None:
    """Those of SciPy have a height and a width; the library has other filters with such masks."""
    expected = ndimage.median_filter(read("in.png"), size, mode="reflect")
    run("apply median in.png out.png --save-recipe a.json --size", sides)
    np.testing.assert_array_equal(read("out.png"), expected)
    run("apply --recipe a.json in.png out.png")
    np.testing.assert_array_equal(read("out.png"), expected)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("threshold-mean in.png out.png --size 4", "4 is even"),
        ("threshold-mean in.png out.png --size 3,5", "“3,5” is not a whole number"),
        ("mean in.png out.png --size 3,0", "“3,0” is not a whole number"),
        ("mean in.png out.png --size 3x40", "a mask of 40×3 cells is too large"),
        ("median in.png out.png --size 4 --footprint disk", "4×4 is no square"),
        ("mean in.png out.png --size 21 --border valid", "does not fit"),
        ("mean in.png out.png --device cpu --level tuned", "no level “tuned”"),
        ("mean nowhere.png out.png", "nowhere.png"),
        ("mean in.png out.nonsense", "out.nonsense"),
    ],
)
def test_errors_that_the_user_can_mend_are_status_1(line: str, message: str, here: Path) -> None:
    assert message in refused(f"apply {line}")
    assert list(here.iterdir()) == [here / "in.png"]


def test_losing_alpha_needs_consent() -> None:
    PillowImage.fromarray(noise(8, 8, 4)).save("in.png")
    assert "--lossy" in refused("apply mean in.png out.jpg")
    assert not Path("out.jpg").exists()
    run("apply mean in.png out.jpg --lossy")
    assert read("out.jpg").shape == (8, 8, 3)


def test_notices_go_to_stderr() -> None:
    PillowImage.fromarray(noise(8, 8, 4), "CMYK").save("in.tif")
    said = run("apply mean in.tif out.png")
    assert "CMYK" in said.err
    assert "CMYK" not in said.out
    assert run("apply mean in.tif out.png --quiet") == ("", "")


@pytest.mark.slow
def test_verbose_logs_the_stages(here: Path) -> None:
    process = start("apply", "mean", str(here / "in.png"), str(here / "out.png"), "--verbose")
    out, err = process.communicate()
    assert process.returncode == 0
    assert len(out.splitlines()) == 1
    for stage in ("prepare", "compile", "compute", "convert"):
        assert f"{stage}: " in err


def test_gpu_that_cannot_be_used_is_explained() -> None:
    with open_backends() as backends:
        state = backends["gpu"].availability()
    if state.available:
        pytest.skip("this machine has a GPU")
    assert state.summary in refused("apply mean in.png out.png --device gpu")


@pytest.mark.slow
def test_interrupt_leaves_nothing_behind(here: Path) -> None:
    PillowImage.fromarray(noise(3000, 3000)).save("in.png")
    options = ["--size", "99", "--level", "serial", "--verbose"]
    process = start("apply", "mean", str(here / "in.png"), str(here / "out.png"), *options)
    assert process.stderr is not None
    while "compile: " not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = process.communicate(timeout=10 * PATIENCE)
    assert time.monotonic() - begin < PATIENCE / 2  # not to the end of the filter
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(here.iterdir()) == [here / "in.png"]


# list, info, --version ----------------------------------------------------------------


def test_list_as_json() -> None:
    catalogue = json.loads(run("list --json").out)
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


def test_list_for_people() -> None:
    text = run("list").out
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


def test_info_tells_how_to_get_a_gpu_going() -> None:
    text = run("info").out
    missing = installed.missing_parts()
    for name, (purpose, _) in installed.PARTS.items():
        found = f"missing: {missing[name]}" if name in missing else "installed"
        assert f"\n  {name:11}{purpose}; {found}\n" in text
    assert "window" not in missing
    assert f"Python       CPython {sys.version.split()[0]}" in text
    assert f"numpy {np.__version__}" in text
    assert "\nCPU: Processor\n  Name  " in text
    with open_backends() as backends:
        state = backends["gpu"].availability()
    assert state.summary in text
    for number, step in enumerate(state.steps, 1):
        assert f"{number}. {step}" in text


def test_version() -> None:
    assert run("--version").out == f"Kernelscope {kernelscope.__version__}\n"


# The window ---------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["./list"], ["picture.png"], ["picture.png", "list"]])
def test_anything_but_a_command_opens_the_window(
    arguments: list[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("list", "picture.png"):
        (here / name).touch()
    opened: list[Path | None] = []
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("kernelscope.gui.run", lambda *paths: opened.extend(paths) or 7)
    assert main(arguments) == 7
    assert opened == ([None] if not arguments else [Path(each) for each in arguments])


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Open no window but log a line, and remove the handlers of the log afterwards."""

    def open_window(path: Path | None) -> int:
        logging.getLogger("kernelscope.gui").debug("opened %s", path)
        return 0

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("kernelscope.gui.run", open_window)
    logger = logging.getLogger("kernelscope")
    level, before = logger.level, logger.handlers[:]
    yield
    logger.setLevel(level)
    for handler in [each for each in logger.handlers if each not in before]:
        logger.removeHandler(handler)
        handler.close()


@pytest.mark.usefixtures("logs")
def test_the_window_logs_to_a_file() -> None:
    assert run("--log log.txt").err == ""
    line = r"\d{4}-\d\d-\d\d \S+  DEBUG   opened None\n"
    assert re.fullmatch(line, Path("log.txt").read_text())


@pytest.mark.usefixtures("logs")
def test_the_window_logs_to_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's, beside which none is added
    assert run("--debug").err.endswith(" ms  DEBUG   opened None\n")


@pytest.mark.usefixtures("logs")
def test_a_log_that_cannot_be_written() -> None:
    Path("picture.png").write_text("pixels")
    assert "cannot be written: No such file or directory." in refused("--log no/log.txt")
    assert "would overwrite the image" in refused("--log picture.png picture.png")
    Path("loop").symlink_to("loop")
    assert "cannot be written: Too many levels" in refused("--log loop picture.png")
    assert Path("picture.png").read_text() == "pixels"


def test_window_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert "no screen" in refused("")


@pytest.mark.slow
def test_everything_but_the_window_works_without_qt() -> None:
    """One line, with the command that brings it; screens do not matter."""
    code = (
        "import sys; sys.modules |= dict.fromkeys(('PySide6', 'pyqtgraph', 'shiboken6')); "
        "from kernelscope.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )

    def ran(line: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *line.split()]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for line in ("list", "apply negative in.png b.png --quiet"):
        assert ran(line).returncode == 0
    opened = ran("")
    assert opened.returncode == 1
    assert re.fullmatch(
        r"error: The window is not installed: it needs PySide6 and pyqtgraph\. "
        r".*pip install .*window.*, or use the command line: kernelscope --help\.\n",
        opened.stderr,
    )


def test_window_without_the_libraries_of_qt(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_window(path: Path | None) -> int:
        raise ImportError("libEGL.so.1: cannot open shared object file", name="PySide6.QtGui")

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("kernelscope.gui.run", open_window)
    assert "libEGL.so.1" in refused("")


@pytest.mark.parametrize(
    "command", ["", "denoise", "info", "list", "phantom", "warm-up", "completion", "apply mean"]
)
def test_help_fits_into_80_columns(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(f"{command} --help").out.splitlines()
    wide = [line for line in lines if len(line) > 80 and "{" not in line]  # choices do not wrap
    assert wide == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("aply median a.png b.png", "Did you mean apply?"),
        ("Denoise a.png b.png", "Did you mean denoise?"),
        ("bacth", "Did you mean batch or bench?"),
        ("convert a.png b.png", "Use one of apply, denoise, batch"),
        ("doctor", "Did you mean info?"),
        ("filters", "Did you mean list?"),
        ("help", "Did you mean --help?"),
    ],
)
def test_a_command_that_does_not_exist_is_named(line: str, hint: str) -> None:
    error = refused(line, status=2)
    assert error.startswith(f"error: There is no command “{line.split()[0]}”. {hint}")


@pytest.mark.slow
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
    assert run_python(code, env=environment).split()[-1] == "1"


@pytest.mark.slow
def test_a_wrong_value_is_refused_without_loading_devices() -> None:
    code = (
        "import sys; from kernelscope.cli.main import main; "
        "status = main(['apply', 'median', '--size', '4', 'a.png', 'b.png']); "
        "slow = {'numba', 'PIL', 'importlib.metadata', 'kernelscope.backends'}; "
        "print(status, sorted(slow & sys.modules.keys()))"
    )
    assert run_python(code) == "1 []\n"


# Everything else that can happen ------------------------------------------------------


def test_bug_is_owned_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str]) -> int:
        raise RuntimeError("odd")

    monkeypatch.setattr(catalogue, "list_filters", broken)
    error = run("list", status=70).err
    assert "RuntimeError: odd" in error
    assert "bug in Kernelscope" in error


def test_a_package_that_is_not_installed_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str]) -> int:
        raise ModuleNotFoundError("No module named 'imagecodecs'", name="imagecodecs")

    monkeypatch.setattr(catalogue, "list_filters", broken)
    hint = f"Install it: {pip_command('imagecodecs')}"
    expected = f"error: The package imagecodecs is not installed. {hint}\n"
    assert run("list", status=1).err == expected


@pytest.mark.slow
def test_closed_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "main.py", "list", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr


@pytest.mark.slow
def test_terminal_without_unicode() -> None:
    process = start("list", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    out, _ = process.communicate()
    assert process.returncode == 0
    assert "Filters" in out


def test_a_filter_of_pictures_points_to_that_of_volumes() -> None:
    np.save("in.npy", np.arange(512, dtype=np.uint8).reshape(8, 8, 8))
    said = run("apply nlm in.npy out.npy")
    assert "mri-nlm compares voxels of the whole volume" in said.err


def test_commands_leave_no_handlers() -> None:
    loggers = [logging.getLogger(name) for name in ("kernelscope", "PIL", "tifffile")]
    refused("apply mean none.png out.png --quiet")  # tifffile adds its own when it is imported
    before = [each.handlers[:] for each in loggers]
    for _ in range(2):
        refused("apply mean none.png out.png --quiet")
    assert [each.handlers for each in loggers] == before


@pytest.mark.slow
def test_an_error_imports_no_other_filter() -> None:
    """That takes longer than finding the error."""
    faults = {
        "medan a.png b.png": "did you mean median or mean?",
        "median --size 99 a.png b.png": "99 is out of range",
        "median a.png": "give two files",
    }
    program = (
        "import contextlib, sys; from kernelscope.cli.main import main\n"
        f"for line in {list(faults)}:\n"
        "    with contextlib.suppress(SystemExit): main(['apply', *line.split()])\n"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for message in faults.values():
        assert message in done.stderr
    loaded = {name for name in done.stdout.split() if name.startswith("kernelscope.filters.")}
    own = ("kernelscope.filters.median", "kernelscope.filters.shared")
    assert loaded
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
def test_the_error_comes_first_and_alone(line: str, first: str) -> None:
    error = refused(line, status=2)
    assert first in error
    command = "kernelscope" if line.startswith("-") else f"kernelscope {line.split()[0]}"
    assert f" “{command}" in error
    assert error.endswith("--help” lists the options.")


def test_filters_are_listed_in_the_order_of_their_names() -> None:
    entries = json.loads(run("list --json").out)["filters"]
    shown = re.findall(r"^  ([a-z][a-z-]+)  +\S", run("apply --help").out, re.MULTILINE)
    for kind in ("picture", "volume"):
        names = [each["id"] for each in entries if each["kind"] == kind]
        assert names == sorted(names)
        assert len(names) > 2
        assert [each for each in shown if each in names] == names
