"""Hot pixels: samples that a sensor made too bright or too dark get the values around them.

Dark samples are the hot ones of the negative, so only these are explained. A sample is hot if it is
above the brightest of the 16 samples two pixels away, by more than `contrast` times the range of
these. It has to be

- sharp: none of the eight next to it rises 0.3 times as far, and the rule above holds for all 24.
  The optics draw no point like that: a star as wide as 1.5 pixels raises the four next to its
  middle 0.37 times as far. Or
- of one colour: the others rise at most 0.12 times as far, so that demosaicing spread one that was
  sharp. All of its 3×3 samples that rise by more than 0.08 times as far are mended then.

Where a colour of a pixel is sharp, the others are mended with it if they are above all 24, however
little: of a grey dot each rises as far as the picture below leaves it room.

A mended sample is on the line between the two next ones that are not, along the axis or diagonal on
which these differ least. For example, with a contrast of 1.5:

    10 11 12
    10 90 12    90 - 12 = 78 > 1.5 * 2: hot, and becomes 11, as the two above and below it
    10 11 12

Where two samples mend the same one, the first one decides. The order of operations is part of the
contract: doubles, without multiply-adds that round once, so that every backend finds the same
samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import MIRROR
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.plain import cell, gather, interior
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import (
    BenchDefaults,
    Cpu,
    CpuPass,
    CpuTask,
    Disturbance,
    FilterSpec,
    Remedy,
    Unit,
)
from kernelscope.schema.launch import BLOCK, Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import FloatParameter
from kernelscope.schema.samples import colour_count, white_level

_SHARP, _COLOURED, _SPREAD = 0.3, 0.12, 0.08
"""Shares of how far a hot sample rises, see above. With 0.5 for the second, demosaiced pictures
without hot pixels have up to twice as many, with 0.12 five in six of real ones are found still."""

_LEAST = 0.01  # of white: in flat areas nothing differs, and each step of a byte would be hot

_BESIDE, _RING = np.zeros((5, 5), bool), np.ones((5, 5), bool)
_BESIDE[1:4, 1:4], _RING[1:4, 1:4] = True, False
_BESIDE[2, 2] = False

Numbers = NDArray[np.float64]


class Hot(NamedTuple):
    """Hot and dark samples of a picture."""

    places: tuple[NDArray[np.intp], ...]  # rows, columns and channels
    signs: Numbers  # -1 of dark ones
    rises: Numbers  # how far they are above the brightest sample two pixels away
    reaches: NDArray[np.intp]  # how far away the samples are that are not mended: 1 or 2
    around: Numbers  # shape (samples, 5, 5): of the negative for dark ones


def find_hot(wide: NDArray[Any], contrast: float, least: float) -> Hot:
    """Return the hot and dark samples of a picture.

    - `wide`: shape (height + 4, width + 4, colours). The picture, with two pixels on each side.
    - `least`: how far they rise, or fall, at least.
    """
    height, width = wide.shape[0] - 4, wide.shape[1] - 4
    cells = [wide[s : s + height, t : t + width] for s, t in np.argwhere(_RING)]
    high, low = cells[0].copy(), cells[0].copy()
    for each in cells[1:]:
        np.maximum(high, each, out=high)
        np.minimum(low, each, out=low)
    inside = wide[2:-2, 2:-2]
    places = np.nonzero((inside > high) | (inside < low))
    brightest, darkest = high[places].astype(np.float64), low[places].astype(np.float64)
    middle = inside[places].astype(np.float64)
    signs = np.where(middle > brightest, 1.0, -1.0)
    with np.errstate(invalid="ignore"):  # of infinite samples
        up = np.where(signs > 0, middle - brightest, darkest - middle)
        apart = (up > least) & (up > contrast * (brightest - darkest))
        y, x, c = places = tuple(each[apart] for each in places)
        up, signs, number = up[apart], signs[apart], np.arange(np.count_nonzero(apart))
        windows = np.lib.stride_tricks.sliding_window_view(wide, (5, 5), (0, 1))
        of_all = windows[y, x] * signs[:, None, None, None]
        own = of_all[number, c]
        middle, beside = own[:, 2, 2], own[:, _BESIDE].max(1, initial=-np.inf)
        others = own[:, _BESIDE | _RING]
        most, darkest = others.max(1, initial=-np.inf), others.min(1, initial=np.inf)
        sharp = beside - (middle - up) < _SHARP * up
        sharp &= middle - most > contrast * (most - darkest)
        others_up = of_all[:, :, 2, 2] - of_all[:, :, _RING].max(2, initial=-np.inf)
    others_up[number, c] = -np.inf
    coloured = (wide.shape[2] == 3) & (others_up.max(1, initial=-np.inf) <= _COLOURED * up)
    hot = (beside <= middle) & (sharp | coloured)
    reaches = np.where(sharp, 1, 2)
    return Hot(tuple(each[hot] for each in places), signs[hot], up[hot], reaches[hot], own[hot])


def _joined(hot: Hot, wide: NDArray[Any]) -> Hot:
    """Return `hot` and the samples that are mended with another colour of their pixel."""
    shape = wide.shape[0] - 4, wide.shape[1] - 4, wide.shape[2]
    known, sharp = np.zeros(shape, bool), hot.reaches == 1
    known[hot.places] = True
    y, x, signs = hot.places[0][sharp], hot.places[1][sharp], hot.signs[sharp]
    windows = np.lib.stride_tricks.sliding_window_view(wide, (5, 5), (0, 1))
    found = [hot]
    for c in range(shape[2]):
        around = windows[y, x, c] * signs[:, None, None]
        others = around[:, _BESIDE | _RING]
        peaks = (others < around[:, 2, 2, None]).all(1) & np.isfinite(others).all(1)
        peaks &= ~known[y, x, c]
        number = np.count_nonzero(peaks)
        ones = np.ones(number, np.intp)
        places = y[peaks], x[peaks], c * ones
        found.append(Hot(places, signs[peaks], np.zeros(number), ones, around[peaks]))
    all_places, *rest = zip(*found, strict=True)
    joined = tuple(np.concatenate(each) for each in zip(*all_places, strict=True))
    return Hot(joined, *(np.concatenate(each) for each in rest))


def _between(around: Numbers, reach: int, s: int, t: int) -> Numbers:
    """Return the mended samples of `around`, `s` below and `t` right of hot ones."""
    near, far = 2 - reach, 2 + reach
    ends = [
        (around[:, near, 2 + t], around[:, far, 2 + t], (reach + s) / (2 * reach)),
        (around[:, 2 + s, near], around[:, 2 + s, far], (reach + t) / (2 * reach)),
    ]
    if s == t == 0:
        ends += [(around[:, near, near], around[:, far, far], 0.5)]
        ends += [(around[:, near, far], around[:, far, near], 0.5)]
    differ = np.array([np.abs(b - a) for a, b, _ in ends])
    values = np.array([a + (b - a) * share for a, b, share in ends])
    return np.asarray(values[differ.argmin(0), np.arange(len(around))])


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    source = task.source
    height, width, channels = source.shape
    finish, colours = Finish.of(source.dtype, np.float64), colour_count(channels)
    output = source[start:stop].copy()
    wide = uncompiled.cells(task, 3, start, stop).samples[:, 1:-1, :colours]
    least = _LEAST * white_level(source.dtype)
    hot = _joined(find_hot(wide, task.parameters["contrast"], least), wide)
    rows, columns, channel = hot.places
    rows = rows + start - 1
    for s, t in product((-1, 0, 1), repeat=2):
        for reach in (1, 2) if s == t == 0 else (2,):
            y, x = rows + s, columns + t
            chosen = (hot.reaches == reach) & (rows >= 0) & (rows < height)
            chosen &= (y >= start) & (y < stop) & (x >= 0) & (x < width)
            around = hot.around[chosen]
            values = _between(around, reach, s, t)
            raised = around[:, 2 + s, 2 + t] - values > _SPREAD * hot.rises[chosen]
            y, x, c, sign = (each[chosen][raised] for each in (y, x, channel, hot.signs))
            output[y - start, x, c] = uncompiled.settled(sign * values[raised], finish)
    return output


@inlined.plain
def stands_out(
    samples: Line,
    corner: Index,
    pitch: Index,
    step: Index,
    sign: Index,
    contrast: Number,
    least: Number,
) -> Any:
    """Whether a sample is far above those two pixels away, or below them with a `sign` of -1; the
    first of the 5×5 is at `corner`."""
    middle = sign * cell(samples, corner + 2 * (pitch + step))
    high = low = sign * cell(samples, corner)
    for s in range(5):
        for t in range(0, 5, 1 if s % 4 == 0 else 4):
            value = sign * cell(samples, corner + s * pitch + t * step)
            if not value < middle:
                return False
            high = max(high, value)
            low = min(low, value)
    up = np.float64(middle) - np.float64(high)
    return up > least and up > contrast * (np.float64(high) - np.float64(low))


@kernel.plain
def reach_of(windows: Array, c: Index, colours: Index, contrast: Number) -> Any:
    """Return how far from a sample that stands out the next ones are that are not mended, 1 or 2,
    and how far it rises; 0 for the first where it is not hot.

    - `windows`: shape (3, 25). The 5×5 samples around it in each colour.
    """
    own = windows[c]
    middle, high = own[12], own[0]
    beside, most, least = own[6], own[0], own[0]
    for i in range(25):
        value = own[i]
        if i // 5 % 4 == 0 or i % 5 % 4 == 0:
            high = max(high, value)
        elif i != 12:
            if not value <= middle:
                return 0, 0.0
            beside = max(beside, value)
        if i != 12:
            most, least = max(most, value), min(least, value)
    up = middle - high
    if beside - (middle - up) < _SHARP * up and middle - most > contrast * (most - least):
        return 1, up
    if colours < 3:
        return 0, up
    for k in range(colours):
        high = -np.inf
        for i in range(25):
            if i // 5 % 4 == 0 or i % 5 % 4 == 0:
                value = windows[k, i]
                high = value if value > high or value != value else high
        if k != c and not windows[k, 12] - high <= _COLOURED * up:
            return 0, up
    return 2, up


@kernel.plain
def between(around: Line, reach: Index, s: Index, t: Index) -> Any:
    """As `_between`, of one."""
    near, far = 2 - reach, 2 + reach
    nearest, found = np.inf, 0.0
    for i in range(4 if s == t == 0 else 2):
        if i == 0:
            a, b, place = around[5 * near + 2 + t], around[5 * far + 2 + t], s
        elif i == 1:
            a, b, place = around[5 * (2 + s) + near], around[5 * (2 + s) + far], t
        elif i == 2:
            a, b, place = around[6 * near], around[6 * far], 0
        else:
            a, b, place = around[5 * near + far], around[5 * far + near], 0
        if abs(b - a) < nearest:
            nearest = abs(b - a)
            found = a + (b - a) * ((reach + place) / (2 * reach))
    return found


@kernel.plain
def is_peak(around: Line) -> Any:
    """Whether the middle of 5×5 samples is above the others, and these are finite."""
    above = True
    for i in range(25):
        above &= i == 12 or -np.inf < around[i] < around[12]
    return above


@kernel.plain
def mend(
    source: Plane,
    output: Plane,
    y: Index,
    x: Index,
    c: Index,
    windows: Array,
    contrast: Number,
    least: Number,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """Mend a sample if it is hot or dark, and those around it and in its pixel, in the rows from
    `start` to `stop`."""
    _, width, channels = source.shape
    colours = 1 if channels < 3 else 3
    gather(source, y, x, c, 2, MIRROR, windows[c])
    sign = 1 if stands_out(windows[c], 0, 5, 1, 1, contrast, least) else -1
    if sign < 0 and not stands_out(windows[c], 0, 5, 1, sign, contrast, least):
        return
    for k in range(colours):
        gather(source, y, x, k, 2, MIRROR, windows[k])
        for i in range(25):
            windows[k, i] *= sign
    reach, up = reach_of(windows, c, colours, contrast)
    for s in range(max(1 - reach, start - y, -y), min(reach, stop - y)):
        for t in range(max(1 - reach, -x), min(reach, width - x)):
            value = between(windows[c], reach, s, t)
            if windows[c, 12 + 5 * s + t] - value > _SPREAD * up:
                output[y + s, x + t, c] = settle(sign * value, finish)
    if reach != 1 or not start <= y < stop:
        return
    for k in range(colours):
        if k == c or not is_peak(windows[k]):
            continue
        apart = stands_out(windows[k], 0, 5, 1, 1, contrast, least)
        if apart and reach_of(windows, k, colours, contrast)[0] > 0:
            continue  # hot itself
        output[y, x, k] = settle(sign * between(windows[k], 1, 0, 0), finish)


@kernel.plain
def serial(
    source: Plane,
    output: Plane,
    contrast: Number,
    least: Number,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops, from the end: the first of several samples has the last word."""
    height, width, channels = source.shape
    colours = 1 if channels < 3 else 3
    samples, pitch = source.reshape(source.size), width * channels
    windows = np.empty((3, 25), np.float64)
    for y in range(start, stop):
        for x in range(width):
            for c in range(channels):
                output[y, x, c] = source[y, x, c]
    for y in range(min(stop, height - 1), max(start - 1, 0) - 1, -1):
        first, last = interior(y, 2, height, width, MIRROR)
        for x in range(width - 1, -1, -1):
            for c in range(colours):
                if first <= x < last:
                    corner = (y - 2) * pitch + (x - 2) * channels + c
                    if not (
                        stands_out(samples, corner, pitch, channels, 1, contrast, least)
                        or stands_out(samples, corner, pitch, channels, -1, contrast, least)
                    ):
                        continue
                mend(source, output, y, x, c, windows, contrast, least, finish, start, stop)


@kernel
def keep_apart(own: Line, others: Line, peaks: Line, pits: Line) -> None:
    for k in range(peaks.size):
        peaks[k] &= others[k] < own[k]
        pits[k] &= others[k] > own[k]


@kernel
def find_peaks(
    samples: Line, corner: Index, pitch: Index, step: Index, peaks: Line, pits: Line
) -> None:
    """Write which samples of a row are above, or below, all that are two pixels away."""
    own = samples[corner + 2 * (pitch + step) :]
    peaks[:] = True
    pits[:] = True
    for s in range(5):
        for t in range(0, 5, 1 if s % 4 == 0 else 4):
            keep_apart(own, samples[corner + s * pitch + t * step :], peaks, pits)


@kernel
def parallel(
    source: Plane,
    output: Plane,
    contrast: Number,
    least: Number,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """As `serial`, but a row at once is compared with the samples two pixels away."""
    height, width, channels = source.shape
    colours = 1 if channels < 3 else 3
    samples, pitch = source.reshape(source.size), width * channels
    windows = np.empty((3, 25), np.float64)
    peaks, pits = np.ones(pitch, np.bool_), np.ones(pitch, np.bool_)
    output[start:stop] = source[start:stop]
    for y in range(min(stop, height - 1), max(start - 1, 0) - 1, -1):
        first, last = interior(y, 2, height, width, MIRROR)
        corner = (y - 2) * pitch
        if first < last:
            start_, stop_ = first * channels, last * channels
            find_peaks(samples, corner, pitch, channels, peaks[start_:stop_], pits[start_:stop_])
        else:
            peaks[:] = True
            pits[:] = True
        for k in range(pitch - 1, -1, -1):
            if not (peaks[k] or pits[k]):
                continue
            x, c = k // channels, k % channels
            if c >= colours:
                continue
            if first <= x < last:
                at, sign = corner + k - 2 * channels, 1 if peaks[k] else -1
                if not stands_out(samples, at, pitch, channels, sign, contrast, least):
                    continue
            mend(source, output, y, x, c, windows, contrast, least, finish, start, stop)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output = task.source, task.output
    limits = task.parameters["contrast"], _LEAST * white_level(source.dtype)
    finish = Finish.of(source.dtype, np.float64)
    sweep = serial if task.level == SERIAL.id else parallel
    return [CpuPass(sweep, (source, output, *limits, finish), output.shape[0])]


def plan_cuda(task: CudaTask) -> Launch:
    channels, is_tuned = task.shape[2], task.level == TUNED.id
    is_colour = colour_count(channels) == 3
    reach, operations = (3, 20 if is_tuned else 150) if is_colour else (2, 20)
    limits = np.array([task.parameters["contrast"], _LEAST * white_level(task.dtype)])
    launch = level_launch(
        "hot_pixels",
        task,
        reach,
        operations,
        arguments={"limits": limits},
        CHANNELS=channels,
        SHARP=str(_SHARP),
        COLOURED=str(_COLOURED),
        SPREAD=str(_SPREAD),
    )
    if not is_tuned:
        return launch
    columns, rows = (side + 2 * reach for side in BLOCK)
    cells, judged = columns * rows * channels * task.dtype.itemsize, (columns - 4) * (rows - 4)
    return replace(launch, shared_bytes=cells + (judged if is_colour else 0))


_TILES, _TYPICAL = 4, 2
_RULES = ((2.0, 0.1, 2.4e-4), (4.0, 0.2, 4e-5))
"""Hot pixels are all over a picture: with the contrast and rise of one of these rules, the typical
one of 4×4 parts has this share, and two of them. Seven photos without have none, by the first rule
up to 2.3e-4 with the noise of 50 photons at white, also demosaiced. With 5e-4 of the pixels hot,
five of them have 2.4e-4 or more. The eighth, of stars as wide as a pixel, has 8e-4 where it was
demosaiced. By the second rule, 18 pictures of scikit-image, two mosaics of them and drawn stars
have 2.4e-5 at most, with noise of 15 photons or more, demosaiced and as JPEG, but for that eighth
one, which the first rule takes for hot as well. With 1e-4 of the samples hot it finds those of
five pictures out of seven, with sigma 5 of four, the first rule alone those of one and of two."""


def hot_share(planes: NDArray[np.float32]) -> float:
    """Return the share of hot and of dark pixels, if these are all over the picture; 0 if not.

    - `planes`: shape (height, width, colours), where white is 1.
    """
    wide, share = np.pad(planes, ((2, 2), (2, 2), (0, 0)), mode="reflect"), np.zeros(2)
    clear = np.zeros(2, bool)
    for contrast, rise, fewest in _RULES:
        typical = _typical(wide, contrast, rise)
        found = typical * _TILES**2 / math.prod(planes.shape[:2])
        share = np.maximum(share, found)  # weak ones count where clear ones are
        clear |= (found > fewest) & (typical >= _TYPICAL)
        if clear.all() or (typical < _TYPICAL).all():  # a stricter rule finds fewer
            break
    return float(share[clear].sum())


def _typical(wide: NDArray[np.float32], contrast: float, rise: float) -> NDArray[np.float64]:
    """Return the counts of hot and of dark pixels in the typical part."""
    hot, typical = find_hot(wide, contrast, rise), np.zeros(2)
    height, width = wide.shape[0] - 4, wide.shape[1] - 4
    for index, sign in enumerate((1, -1)):
        rows, columns = (each[hot.signs == sign] for each in hot.places[:2])
        tiles = np.zeros((_TILES, _TILES))
        np.add.at(tiles, (rows * _TILES // height, columns * _TILES // width), 1)
        typical[index] = np.median(tiles)
    return typical


SPEC = FilterSpec(
    id="hot_pixels",
    name="Hot pixels",
    category="Denoising",
    summary="Mends single bright or dark pixels of a sensor, also where demosaicing spread them.",
    synonyms=("hot", "dead", "stuck", "defect", "long exposure", "dark frame", "specks", "photo"),
    source="after the module “hot pixels” of darktable, which compares with the four next samples",
    parameters=(
        FloatParameter(
            name="contrast",
            label="Contrast",
            help="How far above the brightest samples around a hot one has to be, or a dark one "
            "below the darkest, in units of how much these differ. Less finds more.",
            default=1.5,
            minimum=0.5,
            maximum=10.0,
            slider=(0.5, 4.0),
            step=0.1,
            decimals=2,
        ),
    ),
    radius=lambda parameters: 3,
    borders=(Border.MIRROR,),  # others repeat a hot sample of the edge beside it
    unit=Unit.WHITE,
    changed="mended",
    bench=BenchDefaults(border=Border.MIRROR),
    remedy=Remedy(disturbance=Disturbance.HOT_PIXELS, share=hot_share),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows, 64)),
        "gpu": Cuda(
            plan_cuda,
            (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
            {CONSTANT.id: "There is no mask to keep in constant memory."},
        ),
    },
    explanation=Explanation(
        formula=r"u(y, x) - \max_{r = 2} u > k\, \left(\max_{r = 2} u - \min_{r = 2} u\right)",
        use="Before a denoiser, for photographs of long exposure: hot, stuck and dead pixels look "
        "like nothing else and would stay. *Denoise* puts it first where it finds them.",
        avoid="Stars narrower than 1.8 pixels in demosaiced pictures may have one colour and "
        "count as hot. For specks in more than 1 % of the pixels use the median.",
        sample="camera-salt-pepper.png",
    ),
)
