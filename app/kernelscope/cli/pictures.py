"""The files of ``apply`` if its source is a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelscope.base.errors import Incomparable, InvalidParameter, LossyFormat
from kernelscope.cli.command import INPUT, ApplyCommand
from kernelscope.cli.common import Speaker, StatusLine
from kernelscope.cli.pipes import PIPE
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.result import Result
from kernelscope.images.image import Image
from kernelscope.images.levels import with_levels
from kernelscope.images.record import Record


@dataclass(frozen=True)
class _Difference:
    path: Path
    image: Image
    of: str
    gain: int

    def describe(self) -> str:
        return f"{self.path}: {self.of}, ×{self.gain} around grey 128"


class PictureFiles:
    def __init__(self, command: ApplyCommand) -> None:
        self._command = command
        self._images: tuple[Image, ...] = ()
        self._reference: Image | None = None
        self.recipe: Recipe = command.recipe
        for option, value in (
            ("axis", self._command.axis),
            ("volume", self._command.volume),
            ("float", self._command.as_float),
            ("component", self._command.component),
            ("output-component", self._command.output_component),
        ):
            if value:
                raise InvalidParameter(
                    f"--{option} is for volumes; {self._command.source} is a picture.",
                    "Leave it out.",
                )

    def read(self) -> tuple[Image, ...]:
        from kernelscope.files import holds_pages, is_one_of_several, read_image, read_pages

        command = self._command
        found = [read_image(command.source, nan=command.nan)]
        if is_one_of_several(found[0]) and holds_pages(self._command.result):
            pages = read_pages(command.source, nan=command.nan)
            found = pages if len(pages) > 1 else found
        self._images = tuple(with_levels(each, command.levels) for each in found)
        return self._images

    def read_reference(self) -> Image | None:
        from kernelscope.files import read_image

        name = self._command.reference
        if name is not None:
            image = self._images[0] if name == INPUT else read_image(name, nan=self._command.nan)
            self._reference = with_levels(image, self._command.levels)
        return self._reference

    def check_outputs(self) -> None:
        """Refuse, before a long run, outputs that could not be written after it."""
        from kernelscope.engine.steps import recipe_request
        from kernelscope.files import check_write
        from kernelscope.files.write_errors import check_target
        from kernelscope.images.judging import check_comparable, colours

        command = self._command
        for image in reversed(self._images):
            dtype = image.pixels.dtype
            before, after = [image.shape, *recipe_request(self.recipe, image).shapes][-2:]
            try:
                check_write(
                    command.result, after, dtype, lossy=command.lossy, quality=command.quality
                )
            except LossyFormat as error:
                raise LossyFormat(error.message, f"{error.hint} Or add --lossy.".lstrip()) from None
        compared = [(command.residual, before, dtype)]
        if self._reference is not None:
            other = self._reference
            compared.append((command.difference, other.shape, other.dtype))
        for path, shape, other_dtype in compared:
            if path is None:
                continue
            if after[2] <= 2:  # it is converted to grey as the result was
                shape = (*shape[:2], 1)
            made = colours(np.broadcast_to(dtype.type(), after))
            try:
                check_comparable(made, colours(np.broadcast_to(other_dtype.type(), shape)))
            except Incomparable as error:
                raise Incomparable(f"{path}: {error.message}", error.hint) from None
            check_write(path, made.shape, np.dtype(np.uint8), lossy=command.lossy)
        if command.save_recipe:
            check_target(command.save_recipe)

    def advice(self) -> list[str]:
        return []

    def write(self, results: Sequence[Result], status: StatusLine, say: Speaker) -> Record:
        from kernelscope.files import write_image, write_pages
        from kernelscope.files.record import record_of

        path, lossy = self._command.result, self._command.lossy
        if len(results) > 1:
            write_pages([each.image for each in results], path)
        else:
            write_image(results[0].image, path, lossy=lossy, quality=self._command.quality)
        record = record_of(path, *(each.output for each in results))
        say.notices(record.losses)
        piped = self._command.named is not None and self._command.named[1] == PIPE
        say.results("standard output" if piped else str(path), results)
        for picture in self._differences(results[0]):
            write_image(picture.image, picture.path, lossy=lossy)
            say.line(picture.describe())
        return record

    def _differences(self, result: Result) -> Iterator[_Difference]:
        from kernelscope.engine.transparency import to_grey
        from kernelscope.images.judging import colours
        from kernelscope.images.judging.pictures import difference, suggest_gain

        name = result.request.step.filter.name
        for path, other, of in (
            (self._command.residual, result.request.image, f"output - input of {name}"),
            (self._command.difference, result.request.reference, "output - reference"),
        ):
            if path is None or not isinstance(other, Image):
                continue
            if result.image.is_grey:
                other = to_grey(other)
            pair = colours(result.image.planes), colours(other.planes)
            gain = suggest_gain(*pair)
            yield _Difference(path, Image.from_array(difference(*pair, gain)), of, gain)
