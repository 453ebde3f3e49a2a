"""Change a hundred lines, one at a time, and see whether the tests notice.

    python tests/mutations.py                    # all, about half an hour on one core
    python tests/mutations.py --only kernels     # those whose file has this in its path
    python tests/mutations.py --only 37          # one, by its number in the list
    python tests/mutations.py --list             # what there is, and whether each line is there
    python tests/mutations.py --old v1.0.0       # with the tests of another commit

It works in a copy of the checkout. The tests of each change pass without it, or it is reported as
"fails anyway". Ctrl+C stops it; the next call goes on from there, since what was judged is kept in
build/mutations until the file or its tests change (`--again` judges everything). Nothing here is
part of the suite: run it when tests are removed or made quicker.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

KEPT = ROOT / "build" / "mutations"
"""Has what was judged, and the code that the tests compile."""

SECONDS, TIMES_AS_LONG = 60, 10
"""The tests of a change are stopped after these, and so many times as long as they take without
it: it makes them wait for ever."""

APP = "app/kernelscope/"
PICTURES = "tests/contract/test_pictures.py"
EMULATED = "tests/contract/test_emulated.py"
REGIONS = "tests/contract/test_regions.py"


@dataclass(frozen=True)
class Mutation:
    """A change: the text `old`, which is there once, becomes `new`; `tests` are for pytest."""

    file: str
    old: str
    new: str
    tests: str
    kind: str


_LISTED = [
    # --- kernels ---
    ("kernels/common.cuh", "i < 0 ? -1 - i : 2 * n - 1 - i", "i < 0 ? -i : 2 * n - 1 - i",
     f"{EMULATED} -k 'mean-reflect or mask-reflect'", "border"),
    ("kernels/common.cuh", "i < 0 ? -i : 2 * n - 2 - i", "i < 0 ? -i : 2 * n - 1 - i",
     f"{EMULATED} -k 'mean-mirror or mask-mirror'", "border"),
    ("kernels/common.cuh", "return max(0, min(i, n - 1));", "return max(0, min(i, n - 2));",
     f"{EMULATED} -k 'mean-nearest or mask-nearest'", "bound"),
    ("kernels/cells.cuh", "const int rows = min(y + REACH, g.height - 1)",
     "const int rows = min(y + REACH, g.height)", f"{EMULATED} -k 'mean-reduce'", "bound"),
    ("kernels/cells.cuh", "return left[(t + REACH) * STEP]; }", "return left[t + REACH * STEP]; }",
     f"{EMULATED} -k 'mean or laplace'", "wrong stride"),
    ("kernels/levels.cuh", "    __syncthreads();\n    return Tile{samples, top, left};",
     "    return Tile{samples, top, left};", f"{EMULATED} -k 'laplace'", "missing barrier"),
    ("kernels/levels.cuh", "inline void end(const Tile&) { __syncthreads(); }",
     "inline void end(const Tile&) {}", f"{EMULATED} -k 'several_tiles'", "missing barrier"),
    ("kernels/levels.cuh", "rim <= y && y < min(g.last, g.height - rim)",
     "rim <= y && y <= min(g.last, g.height - rim)", f"{EMULATED} -k 'laplace'", "off by one"),
    ("kernels/levels.cuh", "return CHANNELS == 1 && g.hardware_border ? 0 : RADIUS - SHIFT;",
     "return g.hardware_border ? 0 : RADIUS;", f"{EMULATED} -k 'laplace'", "border"),
    ("kernels/levels.cuh", "const int left = place.x - threadIdx.x + SHIFT - RADIUS;",
     "const int left = place.x - threadIdx.x + SHIFT - RADIUS + 1;", f"{EMULATED} -k 'laplace'",
     "off by one"),
    ("kernels/nlm_tuned.cuh", "g.channels % 2 == 0 && blockIdx.z == 0", "g.channels % 2 == 0",
     f"{EMULATED} -k 'errs_nowhere and nlm-'", "race"),
    ("kernels/nlm_tuned.cuh", "output = (Sample)fminf(rintf(mean), SAMPLE_MAX);",
     "output = (Sample)fminf(mean, SAMPLE_MAX);",
     "tests/backends/test_nlm_products.py -k rounded", "rounding"),
    ("kernels/haar.cu", "else if (edge <= search.strongest)", "else if (edge < search.strongest)",
     "tests/backends/test_haar.py", "bound"),
    ("kernels/squared_error.cu", "i += gridDim.x * THREADS", "i += THREADS",
     "tests/backends/test_kernel_bounds.py -k squared", "wrong stride"),
    ("kernels/view.cu", "(height + factor - 1) / factor", "height / factor",
     "tests/backends/test_view.py", "bound"),
    # --- filters ---
    (f"{APP}filters/shared/border_kernels.py", "return i if i < n else 2 * n - 1 - i",
     "return i if i < n else 2 * n - 2 - i", f"{PICTURES} -k 'mean or laplace'", "border"),
    (f"{APP}filters/shared/border_kernels.py", "        return i if i < n else 2 * n - 2 - i",
     "        return i if i < n else 2 * n - 1 - i", f"{PICTURES} -k 'mean or laplace'", "border"),
    (f"{APP}filters/shared/border_kernels.py", "return 0 if i < 0 else n - 1",
     "return 0 if i < 0 else n - 2", f"{PICTURES} -k 'mean or laplace'", "bound"),
    (f"{APP}filters/shared/border_kernels.py",
     "if twice > denominator or (twice == denominator and quotient & 1):",
     "if twice >= denominator:", f"{PICTURES} -k 'mean or mask'", "rounding"),
    (f"{APP}filters/shared/correlation.py",
     "magnitude < 2 ** (24 if power_of_two else 23) - 2", "magnitude < 2 ** 27",
     "tests/filters/test_exactness.py", "wrong type"),
    (f"{APP}filters/shared/correlation.py",
     "y > first and (border != REDUCE or radius < y < height - radius)",
     "y > first", f"{PICTURES} -k 'weighted_mean'", "border"),
    (f"{APP}filters/shared/box.py", "np.uint16 if size <= _LARGEST_16_BIT else np.int32",
     "np.uint16", "tests/filters/test_exactness.py -k fast_sums", "wrong type"),
    (f"{APP}filters/shared/box.py", "if abs(total - count * pixel) <= reach * count:",
     "if abs(total - count * pixel) < reach * count:",
     f"{PICTURES} tests/filters/test_threshold_mean.py -k 'threshold_mean'", "bound"),
    (f"{APP}filters/sobel/cpu.py", "gy = abs(g + 2 * h + i - a - 2 * b - c)",
     "gy = abs(g + 2 * h + i - a - 2 * b + c)", f"{PICTURES} -k sobel", "sign"),
    (f"{APP}filters/sobel/cpu.py", "        place = turn - place",
     "        place = turn + place", f"{PICTURES} -k sobel", "sign"),
    (f"{APP}filters/rotating_mask.py", "variance = 9 * squares - total * total",
     "variance = 8 * squares - total * total", f"{PICTURES} -k rotating", "wrong constant"),
    (f"{APP}filters/ripple.py", "down = np.float32(y) - half * np.float32(height - 1)",
     "down = np.float32(y) - half * np.float32(height)", f"{PICTURES} -k ripple", "off by one"),
    (f"{APP}filters/shared/non_local.py", "margin = len(_DB2) - 1", "margin = len(_DB2)",
     "tests/filters/test_nlm_strength.py", "off by one"),
    # --- engine, images, judging ---
    (f"{APP}engine/region.py", "start, stop = first - radius - more, first + count + radius + more",
     "start, stop = first - radius - more, first + count + radius + more - 1",
     f"{REGIONS} -k 'laplace or mean'", "bound"),
    (f"{APP}engine/region.py", "-(-stop // grid) * grid", "stop // grid * grid",
     f"{REGIONS} -k whole_tiles", "rounding"),
    (f"{APP}engine/region.py", "self.left + self.width <= shape[1]",
     "self.left + self.width <= shape[0]", f"{REGIONS} -k refused", "wrong axis"),
    (f"{APP}engine/area.py", "across * across + along * along <= 1",
     "across * across + along * along <= 2", "tests/engine/test_area.py", "bound"),
    (f"{APP}engine/area.py", "crossed = (min(y, next_y) <= rows) & (rows < max(y, next_y))",
     "crossed = (min(y, next_y) + 1 <= rows) & (rows < max(y, next_y))",
     "tests/gui/test_measurements.py", "off by one"),
    (f"{APP}engine/costs.py", "min(sizes) / REACH <= samples <= max(sizes) * REACH",
     "min(sizes) / REACH <= samples", "tests/engine/test_costs.py", "bound"),
    (f"{APP}engine/costs.py", "v = [n / max(t, 1e-9) for n, t in medians]",
     "v = [n / 1e3 / max(t, 1e-9) for n, t in medians]", "tests/engine/test_costs.py",
     "wrong unit"),
    (f"{APP}engine/denoising.py", "planes = colours(image.planes)",
     "planes = image.planes", "tests/engine/test_denoising.py -k alpha", "lost case"),
    (f"{APP}engine/memo.py",
     "        self._entries.remove(entry)\n        self._entries.append(entry)\n        return",
     "        return", "tests/engine/test_memo.py", "wrong order"),
    (f"{APP}engine/steps.py", "if number <= len(done):", "if number < len(done):",
     "tests/engine/test_sequence.py -k known", "off by one"),
    (f"{APP}engine/steps.py", "(number - 1 + fraction) / steps", "(number + fraction) / steps",
     "tests/engine/test_chain.py", "off by one"),
    (f"{APP}images/judging/noise.py", 'np.pad(plane, 1, mode="reflect")',
     'np.pad(plane, 1, mode="edge")', "tests/engine/test_denoising.py -k edge", "border"),
    (f"{APP}images/levels.py", "math.isfinite(levels.span) and levels.span > 0", "levels.span > 0",
     "tests/cli/test_white.py -k end", "bound"),
    (f"{APP}images/reduction.py", "bottom = min(top + factor, lines.shape[0])",
     "bottom = min(top + factor, lines.shape[0] - 1)", "tests/images/test_reduction.py", "bound"),
    # --- files, batch, lazy ---
    (f"{APP}files/depth.py", "return ((over + white // 2) // white).astype(pixels.dtype)",
     "return (over // white).astype(pixels.dtype)", "tests/files -k 'alpha or depth'", "rounding"),
    (f"{APP}files/depth.py", "(samples.astype(np.uint32) * numerator + denominator // 2)",
     "(samples * numerator + denominator // 2)",
     "tests/files/test_formats.py tests/files/test_jpeg.py tests/files/test_tiff.py",
     "wrong type"),
    (f"{APP}files/pictures/bmp.py", "stride = (header.width * header.bits + 31) // 32 * 4",
     "stride = (header.width * header.bits + 7) // 8", "tests/files/test_bmp.py", "wrong stride"),
    (f"{APP}files/pictures/bmp.py", "return written if y == height - 1 and x >= width else -1",
     "return written", "tests/files/test_bmp.py", "lost error"),
    (f"{APP}files/pictures/netpbm.py", "if samples.max() > maximum:", "if False:",
     "tests/files/test_reading.py", "lost error"),
    (f"{APP}files/pictures/fax.py", "if target <= at or target > width:", "if target > width:",
     "tests/files/test_fax.py", "lost error"),
    (f"{APP}base/atomic.py",
     "        temporary.unlink(missing_ok=True)\n        raise", "        raise",
     "tests/test_atomic.py", "left behind"),
    (f"{APP}base/atomic.py", "if len(content) > most_bytes:", "if len(content) > most_bytes + 1:",
     "tests/test_atomic.py", "off by one"),
    (f"{APP}big/batch/conductor.py",
     "                finally:\n                    free.put(backends)",
     "                finally:\n                    pass", "tests/batch/test_conductor.py",
     "not given back"),
    (f"{APP}big/batch/conductor.py", "if there and not overwrite:",
     "if there and overwrite:", "tests/cli/test_batch.py -k overwritten", "sign"),
    (f"{APP}base/once.py", "            with lock:\n                if key",
     "            if True:\n                if key", "tests/test_once.py", "missing lock"),
    (f"{APP}big/batch/journal.py", "if atomic.lock(self._file) is atomic.Lock.TAKEN:", "if False:",
     "tests/batch/test_journal.py -k one_batch", "missing lock"),
    (f"{APP}big/batch/journal.py", "self._begun.pop(name, None)", "pass",
     "tests/batch/test_journal.py", "lost case"),
    (f"{APP}big/lazy/blocks.py", "(min(step, side - start) for side, start, step in ends)",
     "(step for side, start, step in ends)",
     "tests/lazy/test_filtered.py -k blocks_at_each_border", "bound"),
    # --- the window: models ---
    *[
        (f"{APP}gui/model/{file}.py", old, new, f"tests/gui/{tests}", kind)
        for file, old, new, tests, kind in (
            ("regions", "return left if handle % 2 else right, top if handle > 1 else bottom",
             "return right if handle % 2 else left, top if handle > 1 else bottom",
             "test_measurements.py", "sign"),
            ("regions", "(left, top), (max(right, left + 1), max(bottom, top + 1))",
             "(left, top), (right, bottom)", "test_measurements.py", "bound"),
            ("regions", "rest[min(number, len(rest) - 1)]", "rest[min(number, len(rest))]",
             "test_measurements.py", "off by one"),
            ("measurements",
             "upper = (1 - across) * planes[top, left] + across * planes[top, right]",
             "upper = across * planes[top, left] + (1 - across) * planes[top, right]",
             "test_measurements.py", "sign"),
            ("measurements", "return math.hypot((end_x - x) * across, (end_y - y) * down)",
             "return math.hypot(end_x - x, end_y - y)", "test_measurements.py", "wrong unit"),
            ("measurements", "values.std(ddof=1)", "values.std()", "test_measurements.py",
             "wrong constant"),
            ("measurements", "10 * math.log10(white * white / error)",
             "10 * math.log10(white / error)", "test_measurements.py", "wrong unit"),
            ("display", "narrowest = max(abs(low), abs(high), 1e-6) * 1e-6", "narrowest = 0.0",
             "test_display.py", "bound"),
            ("display", "(self.low, self.high, self.gamma) == (0, 255, 1)",
             "(self.low, self.high) == (0, 255)", "test_display.py", "lost case"),
            ("display", "return PaneSide.INPUT if self.linked and alike else side",
             "return PaneSide.INPUT if self.linked else side", "test_display.py", "lost case"),
            ("batch_run", "if done < _FEWEST or not self.left:", "if not self.left:",
             "test_batch_queue.py", "bound"),
            ("gallery", "(run in unsaved, run.starred, run.number)", "(run in unsaved, run.number)",
             "test_gallery.py", "lost case"),
            ("gallery", "other.number >= run.number or", "other.number > run.number or",
             "test_gallery.py", "off by one"),
            ("documents", "return self._open[min(place, len(self._open) - 1)]",
             "return self._open[max(place - 1, 0)]", "test_documents.py", "off by one"),
            ("freshness", "if shown.reduction > 1 or shown.stand_in:", "if shown.stand_in:",
             "test_freshness.py", "untrue"),
            ("freshness", "scale = min(1.0, math.sqrt(pixels / (visible.height * visible.width)))",
             "scale = min(1.0, pixels / (visible.height * visible.width))", "test_freshness.py",
             "wrong unit"),
            ("history", "following = self._moments[self._place + 1 :]",
             "following = self._moments[self._place :]", "test_history.py", "off by one"),
            ("history", "self.bytes > MOST_BYTES", "self.bytes > 2 * MOST_BYTES",
             "test_history.py", "bound"),
            ("pipeline", "wanted = self.place - (place < self.place)", "wanted = self.place",
             "test_pipeline.py", "off by one"),
            ("pipeline", "or sum(each.on for each in self.steps) > 1",
             "or sum(each.on for each in self.steps) > 0", "test_pipeline.py", "bound"),
            ("histogram_plot", 'np.searchsorted(self.edges, value, side="right")',
             'np.searchsorted(self.edges, value, side="left")', "test_histogram_plot.py",
             "off by one"),
            ("runs", "if run.source() is request.source", "if run.source() is not None",
             "test_ladder_model.py", "lost case"),
            ("ladder", "difference.largest <= ROUNDING * most", "difference.largest <= most",
             "test_ladder_model.py", "wrong unit"),
            ("times", "return (max(self.times) - min(self.times)) / 2 / max(self.median, 1e-12)",
             "return (max(self.times) - min(self.times)) / max(self.median, 1e-12)",
             "test_times.py", "wrong unit"),
            ("runs", "first = (result.first or key not in self._seen) and not slow",
             "first = result.first and not slow", "test_runs_panel.py", "lost case"),
            ("slice_drawing", "first = index - (slices - 1) // 2", "first = index - slices // 2",
             "test_slice_drawing.py", "off by one"),
            ("shear_warp", "range(count - 1, -1, -1) if toward[across] > 0",
             "range(count - 1, -1, -1) if toward[across] < 0", "test_shear_warp.py", "sign"),
            ("slice_drawing", "seen = (np.abs(change) >= self.threshold) & (change != 0)",
             "seen = (np.abs(change) > self.threshold) & (change != 0)", "test_slice_drawing.py",
             "bound"),
            ("volume_files", "first.spacing == second.spacing and np.array_equal",
             "np.array_equal", "test_together.py", "lost case"),
        )
    ],
    # --- the window: canvas, panels, threads ---
    *[
        (f"{APP}gui/{file}.py", old, new, f"tests/gui/{tests}", kind)
        for file, old, new, tests, kind in (
            ("model/camera", "return min(max(centre, length / 2), size - length / 2)",
             "return max(centre, length / 2)", "test_camera.py", "bound"),
            ("viewer/layer", "middle = QPointF(x + 0.5, y + 0.5)",
             "middle = QPointF(x + 0.5, y - 0.5)", "test_layer.py",
             "off by one"),
            ("viewer/layer", "return range(max(0, first), min(length, last))",
             "return range(max(0, first + 2), min(length, last))", "test_layer.py", "bound"),
            ("session/session", "and self._wished.device is Device.EMULATED:", "and False:",
             "test_session.py -k emulated", "lost case"),
            ("session/session", "if self._within is not None and area is not None:",
             "if area is not None:", "test_session.py -k region", "lost case"),
            ("session/subject", "if (at_work, compiling) != (self.at_work, self.compiling):",
             "if at_work != self.at_work:", "test_session.py -k work_is_told", "lost case"),
            ("model/figure", "(math.ceil(each - offset) for each in seen[2:])",
             "(math.floor(each - offset) for each in seen[2:])", "test_session.py -k part_in_view",
             "rounding"),
            ("session/canvas_view", 'image is not None and dtype_of(image).kind in "iu"',
             "image is not None", "test_session.py -k whole_numbers", "lost case"),
            ("widgets/form", "parameter.slider or (parameter.minimum, parameter.maximum)",
             "(parameter.minimum, parameter.maximum)", "test_controls.py", "bound"),
            ("widgets/form", "value = self._low + (self._high - self._low) * share",
             "value = (self._high - self._low) * share", "test_controls.py", "wrong unit"),
            ("work/tasks", "if task is None or event.request is not task.work:", "if task is None:",
             "test_tasks.py", "lost case"),
            ("tools/picture_pair", "if each <= likely) / 2.0**rounds",
             "if each < likely) / 2.0**rounds", "test_blind_test.py", "bound"),
            ("work/background", "return self._turn.isActive() or self._timer.isActive()",
             "return self._timer.isActive()", "test_later.py", "lost case"),
            ("window/steps", "inside = pipeline is not None and 0 <= place < len(pipeline.steps)",
             "inside = pipeline is not None and 1 <= place < len(pipeline.steps)", "test_steps.py",
             "off by one"),
            ("window/run_shelf", "rest[min(min(places), len(rest) - 1)] if rest",
             "rest[0] if rest", "test_run_shelf.py", "wrong place"),
        )
    ],
]  # fmt: skip

MUTATIONS = [Mutation(*each) for each in _LISTED]


class Copy:
    """A copy of the checkout in which lines are changed and tests run."""

    def __init__(self, folder: Path, old: str) -> None:
        self.folder, self._results = folder, dict[str, tuple[str, str, float]]()
        for name in ("app", "tests", "kernels", "resources", "main.py", "pyproject.toml", ".ci"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        for path in (*ROOT.glob("*.md"), *ROOT.glob("*.cff"), ROOT / "LICENSE"):
            shutil.copy(path, folder)
        builds = KEPT / "tests"  # kept by content
        builds.mkdir(parents=True, exist_ok=True)
        (folder / "build").mkdir()
        (folder / "build" / "tests").symlink_to(builds)
        if old:
            shutil.rmtree(folder / "tests")
            archive = ("git", "archive", "--format=tar", old, "tests")
            text = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
            subprocess.run(("tar", "x", "-C", folder), input=text, check=True)

    def run(self, tests: str, seconds: float | None = None) -> tuple[str, str]:
        """Return "passes", "fails" or, after `seconds`, "hangs", and the last line."""
        command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider {self._present(tests)}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        environment = (
            {"XDG_CACHE_HOME": str(KEPT / "cache")}
            | kept
            | {
                "QT_QPA_PLATFORM": "offscreen",
                "PYTHONPATH": os.pathsep.join(
                    [str(self.folder / "app"), str(self.folder), os.environ.get("PYTHONPATH", "")]
                ).rstrip(os.pathsep),
            }
        )
        program = subprocess.Popen(
            command,
            shell=True,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = program.communicate(timeout=seconds)
        except BaseException as error:  # and the programs that it has started end with it
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                return "hangs", f"after {seconds:.0f} s"
            raise
        lines = output.strip().splitlines() or ["no output"]
        if program.returncode in (1, 2):  # a test fails, or cannot be collected
            failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
            return "fails", (failed or lines)[-1].partition(" - ")[0]
        return ("passes" if program.returncode == 0 else "has no such test"), lines[-1]

    def _present(self, tests: str) -> str:
        """Return the selection; in old commits two modules checked kernels."""
        checked = "tests/contract/test_checked.py"
        is_old = EMULATED in tests and (self.folder / checked).exists()
        return f"{checked} {tests}" if is_old else tests

    def key(self, mutation: Mutation) -> str:
        """Return a name for a change of these sources with these tests."""
        digest = hashlib.sha256(repr(mutation).encode())
        for name in (mutation.file, *_files(mutation.tests)):
            path = self.folder / name
            digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()[:24]

    def without(self, tests: str) -> tuple[str, str, float]:
        """Return how the tests of a change end without it, which is seen once, and the seconds."""
        if tests not in self._results:
            start = time.monotonic()
            self._results[tests] = (*self.run(tests), time.monotonic() - start)
        return self._results[tests]

    def judge(self, mutation: Mutation) -> tuple[str, str]:
        """Return the word for a change, and the test that noticed it."""
        path = self.folder / mutation.file
        if problem := problem_of(mutation, self.folder):
            return "gone", problem
        before, said, seconds = self.without(mutation.tests)
        if before != "passes":
            return f"{before} anyway", said
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            found, line = self.run(mutation.tests, SECONDS + TIMES_AS_LONG * seconds)
        finally:
            path.write_text(text, encoding="utf-8")
        return ("MISSED" if found == "passes" else "caught"), line


def _files(tests: str) -> list[str]:
    """Return the files of tests in a selection for pytest."""
    return [word.partition("::")[0] for word in tests.split(" ") if "/" in word]


class Judged:
    """The words for changes that were judged, in a file."""

    def __init__(self, again: bool) -> None:
        self._path = KEPT / "judged.json"
        there = self._path.exists() and not again
        self._words: dict[str, tuple[str, str, float]] = (
            json.loads(self._path.read_text(encoding="utf-8")) if there else {}
        )

    def judge(self, mutation: Mutation, copy: Copy) -> tuple[str, str, float]:
        """Return the word for a change, the test that noticed it, and the seconds that it took."""
        key = copy.key(mutation)
        if self._words.get(key, ("MISSED",))[0] != "caught":
            start = time.monotonic()
            word, line = copy.judge(mutation)
            self._words[key] = word, line, round(time.monotonic() - start, 1)
            written = self._path.with_suffix(".part")  # it may be stopped at any moment
            written.write_text(json.dumps(self._words, indent=1), encoding="utf-8")
            written.replace(self._path)
        return self._words[key]


def problem_of(mutation: Mutation, folder: Path = ROOT) -> str:
    """Return why a change cannot be made; nothing if it can."""
    path = folder / mutation.file
    for each in (mutation.file, *_files(mutation.tests)):
        if not (folder / each).exists():
            return f"{each} is gone"
    count = path.read_text(encoding="utf-8").count(mutation.old)
    return "" if count == 1 else f"the text is there {count} times"


def main() -> int:
    """Print a line for each change; return 1 if one was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--only", default="", help="of those files whose path has this, or a number"
    )
    parser.add_argument("--old", default="", metavar="COMMIT", help="use the tests of a commit")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--again", action="store_true", help="those that were judged before too")
    given = parser.parse_args()
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="kernelscope-mutations-") as name:
        copy = None if given.list else Copy(Path(name), given.old)
        judged = Judged(given.again)
        for number, mutation in enumerate(MUTATIONS, start=1):
            if given.only != str(number) and given.only not in mutation.file:
                continue
            word, line, seconds = (
                judged.judge(mutation, copy) if copy else (problem_of(mutation) or "there", "", 0)
            )
            counts[word] = counts.get(word, 0) + 1
            old, new = (text.strip().splitlines()[0] for text in (mutation.old, mutation.new))
            took = f"{seconds:4.0f} s"
            print(f"{number:3} {word:13} {took} {mutation.file} ({mutation.kind})", flush=True)
            print(f"      - {old}\n      + {new}\n      {line}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return int("MISSED" in counts)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print("stopped; the next call goes on from here", file=sys.stderr)
