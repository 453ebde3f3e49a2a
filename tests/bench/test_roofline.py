"""Least times: each bound by hand, from traffic that was written down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelscope.bench.memory_ladder import Limiter, bounds_of, predict
from kernelscope.traffic.gpus import GPUS, Gpu, gpu, gpu_here
from kernelscope.traffic.trace import ENTRY, Array, Counts, Event, MemorySpace, Scene

PLAIN = Gpu(
    name="plain",
    year=2020,
    capability=(8, 0),
    multiprocessors=10,
    cores=640,
    clock=1e9,
    bandwidth=100e9,
    cache=1 << 20,
    cache_clock=512,
    texels=40e9,
)

ARRAYS = (
    Array("source", MemorySpace.GLOBAL, 1 << 20),
    Array("tile", MemorySpace.SHARED, 1 << 10),
    Array("texture", MemorySpace.TEXTURE, 1 << 20),
)


def counts(blocks: int = 100, operations: float = 0.0, **totals: int) -> Counts:
    """Return a launch with reads of each array: ``shared_wavefronts=7`` and so on."""
    scene = Scene(
        "kernel", "global", "Global memory", (blocks, 1, 1), (32, 1, 1), ARRAYS, {},
        (100, 100, 1), operations,
    )  # fmt: skip
    entries = np.zeros(3, ENTRY)
    footprint = np.zeros((3, 2), np.int64)
    entries["array"], entries["event"] = [0, 1, 2], Event.READ
    for name, value in totals.items():
        space, _, field = name.partition("_")
        number = ["global", "shared", "texture"].index(space)
        if field == "footprint":
            footprint[number, Event.READ] = value
        else:
            entries[field][number] = value
    return Counts(scene, entries, footprint, 0, blocks)


def test_sectors_pass_the_device_memory_once() -> None:
    found = bounds_of(counts(global_footprint=5000, texture_footprint=3000), PLAIN)
    assert found[Limiter.MEMORY] == pytest.approx(8000 * 32 / 100e9)


def test_without_caches_every_load_goes_to_device_memory() -> None:
    old = replace(PLAIN, capability=(1, 2))
    many = counts(global_sectors=900, global_requests=200, global_footprint=10)
    few = counts(global_sectors=300, global_requests=200, global_footprint=10)
    assert bounds_of(many, old)[Limiter.MEMORY] == pytest.approx(900 * 32 / 100e9)
    # Each half of a warp asks for a segment of its own.
    assert bounds_of(few, old)[Limiter.MEMORY] == pytest.approx(400 * 32 / 100e9)
    textured = counts(texture_sectors=900, texture_footprint=10)
    assert bounds_of(textured, old)[Limiter.MEMORY] == pytest.approx(10 * 32 / 100e9)


def test_loads_and_turns_share_the_multiprocessors() -> None:
    launch = counts(global_requests=3000, shared_wavefronts=5000, shared_requests=4000)
    assert bounds_of(launch, PLAIN)[Limiter.LOADS] == pytest.approx(8000 / (10 * 1e9))
    fermi = replace(PLAIN, capability=(2, 0))
    assert bounds_of(launch, fermi)[Limiter.LOADS] == pytest.approx(16000 / (10 * 1e9))
    tesla = replace(PLAIN, capability=(1, 2))
    assert bounds_of(launch, tesla)[Limiter.LOADS] == pytest.approx(32000 / (10 * 1e9))


def test_multiprocessors_without_a_block_do_nothing() -> None:
    launch = counts(
        blocks=1, operations=64.0, global_requests=3000, global_footprint=9, texture_accesses=4000
    )
    found = bounds_of(launch, PLAIN)
    assert found[Limiter.LOADS] == pytest.approx(3000 / 1e9)
    assert found[Limiter.ARITHMETIC] == pytest.approx(64 * 10_000 / (2 * 64 * 1e9))
    assert found[Limiter.TEXTURE] == pytest.approx(4000 / 4e9)
    assert found[Limiter.MEMORY] == pytest.approx(9 * 32 / 100e9)  # which all of them share


def test_bounds_without_a_published_rate_are_missing() -> None:
    launch = counts(global_block_sectors=640, texture_accesses=4000)
    found = bounds_of(launch, PLAIN)
    assert found[Limiter.CACHE] == pytest.approx(640 * 32 / (512 * 1e9))
    assert found[Limiter.TEXTURE] == pytest.approx(4000 / 40e9)
    bare = bounds_of(launch, replace(PLAIN, cache_clock=None, texels=None))
    assert Limiter.CACHE not in bare
    assert Limiter.TEXTURE not in bare


def test_launches_wait_for_each_other() -> None:
    loads = counts(global_requests=30_000)
    memory = counts(global_footprint=1_000_000)
    found = predict([loads, memory, loads], PLAIN)
    assert found.seconds == pytest.approx(2 * 30_000 / 1e10 + 32e6 / 100e9)
    assert found.limit is Limiter.MEMORY
    assert found.bounds[Limiter.LOADS] == pytest.approx(60_000 / 1e10)


@pytest.mark.parametrize(
    ("measured", "far"), [(0.7, False), (0.6, True), (1.4, False), (1.6, True)]
)
def test_far_is_half_as_much_again(measured: float, far: bool) -> None:
    found = predict([counts(global_footprint=1_000_000)], PLAIN)
    assert found.is_far(measured * found.seconds) is far


def test_cards_are_found_by_name() -> None:
    assert gpu("h100") is next(each for each in GPUS if each.name == "H100")
    assert gpu("Voodoo 2") is None


@pytest.mark.parametrize("each", GPUS, ids=lambda each: each.name)
def test_published_data_are_in_proportion(each: Gpu) -> None:
    """A slip of a power of ten in the data would show here."""
    assert each.cores % each.multiprocessors == 0
    assert each.cores // each.multiprocessors in (8, 32, 48, 64, 128, 192)
    assert 0.5e9 < each.clock < 3e9
    assert 0.02 < each.bandwidth / (each.cores * each.clock) < 1.0
    if each.texels is not None:
        units = each.texels / each.clock / each.multiprocessors
        assert 1.5 < units < 17
    assert each.source.startswith("http")


FACTS = {
    "Name": "NVIDIA H100 80GB HBM3",
    "Compute capability": "9.0",
    "Multiprocessors": "132",
    "CUDA cores": "16,896 (128 per multiprocessor)",
    "Highest clock": "1,485",
    "Theoretical bandwidth": "3,352",
}


def test_the_card_of_this_computer_has_the_rates_of_its_driver() -> None:
    here = gpu_here(FACTS)
    assert here is not None
    assert here.is_here
    assert (here.name, here.capability) == ("NVIDIA H100 80GB HBM3", (9, 0))
    assert (here.multiprocessors, here.cores) == (132, 16896)
    assert (here.clock, here.bandwidth) == (1.485e9, 3.352e12)
    # An H100 that runs at three quarters of the published clock.
    published = gpu("H100")
    assert published is not None
    assert published.texels is not None
    assert here.texels == pytest.approx(0.75 * published.texels)
    assert here.cache_clock == published.cache_clock


def test_rates_that_are_not_known_here_are_not_guessed() -> None:
    here = gpu_here({**FACTS, "Multiprocessors": "100", "CUDA cores": "12,800 (128 per ...)"})
    assert here is not None
    assert (here.texels, here.cache_clock, here.cache) == (None, None, None)
    for name in FACTS:
        assert gpu_here({key: value for key, value in FACTS.items() if key != name}) is None
