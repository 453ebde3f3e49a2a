"""The files of ``apply``: pictures, or volumes of the same head, with references and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernelscope.base.errors import (
    ImageReadError,
    Incomparable,
    InvalidParameter,
    LossyFormat,
    SeveralVolumes,
)
from kernelscope.cli.arguments import INPUT, PIPE, ApplyCommand
from kernelscope.cli.common import Speaker, StatusLine, namesakes
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.result import Result
from kernelscope.images.image import Image
from kernelscope.images.levels import with_levels
from kernelscope.images.record import Record, joined
from kernelscope.images.scan import Scan
from kernelscope.images.volume import AXES, Volume, check_reference
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name


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
        from kernelscope.files.volumes.writing import record_of

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


class VolumeFiles:
    """Reads volumes and a reference; writes a result for each, and differences of the first.

    Filters for pictures run slice by slice.
    """

    def __init__(self, command: ApplyCommand) -> None:
        self._command = command
        if self._command.quality is not None:
            raise InvalidParameter(
                f"--quality is for JPEG; {self._command.source} is a volume.", "Leave it out."
            )
        self._scans: tuple[Scan, ...] = ()
        self.recipe: Recipe = command.recipe
        if self._command.axis:
            self.recipe = across(self.recipe, self._command.axis)
        self._targets = _find_outputs(command)

    def read(self) -> tuple[Scan, ...]:
        from kernelscope.files.volumes import read_volume, read_volumes

        paths = [self._command.source, *self._command.component]
        numbers: list[int | None] = list(self._command.volume) or [None]
        if len(numbers) == 1:
            numbers = numbers * len(paths)
        if len(numbers) != len(paths):
            raise InvalidParameter(
                f"--volume has {len(numbers)} numbers for {len(paths)} files.",
                "Give one for all files, or one for each.",
            )
        nan = self._command.nan
        try:
            if paths[1:] or self._command.volume:
                together = [
                    [
                        read_volume(path, number, nan=nan)
                        for path, number in zip(paths, numbers, strict=True)
                    ]
                ]
            else:
                together = [[each] for each in read_volumes(paths[0], nan=nan)]
        except SeveralVolumes as error:
            raise several_volumes(error) from None
        self._scans = tuple(Scan(tuple(map(self._prepared, each))) for each in together)
        return self._scans

    def _prepared(self, volume: Volume) -> Volume:
        if self._command.as_float:
            volume = volume.with_voxels(volume.voxels, as_float=True)
        return with_levels(volume, self._command.levels)

    def read_reference(self) -> Volume | None:
        from kernelscope.files.volumes import read_volume

        name = self._command.reference
        if name is None:
            return None
        volume = self._scans[0].volumes[0]
        reference = volume if name == INPUT else read_volume(name, nan=self._command.nan)
        check_reference(volume, reference)
        return with_levels(reference, self._command.levels)

    def check_outputs(self) -> None:
        """Refuse, before a long run, outputs that could not be written after it."""
        from kernelscope.engine.steps import recipe_request
        from kernelscope.files.volumes import check_write_volume, check_write_volumes
        from kernelscope.files.write_errors import check_target

        scan, command = self._scans[0], self._command
        recipe_request(self.recipe, scan)
        if len(self._scans) > 1:
            for path in filter(None, (command.result, command.residual)):
                check_write_volumes([each.volumes[0] for each in self._scans], path)
        for volume, path in zip(scan.volumes, self._targets, strict=True):
            try:
                check_write_volume(volume, path, lossy=command.lossy)
            except LossyFormat as error:
                raise LossyFormat(error.message, f"{error.hint} Or add --lossy.") from None
        for change in (command.residual, command.difference):
            if change:
                check_write_volume(scan.volumes[0], change, lossy=command.lossy)
        if command.save_recipe:
            check_target(command.save_recipe)

    def advice(self) -> list[str]:
        """Name the filters for volumes that could replace filters which go slice by slice."""
        if self._scans[0].volumes[0].flat_axis is not None:
            return []
        return [
            f"{filter_name(step.filter)} filters each slice alone; {filter_name(other)} "
            "compares voxels of the whole volume."
            for step in self.recipe.steps
            for other in namesakes(step.filter, Kind.VOLUME)
            if step.filter.kind is Kind.PICTURE
        ]

    def write(self, results: Sequence[Result], status: StatusLine, say: Speaker) -> Record:
        """Write every volume, then report all of them."""
        from kernelscope.files.volumes import write_volume, write_volumes
        from kernelscope.files.volumes.writing import record_of

        first, lossy = results[0], self._command.lossy
        made = list(zip(first.scan.volumes, self._targets, strict=True))
        changes = self._changes(results)
        if len(results) > 1:
            status.show(f"save {self._targets[0].name}")
            write_volumes([each.scan.volumes[0] for each in results], self._targets[0])
            records = [record_of(self._targets[0], *(each.output for each in results))]
        else:
            for volume, path in made:
                status.show(f"save {path.name}")
                write_volume(volume, path, lossy=lossy)
            records = [record_of(path, volume) for volume, path in made]
        for changed, path, _ in changes:
            status.show(f"save {path.name}")
            if len(changed) > 1:
                write_volumes(changed, path)
            else:
                write_volume(changed[0], path, lossy=lossy)
        status.clear()
        for record in records:
            say.notices(record.losses)
        say.results(str(self._targets[0]), results)
        for volume, path in zip(self._scans[0].volumes[1:], self._targets[1:], strict=True):
            say.line(f"{path}: from {volume.title}")
        for _, path, of in changes:
            say.line(f"{path}: {of}")
        return joined(records)

    def _changes(self, results: Sequence[Result]) -> list[tuple[list[Volume], Path, str]]:
        """Return the differences of the first volume of each result: values, file, text."""
        from kernelscope.engine.stabilising import change_of_volume, photon_sigmas

        outputs = [each.scan.volumes[0] for each in results]
        request, found = results[0].request, []
        if self._command.residual:
            sigmas = [photon_sigmas(each.request, 0) for each in results]
            changed = [
                change_of_volume(output, each.request.scan.volumes[0], own)
                for output, each, own in zip(outputs, results, sigmas, strict=True)
            ]
            of = f"output - input of {request.step.filter.name}"
            scaled = [n for n, own in enumerate(sigmas, 1) if own is not None]
            if scaled:
                of += ", in units of the sigma of its noise"
            if 0 < len(scaled) < len(results):
                of += f" in volume{'s' * (len(scaled) > 1)} {', '.join(map(str, scaled))} alone"
            found.append((changed, self._command.residual, of))
        if self._command.difference and isinstance(request.reference, Volume):
            made = [outputs[0].minus(request.reference)]
            found.append((made, self._command.difference, "output - reference"))
        return found


def several_volumes(error: SeveralVolumes) -> ImageReadError:
    """Return the error about a file of several volumes with the option that chooses one."""
    return ImageReadError(error.message, f"{error.hint} That is --volume N.")


def across(recipe: Recipe, axis: str) -> Recipe:
    """Return the recipe whose filters for pictures get slices perpendicular to `axis`."""
    if not any(step.filter.kind is Kind.PICTURE for step in recipe.steps):
        raise InvalidParameter(
            f"{recipe.steps[0].filter.name} has no --axis: it does not go slice by slice.",
            "Leave it out.",
        )
    return replace(
        recipe, steps=tuple(replace(step, axis=AXES.index(axis)) for step in recipe.steps)
    )


def _find_outputs(command: ApplyCommand) -> list[Path]:
    from kernelscope.files.volumes import beside
    from kernelscope.files.write_errors import resolved

    components, named = command.component, command.output_component
    if named and len(named) != len(components):
        raise InvalidParameter(
            f"There are {len(named)} --output-component for {len(components)} --component.",
            "Give one for each, or none.",
        )
    names = [resolved(path).name for path in components]
    found = [command.result, *(named or [beside(command.result, name) for name in names])]
    written = (command.residual, command.difference, command.save_recipe)
    others = [path for path in written if path]
    inputs = [resolved(path) for path in (command.source, *components)]
    places = [resolved(path) for path in (*found, *others)]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise InvalidParameter(
                f"{[*found, *others][number]} would be written twice.",
                "Choose the outputs with --output-component.",
            )
        of_component = 0 < number < len(found)
        if of_component and not named and place in inputs:
            raise InvalidParameter(
                f"{found[number]}, where a component would go, is an input.",
                "Choose the outputs with --output-component.",
            )
    return found
