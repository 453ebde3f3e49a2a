"""The thread that owns a context: whoever waits for it can be interrupted."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from kernelscope.backends.cuda.thread import OwnerThread
from tests.patience import PATIENCE


@pytest.fixture
def owner() -> Iterator[OwnerThread]:
    owner = OwnerThread("owner")
    yield owner
    owner.end()


def test_its_own_timeout_is_told(owner: OwnerThread) -> None:
    def fail() -> None:
        raise TimeoutError("of the function")

    with pytest.raises(TimeoutError, match="of the function"):
        owner.call(fail)


def test_an_error_leaves_no_cycle_behind(owner: OwnerThread) -> None:
    """One would keep the image of a failed run until garbage is collected."""

    class Image:
        pass

    def fail(image: Image) -> None:
        raise ValueError("not this one")

    image = Image()
    left = weakref.ref(image)
    gc.disable()
    try:
        with pytest.raises(ValueError, match="not this one"):
            owner.call(fail, image)
        del image
        owner.call(int)  # after which the thread has let go of the call before
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.skipif(sys.platform == "win32", reason="has no signals for threads")
def test_ctrl_c_ends_a_wait_though_another_thread_took_the_signal(owner: OwnerThread) -> None:
    """As the system may choose: a wait without a limit would go on to its end."""
    over = threading.Event()

    def take_the_signal() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        over.wait(2 * PATIENCE)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        owner.call(take_the_signal)
    assert time.monotonic() - start < PATIENCE
    over.set()


def test_a_thread_that_has_ended_is_not_the_one_that_has_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = OwnerThread("ended")
    number = thread.call(threading.get_ident)
    assert thread.call(lambda: thread.is_current)
    thread.end()
    monkeypatch.setattr(threading, "get_ident", lambda: number)
    assert not thread.is_current
