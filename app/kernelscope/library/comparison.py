"""How close an array is to a reference, and how white the part is that a denoiser removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from kernelscope.base.errors import Incomparable, naming
from kernelscope.engine.transparency import to_grey
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import Quality, judge, judge_volume
from kernelscope.images.judging.whiteness import picture_correlation, removed_correlation
from kernelscope.images.levels import given_levels
from kernelscope.library import arrays
from kernelscope.library.session import PolledToken


def quality(
    result: ArrayLike,
    reference: ArrayLike,
    *,
    volume: bool | None = None,
    white: float | None = None,
    black: float | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Quality:
    """Return how far a picture or a volume is from its reference.

    The definitions are those of scikit-image, SSIM with its uniform 7×7 window. Alpha is not
    compared. A reference in colour is converted to grey if the result is grey.

    Parameters
    ----------
    result, reference : array_like, shape (height, width), (height, width, channels) or of a volume
        Pictures of one type: uint8, uint16 or floats, grey ones also other integers. Volumes of any
        type: SSIM is the mean over slices.
    volume : bool, optional
        Whether the arrays are volumes, of shape (depth, height, width). By default they are if
        they have three axes and the last one is longer than 4.
    white, black : float, optional
        The levels whose distance is the peak of PSNR and SSIM. By default white is that of the
        type, 255 or 65535; for floats 1 if the reference lies between 0 and 1, else its largest
        sample; for volumes its brightest voxel. Black is 0, or the smallest sample of such floats
        and volumes if that is negative. `Quality.peak` has the distance. `black` needs `white`.
    cancel : callable, optional
        Called often, on any thread; `Cancelled` is raised soon after it returned True.

    Returns
    -------
    Quality
        With `psnr` in decibels, `ssim`, `mse`, `mae`, of volumes also `bias`, and `psnr_inside`
        where at least a tenth of the reference is 0 and none is negative, unless `black` is given;
        ``describe()`` has them in words.

    Raises
    ------
    AppError
        If the arrays cannot be compared.
    """
    check = PolledToken(cancel).check
    with naming("quality(): "):
        levels = given_levels(white, black)
        first = arrays.host_array(result, "result")
        second = arrays.host_array(reference, "reference")
        if volume is None:
            volume = _is_volume(first)
        if not volume and first.shape == second.shape:
            one_slice, other_slice = arrays.as_slice(first), arrays.as_slice(second)
            if one_slice is not None and other_slice is not None:  # white is that of volumes
                first, second, volume = one_slice, other_slice, True
        if volume:
            scans = arrays.scan([("result", first)]), arrays.scan([("reference", second)])
            one, other = (scan.volumes[0].voxels for scan in scans)
            return judge_volume(one, other, check, levels)
        image, ideal = arrays.picture(first, "result"), arrays.picture(second, "reference")
        if image.is_grey:
            ideal = to_grey(ideal)
        return judge(colours(image.planes), colours(ideal.planes), check, levels=levels)


def residual_correlation(
    source: ArrayLike, result: ArrayLike, *, volume: bool | None = None
) -> float | None:
    """Return how much neighbours have in common in the part that a denoiser removed.

    It is near 0 if that was white noise alone, above 0 where structure was removed with it or the
    noise itself is correlated, and below 0 where noise stayed: a figure of quality where there is
    no reference.

    Parameters
    ----------
    source, result : array_like, shape (height, width), (height, width, channels) or of a volume
        Before and after the denoiser. A picture may have lost a rim; alpha does not count.
    volume : bool, optional
        Whether the arrays are volumes, see `quality`.

    Returns
    -------
    float or None
        Of the axis and channel where it is farthest from 0; of volumes the largest, where they are
        brighter than their mean. None where nothing was removed, or of fewer than a thousand
        pairs of neighbours.

    Raises
    ------
    AppError
        If the arrays cannot be compared.
    """
    with naming("residual_correlation(): "):
        first = arrays.host_array(source, "source")
        second = arrays.host_array(result, "result")
        if _is_volume(first) if volume is None else volume:
            scans = arrays.scan([("source", first)]), arrays.scan([("result", second)])
            one, other = (scan.volumes[0].voxels for scan in scans)
            if one.shape != other.shape:
                raise Incomparable(f"Volumes of {one.shape} and {other.shape} voxels.")
            return removed_correlation(one, other)
        image, made = arrays.picture(first, "source"), arrays.picture(second, "result")
        if made.is_grey:
            image = to_grey(image)
        before, after = colours(image.planes), colours(made.planes)
        if any(a < b for a, b in zip(before.shape, after.shape, strict=True)):
            raise Incomparable(
                "The result is larger than the source, or has more channels.",
                "The source comes first.",
            )
        return picture_correlation(before, after)


def _is_volume(array: NDArray[Any]) -> bool:
    return array.ndim == 3 and not arrays.is_picture(array.shape)
