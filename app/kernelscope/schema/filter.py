"""The declaration of a filter, and the plan of its work on the CPU.

A filter module has one `FilterSpec` called ``SPEC``. The window, the command line and the
documentation are generated from it, so a parameter is declared exactly once::

    SPEC = FilterSpec(id="mean", ..., parameters=(OddParameter(name="size", ...),),
                      implementations={"cpu": Cpu(plan_cpu), "gpu": Cuda(plan_cuda, levels)})

    spec.levels(Device.GPU)                 levels for a list; () if it does not run there
    spec.implementation(Cpu).plan(task)     passes over the output, as data: nothing is run

Another backend is another key of `implementations`, with its own class next to `Cpu` and `Cuda`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import HALO_ONLY, Box, Crop
from kernelscope.schema.explanation import NO_EXPLANATION, Explanation
from kernelscope.schema.levels import CPU_LEVELS, GPU_LEVELS, Level
from kernelscope.schema.parameters import Parameter, SidesParameter, rounded
from kernelscope.schema.samples import Kind, Pixels, colour_count


class Chip(NamedTuple):
    name: str
    """Of the parameter; equal names on two runs are the same setting."""
    text: str
    """``σ 0.0222``."""
    usual: bool
    """It has its default, and may be left out."""


@dataclass(frozen=True)
class CpuTask:
    """The task that a filter plans passes for on the CPU, as `CudaTask` for a GPU."""

    source: Pixels
    """Shape (height, width, channels) or (depth, height, width, components). Input samples,
    C-contiguous and read-only; grey images have one channel. Volumes are float32."""
    output: Pixels
    """Shape (height', width', channels) or that of the volume. Array for the result, same dtype;
    smaller than `source` only for `Border.VALID`. Every channel must be written. The caller
    restores an alpha channel."""
    parameters: Mapping[str, Any]
    """Validated and resolved values, one for each parameter of the filter."""
    border: Border
    """Treatment of the cells outside the image."""
    level: str
    """Identifier of the level to compute at."""
    origin: tuple[int, int] = (0, 0)
    """Row and column of the picture at which `source` begins, where it is a part of one."""
    part: Box | None = None
    """The part of a volume that `output` is; the parameters are those of the whole."""


class CpuKernel(Protocol):
    """A compiled function for the CPU, such as those of `kernelscope.base.jit`."""

    def compile(self, *arguments: Any) -> bool:
        """Compile for the types of `arguments`; return False if that was done before."""

    def entry(self, *arguments: Any) -> Callable[..., Any]:
        """Return the function that was compiled for the types of `arguments`."""

    def __call__(self, *arguments: Any) -> Any:
        """Run on `arguments`."""


@dataclass(frozen=True)
class CpuPass:
    """One sweep over the output: ``kernel(*arguments, start, stop)`` for bands of rows.

    The backend splits ``range(rows)`` into bands, runs them on one thread (levels that are
    `Level.single`) or on all cores, and checks the cancel token between bands. Bands may run
    in any order, so a pass must not read the output of another band of the same pass.
    """

    kernel: CpuKernel
    arguments: tuple[Any, ...]
    rows: int
    cost: float = 1.0
    """Time relative to the filter's other passes, for progress; approximate."""


class Implementation(Protocol):
    """How a filter is computed on one kind of device: `Cpu`, `Cuda` or `Absent`."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that it supports, slowest first."""

    @property
    def gaps(self) -> Mapping[str, str]:
        """The reason why a usual level of the device is missing, by level id."""


_Found = TypeVar("_Found", bound=Implementation)


@dataclass(frozen=True)
class Cpu:
    plan: Callable[[CpuTask], Sequence[CpuPass]]
    """Maps a `CpuTask` to the passes that compute it."""
    levels: tuple[Level, ...] = CPU_LEVELS
    """`CPU_LEVELS`, and the filter's own between them; the last is the fastest."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    uncompiled: Callable[[CpuTask], Sequence[CpuPass]] = lambda task: ()
    """As `plan`, with passes of NumPy alone, or none: integers have the same bytes, those of sums
    of floats up to rounding. Live runs use them while the code of the filter is being compiled."""
    stand_in: str = ""
    """Of `uncompiled` passes that compute another method: its name. They make previews only."""


@dataclass(frozen=True)
class Absent:
    """Takes the place of an implementation that a filter does not have."""

    reason: str
    """Shown to the user at each of the `usual` levels."""
    usual: tuple[Level, ...] = GPU_LEVELS

    @property
    def levels(self) -> tuple[Level, ...]:
        return ()

    @property
    def gaps(self) -> Mapping[str, str]:
        return {level.id: self.reason for level in self.usual}


class Unit(Enum):
    """The unit of floats that a filter supposes; see `kernelscope.engine.scaling`."""

    ANY = "any"
    """The result has the unit of the samples, whatever that is."""
    SQUARES = "squares"
    """Any in which float32 holds squares of samples."""
    WHITE = "white"
    """White is 1, if black is 0: differences count."""
    LEVELS = "levels"
    """Black is 0, and white is 1."""

    @property
    def knows_white(self) -> bool:
        return self in (Unit.WHITE, Unit.LEVELS)


@dataclass(frozen=True, kw_only=True)
class BenchDefaults:
    """How a filter is timed unless a plan sets more."""

    variants: tuple[Mapping[str, Any], ...] = ({},)
    """Parameters other than the mask size; each is timed."""
    border: Border = Border.REFLECT
    """One that the libraries have as well."""
    channels: int = 1


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A map of a volume that a filter can show, for instance of the noise that it estimates."""

    name: str
    """Heads its captions."""
    settings: Callable[[Mapping[str, Any], bool], tuple[Any, ...]]
    """Maps validated parameters, and whether a volume is of a microscope, to the values that the
    map depends on: equal settings give equal maps."""
    compute: Callable[[Pixels, tuple[Any, ...]], tuple[Pixels, str]]
    """Maps voxels, shape (depth, height, width), and settings to the map, of the same shape, and to
    a few words for captions."""


class NoiseSteps(Protocol):
    """Steps around a filter that supposes white noise; see `kernelscope.engine.stabilising`."""

    reach: int
    """How far around a pixel each of them looks."""
    values: Mapping[str, Any]
    """Parameters of the filter between them, in place of its own."""

    def forward(self, samples: Any) -> Any:
        """Return float32 samples whose noise is white, where white is 1; alpha stays.

        Volumes, a sequence of arrays, stay in their units.
        """

    def backward(self, result: Any, *before: Any) -> Any:
        """Return samples of the picture's type from those of the result, of any height.

        `before` are, of pictures, the stable samples and the picture at the same places.
        """


@dataclass(frozen=True, kw_only=True)
class NoiseChoice:
    """How a filter treats the kinds of noise of a picture, or of volumes."""

    parameter: str
    """Name of the parameter that chooses the kind."""
    found: str
    """Its value where the kind is to be found."""
    white: str
    """Its value where the noise is white: after the first of the steps."""
    camera: str
    """Its value for the noise of a camera."""
    key: str
    """Under which the model is among the parameters that `FilterSpec.resolve` gets."""
    find: Callable[[Any, str], Any]
    """Maps a picture without alpha, where white of floats is 1, or the voxels of each volume, and
    the parameter's value to a model of its noise; None if that value needs no model."""
    steps: Callable[[Any, Mapping[str, Any] | None, Any], NoiseSteps | None]
    """Maps a model, validated parameters (of a picture None while they are estimated) and the type
    of samples, or of each volume, to the steps around the filter; None if it needs none."""
    describe: Callable[[Any, str, float], str]
    """Maps a model and the value of white to a line for the user; empty for a chosen model."""


IN_3D = "_3d"
"""Ends the id of a filter for pictures whose mask goes through the slices of volumes."""


WHOLE, MIDDLE = "whole", "middle"
"""Names under which a run adds facts about its volume to the parameters of such a filter: whether
its voxels are integers, and the value of mid-grey."""

SIGN = "negative"
"""Name of the parameter of filters that clip negative results."""


class Disturbance(Enum):
    """Noise as one word, for the choice of a filter."""

    NOISE = "noise"
    """In all samples."""
    IMPULSES = "impulses"
    """Black and white specks."""
    HOT_PIXELS = "hot pixels"
    """Few bright samples, beside noise or without any."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A disturbance for which a filter may be proposed; see `kernelscope.engine.denoising`."""

    disturbance: Disturbance
    decibels: float = 0.0
    """PSNR of its results, as measured next to others of the same disturbance and kind of source:
    the largest is proposed first."""
    values: Callable[[float], Mapping[str, Any]] = lambda share: {}
    """Maps the share of samples that are impulses to parameters."""
    share: Callable[[NDArray[np.float32]], float] = lambda planes: 0.0
    """Maps the middle of a picture, where white is 1, to the share of pixels to mend before other
    noise is removed; 0 if nothing shows that these are disturbed."""


@dataclass(frozen=True, kw_only=True)
class FilterSpec:
    """A filter: its names, its parameters and its implementations.

    A volume is an image whose rows are slices and whose pixels are rows of voxels: shape
    (depth, height, width, components), float32. A filter of volumes keeps that shape.
    """

    id: str
    """Name of the module, of the ``.cu`` file and of the test."""
    name: str
    category: str
    summary: str
    """Texts for menus and lists; `summary` is one sentence."""
    source: str
    """Where the method is described."""
    parameters: tuple[Parameter, ...]
    """In the order in which they are shown."""
    implementations: Mapping[str, Implementation]
    """How it is computed, by the id of the backend: a `Device`, or its text."""
    short: str = ""
    """A shorter name for captions, such as ``NLM``; by default `name`."""
    synonyms: tuple[str, ...] = ()
    """Other words by which users search for it, in lower case."""
    radius: Callable[[Mapping[str, Any]], int] = lambda parameters: 0
    """Maps validated parameters to the number of pixels needed on each side (of a volume: slices
    above and below); none by default."""
    rectangle: Callable[[int, int], tuple[str, Mapping[str, Any]]] | None = None
    """Maps the height and width of a mask, even ones too, to the filter that has such masks, and
    its parameters. The centre of n cells is number n // 2, as SciPy has it."""
    passes: Callable[[Mapping[str, Any]], int] = lambda parameters: 1
    """Maps validated parameters to how often cells outside of a picture are read: before each pass
    again, if there are several."""
    borders: tuple[Border, ...] = tuple(Border)
    """The borders that make sense for the filter."""
    check: Callable[[Mapping[str, Any]], None] = lambda parameters: None
    """Raises `InvalidParameter` for combinations of parameters that cannot work."""
    output_channels: Callable[[int, Mapping[str, Any]], int] = lambda channels, parameters: channels
    """Maps the number of channels of the source, and validated parameters, to the number of
    channels of the result."""
    whole: Callable[[Mapping[str, Any]], bool] = lambda parameters: False
    """Returns whether each result may depend on the whole image, whatever the radius."""
    crop: Crop = HALO_ONLY
    """The part of a picture that a part of the result needs in addition to the halo."""
    kind: Kind = Kind.PICTURE
    """The kind of source that it works on."""
    in_3d: FilterSpec | None = None
    """Of a filter for pictures: the same for volumes, its mask through the slices; None if that has
    no meaning. Its id is that of the filter and `IN_3D`; `kernelscope.filters` knows it by that."""
    resolve: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda source, given: given
    """Maps a source, as that of a `CpuTask` or as `Components`, and validated parameters to the
    parameters to plan with: values that depend on the data are filled in, those that do not go with
    the source are refused. It may add values under names that no parameter has, for the plans.
    Resolving twice changes nothing."""
    estimates: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] = (
        lambda given, resolved: {}
    )
    """Maps validated parameters and the result of `resolve` to those that were estimated from the
    data, for the user to know: values by name."""
    measure: Callable[[Pixels, Mapping[str, Any]], Mapping[str, Any]] = lambda source, given: {}
    """Maps a source and validated parameters to slow measurements that an estimate and `resolve`
    both need, under names that no parameter has. Either measures for itself where they do not come
    with the parameters."""
    restores: bool = True
    """Whether a result shows the content of its source, so that both compare with one reference."""
    changed: str = ""
    """A word such as ``mended`` for the samples that a run changes, if it reports their number."""
    averages: bool = False
    """Whether it is an average with weights that are not negative and do not depend on samples."""
    unit: Unit | Callable[[Mapping[str, Any]], Unit] = Unit.ANY
    """The unit of floats that it supposes; a callable maps validated parameters to it."""
    caution: Callable[[Mapping[str, Any]], str] = lambda values: ""
    """Returns why values have less effect than they say; empty where they have it all."""
    noise: NoiseChoice | None = None
    """The kinds of noise that it removes: from pictures all, from volumes those of a microscope."""
    remedy: Remedy | None = None
    """Why it may be proposed for a source."""
    bench: BenchDefaults = BenchDefaults()
    """How it is timed."""
    diagnostic: Diagnostic | None = None
    """A map of the source that the window can show."""
    explanation: Explanation = NO_EXPLANATION
    """Formula, worked example and advice for the page of the filter."""

    def levels(self, device: str) -> tuple[Level, ...]:
        """Return the levels of a kind of device, slowest first; none if it cannot run there."""
        found = self.implementations.get(device)
        return found.levels if found else ()

    def gaps(self, device: str) -> Mapping[str, str]:
        """Return why usual levels of a kind of device do not apply, by level id."""
        found = self.implementations.get(device)
        return found.gaps if found else {}

    def implementation(self, kind: type[_Found]) -> _Found:
        """Return the implementation of that kind, for the backend that works with it.

        Raises `LookupError` if there is none; such a filter has no `levels` on that device.
        """
        for found in self.implementations.values():
            if isinstance(found, kind):
                return found
        raise LookupError(f"filter {self.id!r} has no implementation {kind.__name__}")

    @property
    def is_in_3d(self) -> bool:
        """Whether it is the `in_3d` of a filter for pictures."""
        return self.kind is Kind.VOLUME and self.id.endswith(IN_3D)

    def radii(self, parameters: Mapping[str, Any]) -> tuple[int, int, int]:
        """Return how far a mask of voxels reaches along z, y and x."""
        for each in self.parameters:
            if isinstance(each, SidesParameter):
                x, y, z = each.along_axes(parameters[each.name])
                return z // 2, y // 2, x // 2
        radius = self.radius(parameters)
        return radius, radius, radius

    @property
    def base_id(self) -> str:
        """The id of the filter for pictures that it is in three dimensions, or its own."""
        return self.id.removesuffix(IN_3D) if self.is_in_3d else self.id

    def unit_for(self, parameters: Mapping[str, Any]) -> Unit:
        """Return the unit of floats that these parameters suppose."""
        return self.unit if isinstance(self.unit, Unit) else self.unit(parameters)

    def work_per_pixel(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the parameters that the work for a pixel depends on, in words."""
        return (
            f"radius {self.radius(parameters)}",
            *(
                f"{each.name} {parameters[each.name]}"
                for each in self.parameters
                if each.affects_time and each.matters(parameters)
            ),
        )

    def uncroppable(self, parameters: Mapping[str, Any]) -> str:
        """Return why a part of a result needs the whole source; empty if it does not."""
        if self.kind is Kind.VOLUME:
            return "it filters volumes as a whole"
        if self.whole(parameters):
            return "each of its results depends on all pixels"
        return self.crop.whole

    def output_shape(
        self, shape: tuple[int, ...], parameters: Mapping[str, Any], border: Border
    ) -> tuple[int, ...]:
        """Return the shape of the result for a source of `shape`, see `CpuTask`."""
        if self.kind is Kind.VOLUME:
            return shape
        height, width, channels = shape
        margin = 2 * self.radius(parameters) if border is Border.VALID else 0
        return height - margin, width - margin, self.output_channels(channels, parameters)

    def carry_alpha(
        self, source: Pixels, output: Pixels, parameters: Mapping[str, Any], border: Border
    ) -> None:
        """Copy the alpha channel of `source`, if it has one, to that of `output`.

        Both have shape (height, width, channels); `output` may be smaller (``valid``). No
        component of a volume is alpha.
        """
        if self.kind is Kind.PICTURE and source.shape[2] in (2, 4):
            shift = self.radius(parameters) if border is Border.VALID else 0
            height, width = output.shape[:2]
            output[:, :, -1] = source[shift : shift + height, shift : shift + width, -1]

    def keep_rim(
        self, source: Pixels, output: Pixels, parameters: Mapping[str, Any], border: Border
    ) -> None:
        """Copy the colours of `source` to the rim of `output` for border ``keep``.

        Both have shape (height, width, channels). The rim is the area within the radius of the
        image's edge. Where the result has colours and the source is grey, it stays grey. The
        kernels of volumes keep theirs themselves.
        """
        radius = self.radius(parameters)
        if border is not Border.KEEP or radius == 0 or self.kind is Kind.VOLUME:
            return
        height, width, channels = source.shape
        colours = output[:, :, : colour_count(output.shape[2])]
        kept = source[:, :, : colour_count(channels)]
        bottom, right = height - radius, width - radius
        for rim in (
            np.s_[:radius],
            np.s_[bottom:],
            np.s_[radius:bottom, :radius],
            np.s_[radius:bottom, right:],
        ):
            colours[rim] = kept[rim]

    def parameter(self, name: str) -> Parameter:
        """Return the parameter called `name`, or raise `InvalidParameter`."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        names = ", ".join(parameter.name for parameter in self.parameters) or "none"
        raise InvalidParameter(f"{self.name} has no parameter “{name}”.", f"It has: {names}.")

    def defaults(self) -> dict[str, Any]:
        """Return the default of every parameter."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def validate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters, `values` checked and the others at their defaults.

        Raises `InvalidParameter` for an unknown name, a value out of range, or values that do not
        go together.
        """
        validated = self.defaults()
        for name, value in values.items():
            validated[name] = self.parameter(name).validate(value)
        self.check(validated)
        return validated

    def describe(
        self,
        values: Mapping[str, Any],
        estimates: Mapping[str, Any] | None = None,
        *,
        grey: bool = False,
    ) -> str:
        """Return ``Median, mask size 5 px``-like text for labels and logs.

        `estimates` are named too, see `estimates` above. Of a `grey` source, nothing is said about
        its colours.
        """
        found = estimates or {}
        parts = [self.name]
        for parameter in self.parameters:
            value = values[parameter.name]
            if parameter.name in found:
                parts.append(f"estimated {parameter.describe(rounded(found[parameter.name]))}")
            elif parameter.acts(values, grey=grey) and not parameter.is_absent(value):
                parts.append(parameter.describe(value))
        return ", ".join(parts)

    def chips(
        self,
        values: Mapping[str, Any],
        estimates: Mapping[str, Any] | None = None,
        *,
        grey: bool = False,
    ) -> tuple[Chip, ...]:
        """Return a chip for each parameter that affects the result, as `describe` does."""
        found = estimates or {}
        chips = []
        for parameter in self.parameters:
            value = values[parameter.name]
            usual = parameter.format(value) == parameter.format(parameter.default)
            if parameter.name in found:
                value, usual = rounded(found[parameter.name]), False
            elif not parameter.acts(values, grey=grey) or parameter.is_absent(value):
                continue
            chips.append(Chip(parameter.name, parameter.chip(value), usual))
        return tuple(chips)
