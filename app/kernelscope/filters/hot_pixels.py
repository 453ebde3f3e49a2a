"""Hot pixels: samples that a long exposure made too bright get the values around them.

A sample is hot if it is above the brightest of the 16 samples two pixels away, by more than
`contrast` times the range of these. It has to be

- sharp: none of the eight next to it rises 0.3 times as far, and the rule above holds for all 24.
  The optics draw no point like that: a star as wide as 1.5 pixels raises the four next to its
  middle 0.37 times as far. Or
- of one colour: the others rise at most 0.12 times as far, so that demosaicing spread one that was
  sharp. All of its 3×3 samples that rise by more than 0.08 times as far are mended then.

A mended sample is on the line between the two next ones that are not, along the axis or diagonal on
which these differ least. For example, with a contrast of 1.5:

    10 11 12
    10 90 12    90 - 12 = 78 > 1.5 * 2: hot, and becomes 11, as the two above and below it
    10 11 12

Hot samples are few, so that NumPy alone is fast enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.correlation import Finish
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import (
    Absent,
    BenchDefaults,
    Cpu,
    CpuTask,
    Disturbance,
    FilterSpec,
    Remedy,
    Unit,
)
from kernelscope.schema.levels import PARALLEL, SERIAL
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
    """Hot samples of a picture."""

    places: tuple[NDArray[np.intp], ...]  # rows, columns and channels
    rises: Numbers  # how far they are above the brightest sample two pixels away
    reaches: NDArray[np.intp]  # how far away the samples are that are not mended: 1 or 2
    around: Numbers  # shape (hot samples, 5, 5)


def find_hot(wide: NDArray[Any], contrast: float, least: float) -> Hot:
    """Return the hot samples of a picture.

    - `wide`: shape (height + 4, width + 4, colours). The picture, with two pixels on each side.
    - `least`: how far they rise at least.
    """
    height, width = wide.shape[0] - 4, wide.shape[1] - 4
    cells = [wide[s : s + height, t : t + width] for s, t in np.argwhere(_RING)]
    high, low = cells[0].copy(), cells[0].copy()
    for each in cells[1:]:
        np.maximum(high, each, out=high)
        np.minimum(low, each, out=low)
    places = np.nonzero(wide[2:-2, 2:-2] > high)
    brightest, darkest = high[places].astype(np.float64), low[places].astype(np.float64)
    up = wide[2:-2, 2:-2][places] - brightest
    with np.errstate(invalid="ignore"):  # of infinite samples
        apart = (up > least) & (up > contrast * (brightest - darkest))
        y, x, c = places = tuple(each[apart] for each in places)
        up, number = up[apart], np.arange(len(y))
        windows = np.lib.stride_tricks.sliding_window_view(wide, (5, 5), (0, 1))
        of_all = windows[y, x].astype(np.float64)  # (hot samples, colours, 5, 5)
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
    return Hot(tuple(each[hot] for each in places), up[hot], reaches[hot], own[hot])


def _between(around: Numbers, reach: int, s: int, t: int) -> Numbers:
    """Return the mended samples, `s` below and `t` right of hot ones."""
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
    hot = find_hot(wide, task.parameters["contrast"], least)
    rows, columns, channel = hot.places
    rows = rows + start - 1
    for reach in (1, 2):
        for s, t in np.ndindex(2 * reach - 1, 2 * reach - 1):
            s, t = s + 1 - reach, t + 1 - reach
            y, x = rows + s, columns + t
            chosen = (hot.reaches == reach) & (rows >= 0) & (rows < height)
            chosen &= (y >= start) & (y < stop) & (x >= 0) & (x < width)
            around = hot.around[chosen]
            values = _between(around, reach, s, t)
            raised = around[:, 2 + s, 2 + t] - values > _SPREAD * hot.rises[chosen]
            y, x, c = (each[chosen][raised] for each in (y, x, channel))
            output[y - start, x, c] = uncompiled.settled(values[raised], finish)
    return output


_CLEARLY, _TILES, _FEWEST = (2.0, 0.1), 4, 2.4e-4
"""Hot pixels are all over a picture: with this contrast and rise, the typical one of 4×4 parts has
this share. Seven photos without have none, with the noise of 50 photons at white up to 2.3e-4, also
demosaiced. With 5e-4 of the pixels hot, five of them have 2.4e-4 or more. The eighth, of stars as
wide as a pixel, has 8e-4 where it was demosaiced."""


def hot_share(planes: NDArray[np.float32]) -> float:
    """Return the share of hot pixels, if they are all over the picture; 0 if not.

    - `planes`: shape (height, width, colours), where white is 1.
    """
    height, width, _ = planes.shape
    wide = np.pad(planes, ((2, 2), (2, 2), (0, 0)), mode="reflect")
    rows, columns, _ = find_hot(wide, *_CLEARLY).places
    tiles = np.zeros((_TILES, _TILES))
    np.add.at(tiles, (rows * _TILES // height, columns * _TILES // width), 1)
    typical = float(np.median(tiles))
    share = typical * tiles.size / (height * width)
    return share if share > _FEWEST and typical >= 2 else 0.0


SPEC = FilterSpec(
    id="hot_pixels",
    name="Hot pixels",
    category="Denoising",
    summary="Mends single bright pixels of long exposures, also where demosaicing spread them.",
    synonyms=("hot", "stuck", "defect", "long exposure", "dark frame", "specks", "photo"),
    source="after the module “hot pixels” of darktable, which compares with the four next samples",
    parameters=(
        FloatParameter(
            name="contrast",
            label="Contrast",
            help="How far above the brightest samples around a hot one has to be, in units of how "
            "much these differ. Less finds more.",
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
    bench=BenchDefaults(border=Border.MIRROR),
    remedy=Remedy(disturbance=Disturbance.HOT_PIXELS, share=hot_share),
    implementations={
        "cpu": Cpu(
            uncompiled.by_numpy(_rows, 64),
            (PARALLEL,),
            {SERIAL.id: "There are no loops to compare: NumPy finds the few samples."},
            uncompiled.by_numpy(_rows, 64),
        ),
        "gpu": Absent("Hot pixels are few: it has no kernel, and runs on the CPU."),
    },
    explanation=Explanation(
        formula=r"u(y, x) - \max_{r = 2} u > k\, \left(\max_{r = 2} u - \min_{r = 2} u\right)",
        use="Before a denoiser, for photographs of long exposure: hot pixels look like nothing "
        "else and would stay. *Denoise* puts it first where it finds them.",
        avoid="Stars narrower than 1.8 pixels in demosaiced pictures may have one colour and "
        "count as hot. For specks in more than 1 % of the pixels use the median.",
        sample="camera-salt-pepper.png",
    ),
)
