"""The two equalities of requests: `Request.work` and `Request.cost_key`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.engine.area import Area
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import UNIT
from tests.pairs import together

NOISE = np.random.default_rng(1).integers(0, 256, (24, 20, 3)).astype(np.uint8)
GREY, COLOUR = Image.from_array(NOISE[:, :, 0]), Image.from_array(NOISE)
SCAN = Scan((Volume.from_array(NOISE, "head"),))
BOX = Area.parse("rectangle 2,2 8,8")


def of(filter_id: str = "median", source: Any = GREY, **settings: Any) -> Request:
    names = {"border", "grey", "axis", "within", "device", "level", "block", "gpus", "repeat"}
    others = {name: settings.pop(name) for name in names & settings.keys()}
    others |= {name: settings.pop(name) for name in {"memory_limit", "cold"} & settings.keys()}
    return Request.create(source, filter_id, settings, **others)


def then(*steps: Step, source: Any = GREY) -> Request:
    return replace(of(source=source), then=tuple(map(RunSettings, steps)))


def on(device: Device, **options: Any) -> Request:
    return of(device=device, **options)


CPU, GPU, EMULATED = Device.CPU, Device.GPU, Device.EMULATED
SAME, OTHER = True, False

PAIRS: dict[str, tuple[Request, Request, bool, bool]] = {
    # name: two requests, the same work?, the same cost?
    "twice": (of(), of(), SAME, SAME),
    "a copy of the picture": (
        of(),
        of(source=Image.from_array(GREY.pixels.copy(), "copy")),
        SAME,
        SAME,
    ),
    "one other sample": (
        of(),
        of(source=Image.from_array(GREY.pixels + (GREY.pixels == GREY.pixels[5, 5]))),
        OTHER,
        SAME,
    ),
    "another size of picture": (of(), of(source=Image.from_array(GREY.pixels[:-1])), OTHER, SAME),
    "another white": (
        of(source=Image(NOISE[:, :, 0].astype(np.float32))),
        of(source=Image(NOISE[:, :, 0].astype(np.float32), given_levels=UNIT)),
        OTHER,
        SAME,
    ),
    "another type": (
        of(),
        of(source=Image.from_array(GREY.pixels.astype(np.uint16))),
        OTHER,
        OTHER,
    ),
    "colour": (of(), of(source=COLOUR), OTHER, OTHER),
    "grey of a grey picture": (of(), of(grey=True), SAME, SAME),
    "grey of a colour picture": (of(source=COLOUR), of(source=COLOUR, grey=True), OTHER, OTHER),
    "grey of slices": (of(source=SCAN), of(source=SCAN, grey=True), SAME, SAME),
    "grey after greyscale": (
        then(Step.create("median"), source=COLOUR),
        then(Step.create("median", grey=True), source=COLOUR),
        OTHER,
        OTHER,
    ),
    "grey after a grey step": (
        then(Step.create("median")),
        then(Step.create("median", grey=True)),
        SAME,
        SAME,
    ),
    "another filter": (of(), of("mean"), OTHER, OTHER),
    "another size": (of(size=3), of(size=5), OTHER, OTHER),
    "the default, given": (of(), of(size=of().step.parameters["size"]), SAME, SAME),
    "another border": (of(), of(border=Border.WRAP), OTHER, SAME),
    "a border that no pixel reaches": (
        of("greyscale"),
        of("greyscale", border=Border.WRAP),
        SAME,
        SAME,
    ),
    "a border of the whole picture": (
        of("nlm", search="image"),
        of("nlm", search="image", border=Border.WRAP),
        OTHER,
        SAME,
    ),
    "a parameter without effect": (
        of("nlm", weights="uniform", patch_sigma=1.0),
        of("nlm", weights="uniform", patch_sigma=2.0),
        SAME,
        SAME,
    ),
    "a parameter with an effect": (
        of("nlm", weights="gaussian", patch_sigma=1.0),
        of("nlm", weights="gaussian", patch_sigma=2.0),
        OTHER,
        SAME,
    ),
    "a window where the whole is searched": (
        of("nlm", search="image", search_radius=7),
        of("nlm", search="image", search_radius=9),
        SAME,
        SAME,
    ),
    "another axis of slices": (of(source=SCAN), of(source=SCAN, axis=1), OTHER, SAME),
    "the axis of a picture": (of(), of(axis=1), SAME, SAME),
    "within an area": (of(), of(within=BOX), OTHER, OTHER),
    "a part": (of(), replace(of(), region=Region(0, 0, 8, 8)), SAME, SAME),
    "reduced": (of(), replace(of(), reduction=2), SAME, SAME),
    "live": (of(), replace(of(), live=True), SAME, SAME),
    "with a reference": (of(), replace(of(), reference=GREY), SAME, SAME),
    "one more step": (of(), then(Step.create("mean")), OTHER, OTHER),
    "steps in another order": (
        then(Step.create("mean"), Step.create("sobel")),
        then(Step.create("sobel"), Step.create("mean")),
        OTHER,
        OTHER,
    ),
    "a later border": (
        then(Step.create("mean")),
        then(Step.create("mean", border=Border.WRAP)),
        OTHER,
        SAME,
    ),
    "a later number, estimated": (
        then(Step.create("nlm", {"filter_sigma": 0.1})),
        then(Step.create("nlm", {"filter_sigma": ESTIMATE})),
        OTHER,
        SAME,
    ),
    "another device": (on(CPU), on(GPU), SAME, OTHER),
    "emulated": (on(GPU), on(EMULATED), SAME, OTHER),
    "another level": (on(CPU, level="serial"), on(CPU, level="parallel"), SAME, OTHER),
    "the fastest level, by its name": (on(CPU), on(CPU, level="parallel"), SAME, SAME),
    "repeats": (on(GPU), on(GPU, repeat=9), SAME, OTHER),
    "repeats on the CPU": (on(CPU), on(CPU, repeat=9), SAME, SAME),
    "a block on the CPU": (on(CPU), on(CPU, block=(8, 8)), SAME, SAME),
    "a block where it is fixed": (
        on(GPU, level="tuned"),
        on(GPU, level="tuned", block=(8, 8)),
        SAME,
        SAME,
    ),
    "another block": (
        on(GPU, level="global", block=(16, 16)),
        on(GPU, level="global", block=(8, 8)),
        SAME,
        OTHER,
    ),
    "another block, emulated": (
        on(EMULATED, level="global", block=(16, 16)),
        on(EMULATED, level="global", block=(8, 8)),
        SAME,
        OTHER,
    ),
    "a limit on the CPU": (on(CPU), on(CPU, memory_limit=1 << 20), SAME, SAME),
    "a limit": (on(GPU), on(GPU, memory_limit=1 << 20), SAME, OTHER),
    "fewer GPUs": (on(GPU), on(GPU, gpus=1), SAME, OTHER),
    "fewer GPUs, emulated": (on(EMULATED), on(EMULATED, gpus=1), SAME, SAME),
    "a cold cache": (on(GPU), on(GPU, cold=True), SAME, OTHER),
    "a cold cache of the CPU": (on(CPU), on(CPU, cold=True), SAME, SAME),
}


@together("name", PAIRS)
def test_two_requests_have_the_same_work_or_cost_or_not(name: str) -> None:
    first, second, work, cost = PAIRS[name]
    assert (first.work == second.work) is work
    assert (first.cost_key == second.cost_key) is cost
    hash(first.work)
