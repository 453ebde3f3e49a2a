"""Emptying the card's cache, on a driver that the test makes up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kernelscope.backends.cuda.kernel import evictor

CACHE = 50 << 20


def test_rewrites_twice_the_cache_on_the_stream_of_the_kernels() -> None:
    calls: list[tuple[Any, ...]] = []
    asked: list[int] = []

    def get(name: str, size: int) -> int:
        asked.append(size)
        return 4096

    device = SimpleNamespace(
        attribute={"L2_CACHE_SIZE": CACHE}.__getitem__,
        cuda=SimpleNamespace(memset_d8_async=lambda *arguments: calls.append(arguments)),
        stream="stream",
    )
    run: Any = SimpleNamespace(device=device, spare=SimpleNamespace(get=get))
    evict = evictor(run)
    assert asked == [2 * CACHE], "memory that the run frees, whose allocation it does not time"
    assert not calls
    evict()
    evict()
    assert calls == [(4096, 0, 2 * CACHE, "stream")] * 2
