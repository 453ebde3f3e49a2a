"""SciPy, scikit-image and CuPy: ``scipy.ndimage`` and ``cupyx.scipy.ndimage`` share functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.bench.peers.library import (
    Library,
    Made,
    Maker,
    Parameters,
    cupy,
    distance,
    laplace_mask,
    magnitudes,
    mask_and_divisor,
    round_and_saturate,
    saturate,
    unchanged,
)
from kernelscope.filters.shared.correlation import binomial
from kernelscope.filters.shared.footprints import table_of
from kernelscope.filters.shared.separable import sigmas_of
from kernelscope.schema.borders import Border

MISSING_BORDERS = (Border.VALID, Border.REDUCE, Border.KEEP)
"""Borders that neither library supports."""


_OPERATIONS = {
    "opening": "grey_opening",
    "closing": "grey_closing",
    "gradient": "morphological_gradient",
    "white-top-hat": "white_tophat",
    "black-top-hat": "black_tophat",
}


@dataclass(frozen=True)
class NdImage:
    """``scipy.ndimage`` on NumPy's arrays, or ``cupyx.scipy.ndimage`` on CuPy's."""

    # Import and return the module of the arrays, and that of the filters.
    arrays: Callable[[], Any]
    functions: Callable[[], Any]

    def makers(self) -> dict[str, Maker]:
        makers: dict[str, Callable[[Any, Parameters, str], Made | None]] = {
            "gaussian": self._gaussian,
            "laplace": self._laplace,
            "mask": self._mask,
            "maximum": functools.partial(self._extreme, "maximum_filter"),
            "mean": functools.partial(self._window, "uniform_filter"),
            "median": functools.partial(self._window, "median_filter"),
            "minimum": functools.partial(self._extreme, "minimum_filter"),
            "morphology": self._morphology,
            "sobel": self._sobel,
            "weighted_mean": self._weighted_mean,
        }
        return {name: functools.partial(self._make, maker) for name, maker in makers.items()}

    def _make(
        self,
        maker: Callable[[Any, Parameters, str], Made | None],
        source: Any,
        parameters: Parameters,
        border: Border,
    ) -> Made | None:
        return None if border in MISSING_BORDERS else maker(source, parameters, str(border))

    def _window(self, name: str, source: Any, parameters: Parameters, mode: str) -> Made:
        function = getattr(self.functions(), name)
        output, size = self.arrays().empty_like(source), parameters["size"]

        def call() -> Any:
            function(source, size, output=output, mode=mode)
            return output

        return call, unchanged

    def _extreme(self, name: str, source: Any, parameters: Parameters, mode: str) -> Made:
        """Use the sides of a square, which take a pass along each axis, or the cells."""
        function, output = getattr(self.functions(), name), self.arrays().empty_like(source)
        cells = self._cells(parameters)

        def call() -> Any:
            function(source, **cells, output=output, mode=mode)
            return output

        return call, unchanged

    def _cells(self, parameters: Parameters) -> dict[str, Any]:
        table = table_of(parameters)
        return {"size": len(table)} if table.all() else {"footprint": self.arrays().asarray(table)}

    def _morphology(self, source: Any, parameters: Parameters, mode: str) -> Made:
        return self._extreme(_OPERATIONS[parameters["operation"]], source, parameters, mode)

    def _gaussian(self, source: Any, parameters: Parameters, mode: str) -> Made:
        function, output = self.functions().gaussian_filter, self.arrays().empty(source.shape, "f4")
        sigma, truncate = sigmas_of(parameters), parameters["truncate"]

        def call() -> Any:
            function(source, sigma, output=output, mode=mode, truncate=truncate)
            return output

        return call, round_and_saturate

    def _weighted_mean(self, source: Any, parameters: Parameters, mode: str) -> Made:
        xp, ndimage = self.arrays(), self.functions()
        row = binomial(parameters["size"])
        scaled = xp.asarray(row / row.sum())
        between, output = (xp.empty(source.shape, np.float32) for _ in range(2))

        def call() -> Any:
            ndimage.correlate1d(source, scaled, axis=0, output=between, mode=mode)
            ndimage.correlate1d(between, scaled, axis=1, output=output, mode=mode)
            return output

        return call, round_and_saturate

    def _mask(self, source: Any, parameters: Parameters, mode: str) -> Made | None:
        if parameters["negative"] != "clip":
            return None
        mask, divisor = mask_and_divisor(parameters)
        if divisor == 1 and mask.dtype.kind == "i":
            return self._correlate(source, mask, mode, np.int32), saturate
        return self._correlate(source, mask / divisor, mode, np.float32), round_and_saturate

    def _laplace(self, source: Any, parameters: Parameters, mode: str) -> Made | None:
        if parameters["negative"] != "absolute":
            return None
        return self._correlate(source, laplace_mask(parameters), mode, np.int16), magnitudes

    def _correlate(self, source: Any, mask: Any, mode: str, dtype: Any) -> Callable[[], Any]:
        xp, ndimage = self.arrays(), self.functions()
        mask = xp.asarray(mask)
        output = xp.empty(source.shape, dtype)

        def call() -> Any:
            ndimage.correlate(source, mask, output=output, mode=mode)
            return output

        return call

    def _sobel(self, source: Any, parameters: Parameters, mode: str) -> Made | None:
        form = parameters["form"]
        if form not in ("sum", "magnitude"):
            return None
        xp, ndimage = self.arrays(), self.functions()
        across, down = (xp.empty(source.shape, np.int16) for _ in range(2))

        def call() -> Any:
            ndimage.sobel(source, axis=1, output=across, mode=mode)
            ndimage.sobel(source, axis=0, output=down, mode=mode)
            if form == "sum":
                return xp.abs(across) + xp.abs(down)
            return xp.hypot(across.astype(np.float32), down.astype(np.float32))

        return call, round_and_saturate


def _median(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    if border in MISSING_BORDERS:
        return None
    from skimage.filters import median

    square = np.ones((parameters["size"], parameters["size"]), bool)
    return lambda: median(pixels, square, mode=str(border)), unchanged


def _nlm(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    reach = distance(parameters, border)
    if reach is None:
        return None
    from skimage.restoration import denoise_nl_means

    patch, radius = parameters["patch"], parameters["search_radius"]
    return (
        lambda: denoise_nl_means(pixels, patch, radius, reach, fast_mode=True),
        lambda values: round_and_saturate(255 * values),
    )


def _of_scipy() -> Any:
    import scipy.ndimage

    return scipy.ndimage


def _of_cupy() -> Any:
    import cupyx.scipy.ndimage

    return cupyx.scipy.ndimage


LIBRARIES = (
    Library(
        name="SciPy",
        module="scipy",
        makers=NdImage(lambda: np, _of_scipy).makers(),
        rank=1,
    ),
    Library(name="scikit-image", module="skimage", makers={"median": _median, "nlm": _nlm}, rank=2),
    Library(
        name="CuPy",
        module="cupy",
        makers=NdImage(cupy, _of_cupy).makers(),
        rank=5,
        on_card=True,
    ),
)
