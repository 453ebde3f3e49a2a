"""Recipes as functions of arrays, and of files larger than memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike, NDArray

from kernelscope.base.errors import InvalidParameter, naming
from kernelscope.engine import recipe as engine
from kernelscope.engine.control import no_progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.step import Step
from kernelscope.images.levels import given_levels
from kernelscope.library import pictures
from kernelscope.library.arguments import check_common, reporter
from kernelscope.library.session import PolledToken, components_of, filtered_volumes, session
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:  # its readers are imported when a file is filtered
    from kernelscope.big.lazy.files import Filed


@dataclass(frozen=True)
class Recipe:
    """Filters with their settings, one after the other; call it with an array.

    ::

        recipe = ks.Recipe(ks.median(size=5), ks.nlm())
        recipe = ks.Recipe.load("clean.recipe.json")     # saved by the window or the command line
        clean = recipe(image)

    It can be pickled, and used from several threads at once.

    Attributes
    ----------
    steps : tuple of Step
        Filter, parameters, border and area of each.
    """

    _recipe: engine.Recipe

    def __init__(self, *steps: Recipe | engine.Recipe | Step) -> None:
        """Chain steps, each of which is a call without an array, and recipes."""
        chained: list[Step] = []
        for each in steps:
            if isinstance(each, Step):
                chained.append(each)
            elif isinstance(each, Recipe | engine.Recipe):
                chained += each.steps
            else:
                raise InvalidParameter(
                    f"Recipe(): {type(each).__name__} is no step.",
                    "Give calls without an array: ks.median(size=5).",
                )
        if not chained:
            raise InvalidParameter("Recipe(): there are no steps.", "Give one or more.")
        object.__setattr__(self, "_recipe", engine.Recipe(tuple(chained)))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Recipe:
        """Return the recipe in a file.

        Raises
        ------
        InvalidRecipe
            If the file is missing or no recipe; the message has the path of the value.
        """
        from kernelscope.files import read_recipe

        return cls(read_recipe(str(path)))

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Return the recipe in `text`.

        Raises
        ------
        InvalidRecipe
            If it is none.
        """
        return cls(engine.Recipe.from_json(text))

    def to_json(self) -> str:
        """Return the recipe as text that people can read and change."""
        return self._recipe.to_json()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the recipe; an existing file is replaced in one step, or stays as it was.

        Raises
        ------
        ImageWriteError
            If the place cannot be written to.
        """
        from kernelscope.files import write_recipe

        write_recipe(self._recipe, str(path))

    @property
    def steps(self) -> tuple[Any, ...]:
        """The steps, in their order."""
        return self._recipe.steps

    def apply(
        self,
        image: ArrayLike,
        *,
        volume: bool = False,
        components: Sequence[ArrayLike] = (),
        channel_axis: int | str | None = None,
        axes: tuple[int | str, int | str] | tuple[int | str, int | str, int | str] | None = None,
        alpha: bool = False,
        white: float | None = None,
        black: float | None = None,
        nan: float | None = None,
        device: Literal["auto", "cpu", "gpu", "emulated"] = "auto",
        level: str | None = None,
        progress: Callable[[str, float], object] | Any = None,
        cancel: Callable[[], bool] | None = None,
        out: NDArray[Any] | None = None,
    ) -> Any:
        """Return the result of the last step.

        Parameters
        ----------
        image : array_like, shape (height, width), (height, width, channels) or that of a volume
            As for the functions of filters. It is a volume, of shape (depth, height, width), if
            a filter of the recipe is for volumes.
        volume : bool, default False
            Read the array as a volume, whose slices the filters for pictures take.
        components : sequence of array_like, optional
            Up to 3 more volumes of the same head.
        channel_axis, axes, alpha, out : optional
            As for the functions of filters for pictures; with three axes, all masks go through
            the slices of volumes.
        white, black : float, optional
            Levels of floats and of volumes, to which amounts are relative.
        nan : float, optional
            Filter NaN as this number; the result has NaN there again.
        device : {'auto', 'cpu', 'gpu', 'emulated'}, default 'auto'
            Where to compute.
        level : str, optional
            Way of computing, for the steps that have it; by default the fastest.
        progress : callable or bar of tqdm, optional
            Called with the step and its stage, and the fraction of the recipe that is done.
        cancel : callable, optional
            Called often, on any thread; `Cancelled` is raised soon after it returned True.

        Returns
        -------
        ndarray, or tuple of ndarray with `components`
            New arrays of the type of the input.

        Raises
        ------
        AppError
            For every problem that the caller can correct; the message names the step.
        Cancelled
            If `cancel` returned True.
        """
        given: dict[str, Any] = {
            "white": white,
            "black": black,
            "nan": nan,
            "device": device,
            "level": level,
            "progress": reporter(progress),
            "cancel": cancel,
        }
        kinds = {step.filter.kind for step in self._recipe.steps}
        with naming("Recipe(): "):
            listed = components_of("image", image, components)
            if volume or len(listed) > 1 or Kind.VOLUME in kinds:
                return filtered_volumes(self._recipe, listed, given)
            given |= {"image": image, "axis": None, "alpha": alpha, "out": out}
            given |= {"channel_axis": channel_axis, "axes": axes}
            return pictures.filtered(self._recipe, given)

    __call__ = apply

    def apply_file(
        self,
        source: str | PathLike[str],
        target: str | PathLike[str],
        *,
        memory: int | str = "2G",
        number: int | None = None,
        white: float | None = None,
        black: float | None = None,
        device: Literal["auto", "cpu", "gpu", "emulated"] = "auto",
        level: str | None = None,
        progress: Callable[[str, float], object] | Any = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Filed:
        """Filter a file of any size in blocks, with the samples of a result in memory.

        Read and written are TIFF, BigTIFF and OME-TIFF, and OME-Zarr with the extra ``[zarr]``.

        Parameters
        ----------
        source, target : path
            The name of `target` states its format: ``.tif``, ``.ome.tif`` or ``.ome.zarr``.
        memory : int or str, default '2G'
            Bytes that this process may take, all of it; a text may end in K, M, G or T.
        number : int, optional
            Number, from 1, of the volume in a file of several; by default all channels and times.
        white, black : float, optional
            Levels of floats and of volumes, to which amounts are relative.
        device : {'auto', 'cpu', 'gpu', 'emulated'}, default 'auto'
            Where to compute.
        level : str, optional
            Way of computing, for the steps that have it; by default the fastest.
        progress : callable or bar of tqdm, optional
            Called with the stage and the fraction of it that is done.
        cancel : callable, optional
            Called often, on any thread; `Cancelled` is raised soon after it returned True.

        Returns
        -------
        Filed
            Shape, steps in words, ``record`` of the properties of `source` that were kept, changed
            and lost, its ``notices``, and ``streamed``: blocks, seconds and peak memory.

        Raises
        ------
        AppError
            For every problem that the caller can correct. An existing target is unchanged.
        Cancelled
            If `cancel` returned True.
        """
        from kernelscope.big.lazy.files import filter_file

        given = {"device": device, "nan": None, "white": white, "black": black}
        token, report = PolledToken(cancel), reporter(progress)
        with naming("Recipe.apply_file(): "):
            check_common({**given, "progress": report, "cancel": cancel})
            limit = byte_count(memory)
            try:
                return filter_file(
                    self._recipe,
                    Path(source),
                    Path(target),
                    limit,
                    session().backends(),
                    number=number,
                    options=RunOptions(Device(device), level),
                    token=token,
                    progress=report or no_progress,
                    levels=given_levels(white, black),
                )
            except BaseException:
                token.cancel()  # Ctrl+C, or an error of a callback: other threads would go on
                raise

    def __repr__(self) -> str:
        return f"<Recipe: {', '.join(step.filter.id for step in self._recipe.steps)}>"

    def __reduce__(self) -> tuple[Callable[[str], Recipe], tuple[str]]:
        return Recipe.from_json, (self.to_json(),)


def byte_count(memory: int | str) -> int:
    """Return a number of bytes, which may be a text such as ``"2G"``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", str(memory).upper())
    if isinstance(memory, bool) or match is None or float(match[1]) == 0:
        raise InvalidParameter(f"memory: {memory!r} is no size.", 'Use bytes, or a text as "2G".')
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " "))
