"""Runs one request from start to end, on the calling thread.

Choose a backend (for Auto: the one that should be faster, by earlier runs), compute, compare the
output with the reference, and remember the cost. Only Auto falls back: if the GPU fails, the CPU
computes and a notice says why. An explicit choice raises.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from kernelscope.base import memory
from kernelscope.base.durations import duration
from kernelscope.base.errors import (
    AppError,
    Cancelled,
    DeviceUnavailable,
    Incomparable,
    InvalidParameter,
    OutOfMemory,
)
from kernelscope.engine.backend import Backend
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.cropping import check_box, execute_region, filter_area, resolved_for
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Judgement, Result, estimate_notices
from kernelscope.engine.scaling import levels_notice, run_scaled, with_sign
from kernelscope.engine.slices import filter_slices
from kernelscope.engine.stabilising import (
    has_noise_to_find,
    noise_notice,
    run_stabilised,
    with_noise,
)
from kernelscope.engine.transparency import run_visible, to_grey
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import Quality, judge, judge_volume
from kernelscope.images.judging.whiteness import (
    picture_correlation,
    removed_correlation,
    structure_notice,
)
from kernelscope.images.reduction import reduced
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.blocks import block_name, takes_block
from kernelscope.schema.crop import Box
from kernelscope.schema.levels import Level
from kernelscope.schema.samples import Kind

_logger = logging.getLogger(__name__)

GPU_PIXELS = 512 * 512
"""From this size on Auto expects the GPU to be faster, until it has measured both."""

TRIAL_PIXELS = 1024 * 1024
"""Up to here Auto tries both devices, one in each run, to learn their costs."""

_UNASKED_BYTES = 2**20
"""Up to here the system is not asked for its free memory, which takes longer than such a filter."""


def execute(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
    *,
    learn: bool = True,
) -> Result:
    """Compute `request` on the device it asks for.

    - `backends`: backends by id, the fastest kind first; ``cpu`` is always there.
    - `costs`: times of earlier runs, from which Auto chooses.
    - `learn`: add the time of this run to `costs`. A region counts as a run on its crop.

    Raises `AppError` for every problem that the user can fix; an explicit choice of a device never
    falls back; `Cancelled` if `token` was set meanwhile.
    """
    assert not request.then, "run by kernelscope.engine.steps"
    assert not request.needs_estimates, "run by kernelscope.engine.steps"
    token = token or CancelToken()
    learn = learn and costs is not None
    costs = costs or Costs()

    def compute(request: Request) -> Result:
        backend, notices = _choose(request, backends, costs)
        if request.region is not None:
            check_box(request, backend)
        try:
            result = _run(request, backend, notices, _begin(request, backend, token, progress))
        except AppError as error:
            if request.options.device is not Device.AUTO or request.options.level is not None:
                raise
            cpu = backends[Device.CPU.value]
            if backend is cpu:
                raise
            notice = f"Auto used the CPU, because the {backend.name} failed: {error.message}"
            return _run(request, cpu, (notice,), _begin(request, cpu, token, progress))
        if learn and not request.live:
            remember(result, backends, costs)
        return result

    is_part = isinstance(request.region, Region)
    return _with_count(execute_region(request, compute) if is_part else compute(request))


def _with_count(result: Result) -> Result:
    """Return a result with the number of samples that it changed, if its filter reports that."""
    request, output, spec = result.request, result.output, result.request.step.filter
    source, part = request.source, request.region
    if not spec.changed or request.reduction > 1:
        return result
    if isinstance(source, Image) and isinstance(output, Image) and output.is_grey:
        source = to_grey(source)
    before, after = source.planes if part is None else part.of(source.planes), output.planes
    changed = int(np.count_nonzero((before != after) & (after == after)))  # NaN stays
    text = f"{changed} samples" if changed > 1 else "1 sample" if changed else "no sample"
    notice = f"{spec.name}: {spec.changed} {text}{'' if part is None else ' in this part'}."
    return replace(result, changed=changed, notices=(*result.notices, notice))


def remember(result: Result, backends: Mapping[str, Backend], costs: Costs) -> None:
    """Add the time of a run to `costs`, where Auto has a choice that it may help to make."""
    request = result.request
    # Other options would skew the costs: a limit, a block, a part of the GPUs, an empty cache.
    usual = request.options.is_usual
    # The time of a slice, or of a region or an area, is not that of the source.
    limited = request.region is not None or request.step.within is not None
    whole = not request.by_slices and not limited
    if usual and whole and _has_gpu(request, backends):
        costs.record(result, backends[result.device].availability().summary)


def _begin(
    request: Request, backend: Backend, token: CancelToken, progress: Progress
) -> RunContext:
    """Start the clock of a run, at the seconds that measuring for it took before."""
    before = request.measured.seconds if request.measured else 0.0
    # The stages of an emulated run would read like those of a GPU.
    logged = not request.live and backend.id != Device.EMULATED
    log = RunLog(time.perf_counter() - before, logged=logged)
    if before:
        log.add("prepare", before, begun=log.origin)
    return RunContext(log, token, progress)


def _has_gpu(request: Request, backends: Mapping[str, Backend]) -> bool:
    gpu = backends.get(Device.GPU.value)
    return (
        gpu is not None and gpu.availability().available and bool(gpu.levels(request.step.filter))
    )


def _run(
    request: Request,
    backend: Backend,
    notices: tuple[str, ...],
    context: RunContext,
) -> Result:
    level = _level(request, backend)
    if request.options.block is not None and not _takes_block(request, backend, level):
        notices = (*notices, _block_has_no_effect(request, backend, level))
        request = replace(request, options=replace(request.options, block=None))
    logged = not request.live and _logger.isEnabledFor(logging.INFO)  # texts take their time
    if logged:
        _logger.info(
            "%s: %s, %s", request.source.describe(), request.describe(), level.on(backend.name)
        )
    log = context.log
    if not level.exact:
        log.notices.append(f"Level {level.name} shows a fault: its result is wrong.")
    check_memory(request)
    with shortage_explained(request.source):
        output = _compute(request, backend, level, context)
        quality = _judge(request, output, backend, context)
        correlation = _look_for_structure(request, output, context)
    result = Result(
        request.computed_by(log.stand_in or None),
        output,
        backend.id,
        level.id,
        log.stages,
        (*notices, *estimate_notices(request, log.estimates), *dict.fromkeys(log.notices)),
        tuple(log.metrics),
        log.launch,
        quality,
        log.estimates,
        log.first,
        correlation=correlation,
        uncompiled=log.uncompiled,
    )
    if result.is_emulated and logged:
        _logger.info("Done: emulated on the processor, not timed")
    elif logged:
        _logger.info(
            "Done in %.3f ms, %.1f %s, without %.3f ms of compiling",
            result.seconds * 1e3,
            result.speed,
            result.speed_unit,
            result.compile_seconds * 1e3,
        )
    return result


_SMALLER = "Close other programs or use a smaller image."


@contextlib.contextmanager
def shortage_explained(source: Source) -> Iterator[None]:
    """Raise `OutOfMemory` for any error that is due to a lack of memory."""
    try:
        yield
    except (AppError, Cancelled):
        raise
    except Exception as error:
        if not memory.is_shortage(error):
            raise
        raise OutOfMemory(
            f"There is not enough memory to filter {source.describe()}.", _SMALLER
        ) from error


def check_memory(request: Request) -> None:
    """Refuse a request whose result alone is more than there is memory.

    Raises `OutOfMemory` if so. Further memory depends on the level, and is only known when it runs.
    """
    needed = math.prod(request.output_shape) * request.source.dtype.itemsize
    if needed <= _UNASKED_BYTES:
        return
    memory.require(needed, f"to filter {request.source.describe()}", _SMALLER)


def _takes_block(request: Request, backend: Backend, level: Level) -> bool:
    runs_kernels = backend.id in (Device.GPU, Device.EMULATED)
    return runs_kernels and takes_block(request.step.filter, level.id)


def _block_has_no_effect(request: Request, backend: Backend, level: Level) -> str:
    assert request.options.block is not None
    spec = request.step.filter
    others = [each.id for each in spec.levels(Device.GPU) if takes_block(spec, each.id)]
    where = (
        f"GPU levels with a choice: {', '.join(others)}." if others else "No level has a choice."
    )
    return (
        f"The block size {block_name(request.options.block)} has no effect: {spec.name} at "
        f"{backend.name} {level.name.lower()} has a fixed one. {where}"
    )


def _cautions(request: Request) -> tuple[str, ...]:
    spec = request.step.filter
    caution = spec.caution(request.step.parameters)
    return (f"{spec.name}: {caution}",) if caution else ()


def _compute(
    request: Request,
    backend: Backend,
    level: Level,
    context: RunContext,
) -> Source:
    def compute(one: Request) -> Source:
        return run_scaled(one, in_its_unit, context)

    def in_its_unit(one: Request) -> Source:
        return run_filter(one) if one.noise is None else run_stabilised(one, run_filter, context)

    def run_filter(one: Request) -> Source:
        if isinstance(one.region, Box):
            with context.log.stage("measure", counted=False):  # once for several boxes
                one = resolved_for(one)
        return backend.run(one, level, context)

    def run(one: Request) -> Source:
        one = with_sign(one)
        if has_noise_to_find(one):
            with context.log.stage("measure"):
                one = with_noise(one)
            context.log.notices += noise_notice(one)
        return run_visible(one, compute)

    context.log.notices += (*levels_notice(request), *_cautions(request))
    if request.step.filter.is_in_3d and len(request.scan.volumes) > 1:
        return _one_by_one(request, backend, level, context)
    if not request.by_slices:
        if request.step.within is not None:
            output: Source = filter_area(request, run)
        else:
            output = run(request)
        if request.reduction > 1 and output.shape != request.output_shape:  # as a GPU does itself
            with context.log.stage("convert"):
                output = output.like(reduced(output.planes, request.reduction))
        return output

    def filter_slice(one: Request, report: Progress) -> Image:
        inner = context.reporting_to(report)
        image = run_stabilised(
            with_noise(one), lambda stable: backend.run(stable, level, inner), inner
        )
        assert isinstance(image, Image)
        return image

    return filter_slices(request, filter_slice, context)


def _one_by_one(request: Request, backend: Backend, level: Level, context: RunContext) -> Source:
    """Return the results of several volumes that a filter does not compare with each other."""
    made: list[Volume] = []
    most = 0.0

    def report(stage: str, fraction: float) -> None:
        nonlocal most
        done = fraction if stage in ("compute", "kernel") else 0.0
        most = max(most, (len(made) + done) / len(request.scan.volumes))
        context.progress(stage, most)

    for volume in request.scan.volumes:
        one = replace(request, source=Scan((volume,)))
        output = _compute(one, backend, level, context.reporting_to(report))
        assert isinstance(output, Scan)
        made += output.volumes
    return Scan(tuple(made))


def _look_for_structure(request: Request, output: Source, context: RunContext) -> float | None:
    """Return the correlation of neighbours in the part that a denoiser removed; else None.

    A notice warns where one of volumes removed more than noise.
    """
    step, source = request.step, request.source
    whole = request.region is None and step.within is None and request.reduction == 1
    if step.filter.category != "Denoising" or not whole or request.live:
        return None
    found: list[float | None] = []
    with context.log.stage("judge", counted=False):
        if isinstance(source, Image) and isinstance(output, Image):
            before = to_grey(source) if output.is_grey else source
            found.append(picture_correlation(colours(before.planes), colours(output.planes)))
        elif step.filter.kind is Kind.VOLUME:
            assert isinstance(source, Scan)
            assert isinstance(output, Scan)
            for one, other in zip(source.volumes, output.volumes, strict=True):
                found.append(removed_correlation(one.voxels, other.voxels))
                warning = structure_notice(found[-1], one.title)
                if warning:
                    context.log.notices.append(warning)
    return max((each for each in found if each is not None), key=abs, default=None)


def _judge(
    request: Request,
    result: Source,
    backend: Backend,
    context: RunContext,
) -> Judgement | None:
    """Compare input and result with the reference, if there is one that they compare with."""
    reference = request.reference
    if reference is None:
        return None
    if not request.step.filter.restores:
        context.log.notices.append(
            f"{request.step.filter.name} does not restore a picture: "
            "its result is not compared with the reference."
        )
        return None

    check = context.token.check

    def of(image: Source) -> Quality:
        if isinstance(image, Scan):
            assert isinstance(reference, Volume)
            return judge_volume(image.volumes[0].voxels, reference.voxels, check, reference.levels)
        assert isinstance(image, Image)
        assert isinstance(reference, Image)
        try:
            mse = backend.mean_squared_error(image, reference)
        except DeviceUnavailable as error:  # The result is there; the CPU can judge it.
            context.log.notices.append(str(error))
            mse = None
        return judge(colours(image.planes), colours(reference.planes), check, mse, reference.levels)

    context.progress("judge", 0.0)
    with context.log.stage("judge", counted=False):
        try:
            after = of(result)
        except Incomparable as error:
            context.log.notices.append(f"The result cannot be compared with the reference: {error}")
            return None
        with contextlib.suppress(Incomparable):
            return Judgement(of(request.source), after)
        return Judgement(None, after)


def _choose(
    request: Request, backends: Mapping[str, Backend], costs: Costs
) -> tuple[Backend, tuple[str, ...]]:
    """Return the backend for a request, and notices about the choice."""
    if request.options.device is not Device.AUTO:
        return usable(request.options.device, backends), ()
    if request.options.level is None:
        return _cheapest(request, backends, costs)
    for backend in automatic(backends):
        if any(level.id == request.options.level for level in backend.levels(request.step.filter)):
            return backend, ()
    return backends[Device.CPU.value], ()


def chosen(
    request: Request, backends: Mapping[str, Backend], costs: Costs
) -> tuple[Backend, Level, tuple[str, ...]]:
    """Return where a run of one step would go now, with notices about the choice of Auto."""
    backend, notices = _choose(request, backends, costs)
    return backend, _level(request, backend), notices


def expected(request: Request, backends: Mapping[str, Backend], costs: Costs) -> float | None:
    """Return the seconds that a whole run of one step should take, from others that were measured.

    On the device that the run would choose; None where no run of its kind and about its size was.
    """
    if request.then or request.region is not None or request.step.within is not None:
        return None
    try:
        backend, _ = _choose(request, backends, costs)
        return _predicted(request, backend, costs)
    except AppError:
        return None


def _predicted(request: Request, backend: Backend, costs: Costs) -> float | None:
    level = _level(request, backend).id
    return costs.predict(request, backend.availability().summary, level)


def automatic(backends: Mapping[str, Backend]) -> Iterator[Backend]:
    """Yield the backends that Auto may choose: those that are there, and are no emulator."""
    for backend in backends.values():
        if backend.id != Device.EMULATED and backend.availability().available:
            yield backend


def usable(device: Device, backends: Mapping[str, Backend]) -> Backend:
    """Return the backend of an explicit choice, or raise `DeviceUnavailable`."""
    backend = backends.get(device.value)
    if backend is None:
        raise DeviceUnavailable(f"This program has no {device.upper()} backend.")
    state = backend.availability()
    if not state.available:
        remedy = (
            f"To have it: {'; '.join(state.steps)}."
            if device is Device.EMULATED and state.steps
            else "“info” lists the requirements of a GPU."
        )
        raise DeviceUnavailable(
            f"The {backend.name} cannot be used: {state.summary}", f"Choose CPU or Auto. {remedy}"
        )
    return backend


def _cheapest(
    request: Request, backends: Mapping[str, Backend], costs: Costs
) -> tuple[Backend, tuple[str, ...]]:
    """Return the backend that should take the least time, and why, if there is a choice."""
    cpu = backends[Device.CPU.value]
    if not _has_gpu(request, backends):
        return cpu, ()
    gpu = backends[Device.GPU.value]
    on_gpu, on_cpu = (_predicted(request, each, costs) for each in (gpu, cpu))
    pixels = math.prod(request.source.shape[:-1])
    likely, other = (gpu, cpu) if pixels >= GPU_PIXELS else (cpu, gpu)
    if on_gpu is not None and on_cpu is not None:
        choice = gpu if on_gpu <= on_cpu else cpu
        times = f"{duration(on_gpu)} on the GPU, {duration(on_cpu)} on the CPU"
        return choice, (f"Auto chose the {choice.name}: it expects {times}.",)
    known = on_gpu if likely is gpu else on_cpu
    if known is not None and pixels <= TRIAL_PIXELS:
        return other, (f"Auto chose the {other.name} this time, to measure it too.",)
    return likely, (f"Auto chose the {likely.name}, as usual for pictures of this size.",)


def _level(request: Request, backend: Backend) -> Level:
    levels = backend.levels(request.step.filter)
    if not levels:
        raise InvalidParameter(
            f"{request.step.filter.name} does not run on the {backend.name}.", "Choose CPU or Auto."
        )
    if request.options.level is None:
        return levels[-1]
    for level in levels:
        if level.id == request.options.level:
            return level
    offered = ", ".join(level.id for level in levels)
    raise InvalidParameter(
        f"{request.step.filter.name} has no level “{request.options.level}” on the {backend.name}.",
        f"Use one of {offered}.",
    )
