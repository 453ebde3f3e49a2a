"""The session of the library: one run at a time on a GPU, tokens that ask the caller."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.base.errors import Cancelled
from kernelscope.engine.backend import Backend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.library.session import OneByOne, PolledToken
from kernelscope.schema.levels import GLOBAL, Level
from tests.patience import PATIENCE

REQUEST = Request.create(Image.from_array(np.zeros((4, 4), np.uint8)), "median")


class Card:
    """A GPU that counts the runs at the same time."""

    id, name = "gpu", "GPU"

    def __init__(self) -> None:
        self.running = self.most = 0
        self.begun, self.finish = threading.Event(), threading.Event()

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.set()
        assert self.finish.wait(PATIENCE)
        self.running -= 1
        return request.source


def test_a_gpu_runs_one_request_at_a_time() -> None:
    card, waiting, all_wait = Card(), set[int](), threading.Event()
    backend = OneByOne(cast(Backend, card))

    def look() -> bool:  # asked by those that wait
        waiting.add(threading.get_ident())
        if len(waiting) == 3:
            all_wait.set()
        return False

    with ThreadPoolExecutor(4) as pool:
        context = RunContext(token=PolledToken(look))
        runs = [pool.submit(backend.run, REQUEST, GLOBAL, context) for _ in range(4)]
        try:
            assert card.begun.wait(PATIENCE)
            assert all_wait.wait(PATIENCE)
        finally:
            card.finish.set()
        for run in runs:
            assert run.result(PATIENCE) is REQUEST.source
    assert card.most == 1


def test_waiting_for_a_gpu_can_be_cancelled() -> None:
    card, stop = Card(), threading.Event()
    backend = OneByOne(cast(Backend, card))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(backend.run, REQUEST, GLOBAL, RunContext())
        assert card.begun.wait(PATIENCE)
        context = RunContext(token=PolledToken(stop.is_set))
        second = pool.submit(backend.run, REQUEST, GLOBAL, context)
        stop.set()
        try:
            with pytest.raises(Cancelled):
                second.result(PATIENCE)
            assert not first.done()
        finally:
            card.finish.set()


def test_the_caller_is_asked_by_one_thread_at_a_time_and_not_again() -> None:
    asking, answer = threading.Event(), threading.Event()
    calls: list[Any] = []

    def stop() -> bool:
        calls.append(threading.get_ident())
        asking.set()
        return answer.wait(PATIENCE)

    token = PolledToken(stop)
    thread = threading.Thread(target=lambda: token.cancelled)
    thread.start()
    assert asking.wait(PATIENCE)
    assert not token.cancelled  # nothing is known yet, and nobody waits
    answer.set()
    thread.join()
    assert token.cancelled
    with pytest.raises(Cancelled):
        token.check()
    assert len(calls) == 1


@pytest.mark.slow
def test_a_value_without_effect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    voxels = np.random.default_rng(0).integers(20, 200, (8, 16, 16), np.uint8)
    ks.mri_nlm(voxels, sigma_from="adaptive", window_radius=1)
    note = "MRI NLM: window radius 1 voxel has no effect with these settings."
    assert note in caplog.messages
