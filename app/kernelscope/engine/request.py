"""What to compute, frozen; and what came of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from kernelscope import filters
from kernelscope.engine.launch_report import LaunchReport
from kernelscope.engine.timing import Metric, Stage
from kernelscope.errors import InvalidParameter
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.judging.metrics import Quality
from kernelscope.spec.blocks import Block, block_name, check_block
from kernelscope.spec.filter import Border, FilterSpec, Kind, rounded

_ids = itertools.count(1)


class Device(StrEnum):
    """Where the user wants a filter to run."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"


def check_border(spec: FilterSpec, border: str) -> None:
    """Raise `InvalidParameter` for a border that the filter does not offer."""
    if border not in spec.borders:
        offered = ", ".join(spec.borders)
        raise InvalidParameter(f"{spec.name} has no border “{border}”.", f"Use one of {offered}.")


@dataclass(frozen=True, eq=False)
class Request:
    """A filter, an image or a scan, and everything that decides the result.

    Later changes in the window do not reach a request that was made; its result says what
    it was made from. Use `Request.create`, which validates.

    Attributes
    ----------
    level : str or None
        Identifier of a level of the device, or None for the device's fastest.
    grey : bool
        Convert to greyscale first (ITU-R 601).
    repeat : int
        How often a GPU repeats its kernels; the median time is reported.
    memory_limit : int, optional
        Most bytes of GPU memory to use for images; larger ones are filtered in strips.
    reference : Image or Volume, optional
        What the result, or the first volume of it, should be like; both it and the input are
        judged by that.
    cold : bool
        Empty the cache of a GPU before each repeat, to time what comes from memory.
    gpus : int, optional
        How many of the chosen GPUs may share the work; by default all.
    block : tuple of int, optional
        Threads of a GPU's blocks in x and y, at the levels that leave the choice to the user;
        by default the plan's.
    id : int
        Increases with each request; later ones win.
    """

    source: Image | Scan
    filter: FilterSpec
    parameters: Mapping[str, Any]
    border: Border = Border.REFLECT
    device: Device = Device.AUTO
    level: str | None = None
    grey: bool = False
    repeat: int = 1
    memory_limit: int | None = None
    reference: Image | Volume | None = None
    cold: bool = False
    gpus: int | None = None
    block: Block | None = None
    id: int = field(default_factory=lambda: next(_ids))

    @classmethod
    def create(
        cls,
        source: Image | Scan,
        filter_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        border: Border = Border.REFLECT,
        device: Device = Device.AUTO,
        level: str | None = None,
        grey: bool = False,
        repeat: int = 1,
        memory_limit: int | None = None,
        reference: Image | Volume | None = None,
        cold: bool = False,
        gpus: int | None = None,
        block: Block | None = None,
    ) -> Request:
        """Return a checked request.

        Raises
        ------
        InvalidParameter
            For an unknown filter, one that is not for such a source, a parameter out of
            range, a border that the filter does not offer, a ``valid`` border that would
            leave no pixel, or a block that no card can have.
        """
        spec = filters.get(filter_id)
        kind = Kind.VOLUME if isinstance(source, Scan) else Kind.PICTURE
        if spec.kind is not kind:
            raise InvalidParameter(
                f"{spec.name} is for {spec.kind}s; {source.title} is a {kind}.",
                "Choose another filter.",
            )
        values = spec.validate(parameters or {})
        check_border(spec, border)
        if block is not None:
            check_block(block)
        side = 2 * spec.radius(values) + 1
        height, width = source.planes.shape[:2]
        if border is Border.VALID and side > min(width, height):
            raise InvalidParameter(
                f"The {side}×{side} neighbourhood does not fit into "
                f"{width}×{height} pixels, so “valid” would leave nothing.",
                "Choose a smaller mask or another border.",
            )
        return cls(
            source,
            spec,
            MappingProxyType(values),
            border,
            device,
            level,
            grey,
            repeat,
            memory_limit,
            reference,
            cold,
            gpus,
            block,
        )

    @property
    def image(self) -> Image:
        """The source of a filter for pictures."""
        assert isinstance(self.source, Image)
        return self.source

    @property
    def scan(self) -> Scan:
        """The source of a filter for volumes."""
        assert isinstance(self.source, Scan)
        return self.source

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the result: (height, width, channels) or that of the scan."""
        shape = self.source.planes.shape
        if self.grey:
            grey = filters.get("greyscale")
            shape = grey.output_shape(shape, grey.defaults(), Border.REFLECT)
        return self.filter.output_shape(shape, self.parameters, self.border)

    def describe(self, estimates: Mapping[str, Any] | None = None, *, brief: bool = False) -> str:
        """Return the settings in words, without device and level.

        Parameters
        ----------
        estimates : mapping, optional
            What was estimated by now.
        brief : bool
            Leave out parameters and a border that are as by default, and say that.
        """
        parts = [self.filter.describe(self.parameters, estimates, brief=brief)]
        usual = self.border is Border.REFLECT
        if len(self.filter.borders) > 1 and not (brief and usual):
            parts.append(f"{self.border} border")
        if self.grey:
            parts.append("in grey")
        if self.block is not None:
            parts.append(f"blocks of {block_name(self.block)}")
        text = ", ".join(parts)
        return f"{text}, the rest as by default" if brief else text


@dataclass(frozen=True)
class Judgement:
    """What a filter did to a picture, in the light of a reference.

    Attributes
    ----------
    before : Quality or None
        Of the input; None where that does not compare: it may be what was turned to grey.
    after : Quality
        Of the result.
    """

    before: Quality | None
    after: Quality


@dataclass(frozen=True, eq=False)
class Result:
    """What a request produced.

    Attributes
    ----------
    device, level : str
        Where it really ran (names of a backend and of one of its levels).
    stages : tuple of Stage
        In the order in which they happened.
    notices : tuple of str
        What the user should know, for example why Auto did not use the GPU.
    metrics : tuple of Metric
        What else was measured; only a GPU has any.
    launch : LaunchReport, optional
        The kernel that did the work; only a GPU has one.
    quality : Judgement, optional
        None without a reference, or where a notice says why the result does not compare.
    estimates : mapping
        Parameters that were estimated from the data, by name; notices tell them in full.
    first : bool
        The process had not run this code before: it was compiled or loaded for this run, and
        found caches, clocks and page tables cold. A later run may well be faster.
    """

    request: Request
    output: Image | Scan
    device: str
    level: str
    stages: tuple[Stage, ...]
    notices: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    launch: LaunchReport | None = None
    quality: Judgement | None = None
    estimates: Mapping[str, Any] = field(default_factory=dict)
    first: bool = False

    @property
    def image(self) -> Image:
        """The picture that a filter for pictures made."""
        assert isinstance(self.output, Image)
        return self.output

    @property
    def scan(self) -> Scan:
        """The volumes that a filter for volumes made."""
        assert isinstance(self.output, Scan)
        return self.output

    @property
    def seconds(self) -> float:
        """Total of the counted stages: what the user waited, without compiling."""
        return sum(stage.seconds for stage in self.stages if stage.counted)

    @property
    def compile_seconds(self) -> float:
        """What compiling took, which is in no total."""
        return sum(stage.seconds for stage in self.stages if stage.name == "compile")

    @property
    def speed(self) -> float:
        """Input pixels or voxels (not samples) per second of `seconds`, in millions."""
        pixels = math.prod(self.request.source.planes.shape[:-1])
        return pixels / 1e6 / max(self.seconds, 1e-9)

    @property
    def speed_unit(self) -> str:
        """Unit of `speed`: ``megapixels/s``, of volumes ``megavoxels/s``."""
        return f"mega{'voxels' if isinstance(self.request.source, Scan) else 'pixels'}/s"

    @property
    def settings(self) -> str:
        """Those of the request and what was estimated, in words."""
        return self.request.describe(self.estimates)

    @property
    def brief_settings(self) -> str:
        """As `settings`, without what is as by default."""
        return self.request.describe(self.estimates, brief=True)

    @property
    def where(self) -> str:
        """Device and level in words: ``CPU parallel``."""
        return f"{self.device.upper()} {self.level}"

    def describe(self) -> str:
        """Return the settings, what was estimated, device and level in words."""
        return f"{self.settings}, {self.where}"


def told(request: Request, estimates: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence on each parameter that was estimated, with the volumes' names."""
    sentences = []
    for name, estimate in estimates.items():
        parameter = request.filter.parameter(name)
        text = parameter.format(rounded(estimate))
        if isinstance(request.source, Scan) and len(request.source.volumes) > 1:
            titles = ", ".join(volume.title for volume in request.source.volumes)
            text = f"{text} (of {titles})"
        sentences.append(f"{request.filter.name}: {parameter.label.lower()} was estimated: {text}.")
    return tuple(sentences)
