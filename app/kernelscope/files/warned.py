"""What libraries log of a damaged file: for the user, where it is about the picture."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def warnings_of(library: str) -> Iterator[list[str]]:
    """Give a list of what a library logs on this thread; nobody else hears of it."""
    texts: list[str] = []
    thread = threading.get_ident()

    def collect(record: logging.LogRecord) -> bool:
        if record.thread != thread:
            return True
        texts.append(record.getMessage().strip())
        return False

    logger = logging.getLogger(library)
    logger.addFilter(collect)
    try:
        yield texts
    finally:
        logger.removeFilter(collect)
