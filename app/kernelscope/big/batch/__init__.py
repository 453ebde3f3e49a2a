"""Batches: one recipe on many files, written down as it goes so that it can be resumed.

::

    listing     files and folders  ->  Item: source, target; names never collide
    conductor   reads ahead, filters, writes behind; a bad file is an outcome, not an end
    contents    reads and writes all pictures or volumes of a file
    item        the values of a batch: files, handling, hints, reports, stages, and the pause
    task        a file as JSON for another process, which never writes a target itself
    cluster     the files as tasks for the workers of a Dask cluster
    journal     lines of JSON in the output folder: files that were begun, that are done

Free of Qt and of the command line, which both use it.
"""

from kernelscope.big.batch.conductor import Batch, FileOutcome
from kernelscope.big.batch.item import (
    COMMAND_LINE,
    JOURNAL,
    FileState,
    Handling,
    Hints,
    Item,
    Pause,
    ResultReport,
)
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import FoundFiles, find_items

__all__ = [
    "COMMAND_LINE",
    "JOURNAL",
    "Batch",
    "FileOutcome",
    "FileState",
    "FoundFiles",
    "Handling",
    "Hints",
    "Item",
    "Journal",
    "Pause",
    "ResultReport",
    "find_items",
]
