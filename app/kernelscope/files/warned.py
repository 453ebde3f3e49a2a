"""Collects warnings that libraries log about a damaged file, to show them to the user."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def warnings_of(library: str) -> Iterator[list[str]]:
    """Provide a list of a library's log records on this thread, kept out of other handlers."""
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
