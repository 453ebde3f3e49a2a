"""Runs a batch on the workers of a Dask cluster.

::

    this process: list, journal, moves results      scheduler      workers: one process a GPU
        describe(file) -- JSON ------------------------> o -------> task.filter_file
        finish(file)   <------------------------------------------- JSON

Workers are sent the name of a function and a text, no code. The scheduler gives the task of a
worker that is lost to another one. Dask is imported here alone, and only when it is used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import secrets
import shutil
import ssl
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kernelscope.base.errors import AppError
from kernelscope.base.installed import install_command
from kernelscope.base.parallel import core_count
from kernelscope.big.batch.conductor import FileOutcome, check_target, refusal
from kernelscope.big.batch.item import COMMAND_LINE, FileState, Item
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.task import (
    OPEN,
    TaskSettings,
    describe,
    filter_file,
    finish,
    times_begun,
)
from kernelscope.big.workers import LOOK_SECONDS, TRIES, SchedulerLost, Sender
from kernelscope.engine.control import CancelToken
from kernelscope.files.write_errors import explained

if TYPE_CHECKING:
    from distributed import Client, Future, Security

_CONNECT_SECONDS = 10.0  # a scheduler that has not answered by then is not there
_ENCRYPTED = ("tls", "wss")  # protocols of Dask that need keys

_BEGUN = 2
"""A file that more workers began may have ended others; one that only waited is sent again."""


class Tls(NamedTuple):
    """The files with which a command shows a scheduler who it is, and knows the scheduler."""

    ca_file: Path
    cert: Path
    key: Path


@contextmanager
def connected(address: str, tls: Tls | None = None) -> Iterator[Client]:
    distributed = _distributed()
    if tls is not None and "://" not in address:
        address = f"tls://{address}"
    security = distributed.Security(**_tls_settings(tls))
    _check_protocol(address, tls, security)
    try:
        # A client that fails to connect waits for itself when it is destroyed.
        asyncio.run(_reach(address, security))
    except (OSError, ValueError, TypeError, RuntimeError) as error:  # also an impossible address
        raise _unreached(address, tls, error) from error
    client = distributed.Client(
        address, timeout=_CONNECT_SECONDS, set_as_default=False, security=security
    )
    with _closing(client):
        yield client


def _tls_settings(tls: Tls | None) -> dict[str, Any]:
    """Return the settings of Dask for these files; it has its own configuration without them."""
    if tls is None:
        return {}
    _check_files(tls)
    return {
        "require_encryption": True,
        "tls_ca_file": str(tls.ca_file),
        "tls_client_cert": str(tls.cert),
        "tls_client_key": str(tls.key),
    }


def _check_files(tls: Tls) -> None:
    """Refuse files without a certificate or a key, before Dask tries them for seconds."""
    for file in tls:
        try:
            file.open("rb").close()
        except OSError as error:
            raise AppError(f"{file}: the file cannot be read ({error.strerror}).") from error
    context = ssl.create_default_context()
    for file in (tls.ca_file, tls.cert):
        try:
            context.load_verify_locations(file)
        except ssl.SSLError as error:
            raise AppError(f"{file}: this is no certificate.", "Give a file in PEM format.") from (
                error
            )

    def refuse() -> str:
        raise AppError(
            f"{tls.key}: the key is locked by a passphrase.",
            f"Give a copy without it: openssl pkey -in {tls.key.name} -out unlocked.pem",
        )

    try:
        context.load_cert_chain(tls.cert, tls.key, refuse)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise AppError(f"{tls.key}: this is not the key of {tls.cert}.") from error
        raise AppError(f"{tls.key}: this is no private key.", "Give a file in PEM format.") from (
            error
        )


def _check_protocol(address: str, tls: Tls | None, security: Security) -> None:
    is_encrypted = address.partition("://")[0] in _ENCRYPTED
    if tls is not None and not is_encrypted:
        raise AppError(
            f"“{address}” is an address without encryption, for which keys are of no use.",
            "Use the address that “dask scheduler --protocol tls” prints, such as "
            "tls://node1:8786.",
        )
    if is_encrypted and security.get_connection_args("client").get("ssl_context") is None:
        raise AppError(
            f"The scheduler at “{address}” wants keys.",
            "Give --tls-ca-file, --tls-cert and --tls-key.",
        )


async def _reach(address: str, security: Security) -> None:
    """Connect to a scheduler, and leave again."""
    from distributed.comm import connect

    connection = await connect(
        address, timeout=_CONNECT_SECONDS, **security.get_connection_args("client")
    )
    await connection.close()


def _unreached(address: str, tls: Tls | None, error: Exception) -> AppError:
    """Return why a scheduler could not be reached."""
    from distributed.comm.core import FatalCommClosedError
    from tornado.iostream import StreamClosedError

    # The scheduler's "unknown authority" is a fatal error without a cause, if it arrives before the
    # connection is closed.
    ended = (
        ssl.SSLError,
        ConnectionResetError,
        BrokenPipeError,
        StreamClosedError,
        FatalCommClosedError,
    )
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        by = f"{tls.ca_file}" if tls else "the authority of Dask's configuration"
        return AppError(
            f"The certificate of the scheduler at “{address}” was not signed by {by}: "
            f"{cause.verify_message}.",
            "Give the certificate of the authority that signed it to --tls-ca-file.",
        )
    if isinstance(cause, ended):
        return AppError(
            f"The scheduler at “{address}” ended the connection.",
            "It may not know the authority that signed the certificate of --tls-cert, or speak "
            "without TLS: then its address begins with tcp."
            if tls
            else "If it was started with TLS, its address begins with tls, and it wants "
            "--tls-ca-file, --tls-cert and --tls-key.",
        )
    return AppError(
        f"No scheduler answers at “{address}”.",
        "Use the address that “dask scheduler” prints, such as tcp://node1:8786.",
    )


@contextmanager
def local_workers(
    count: int, gpus: Sequence[int] | None = None, threads: int = 2
) -> Iterator[Client]:
    """Provide a cluster of `count` worker processes on this machine.

    They and this process know each other by keys that are made for the run and held in memory, so
    that no other user of the machine can send them work. `gpus`: numbers of the GPUs, which the
    workers take in turn; by default worker 0 has GPU 0, and so on, and those beyond the last GPU
    have none. `threads`: files that a worker has in work at a time; one of them is filtered.
    """
    distributed = _distributed()
    import dask

    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        raise AppError(
            "Local workers need the package cryptography, which is not installed.",
            f"Install it: {install_command('cluster')}",
        ) from error
    silent: dict[str, list[str]] = {
        f"distributed.{each}.http.routes": [] for each in ("scheduler", "worker", "nanny")
    }
    with (
        tempfile.TemporaryDirectory(prefix="kernelscope-workers-") as folder,
        dask.config.set(silent),
    ):
        here = {
            "host": "127.0.0.1",
            "protocol": "tls",
            "security": security,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
        }
        workers = {
            number: {
                "cls": distributed.Nanny,
                "options": {
                    "nthreads": threads,
                    "env": {"CUDA_VISIBLE_DEVICES": device, "KERNELSCOPE_GPU": "0"},
                    "local_directory": folder,
                    # A picture too large for the memory is refused, and its worker not killed.
                    "memory_limit": 0,
                    "silence_logs": logging.CRITICAL,
                    **here,
                },
            }
            for number, device in enumerate(pinned(count, gpus))
        }
        # Its usual port may be taken, and other machines have no business there.
        scheduler = {"cls": distributed.Scheduler, "options": {**here, "port": 0}}
        with (
            distributed.SpecCluster(
                workers, scheduler, security=security, silence_logs=logging.CRITICAL
            ) as cluster,
            _closing(
                distributed.Client(cluster, set_as_default=False, security=security)
            ) as client,
        ):
            yield client


def pinned(count: int, gpus: Sequence[int] | None) -> list[str]:
    """Return the variable CUDA_VISIBLE_DEVICES of each of `count` workers.

    Numbers of GPUs are places in the list of this process's own variable, if it has one.
    """
    own = os.environ.get("CUDA_VISIBLE_DEVICES")
    seen = own.split(",") if own is not None else None
    numbers = [gpus[each % len(gpus)] for each in range(count)] if gpus else range(count)
    if seen is None:
        return [str(number) for number in numbers]
    return [seen[number].strip() if number < len(seen) else "" for number in numbers]


def share_of_cores(count: int) -> int:
    """Return the CPU threads of each of `count` workers on this machine."""
    return max(1, core_count() // count)


class ClusterBatch:
    """A recipe on many files, filtered by workers.

    `settings`: their parts lie in a folder of the output folder, see `parts_folder`. `overwrite`:
    replace files that are there; otherwise such a file is a failure.
    """

    def __init__(
        self,
        items: Sequence[Item],
        settings: TaskSettings,
        client: Client,
        *,
        overwrite: bool = False,
    ) -> None:
        self._items, self._settings, self._overwrite = items, settings, overwrite
        self._sender = Sender(
            client,
            "Results that were done by then are kept. Start it again; the same command with "
            "--resume goes on.",
            AppError(
                "Every worker that had this file in work ended.",
                "It may need more memory than they have: filter it alone.",
            ),
        )

    def run(
        self,
        journal: Journal,
        token: CancelToken,
        report: Callable[[FileOutcome], None] = lambda outcome: None,
    ) -> list[FileOutcome]:
        """Filter all files that the journal does not have; return the outcome of each.

        `report` is called on this thread with each outcome, in the order in which files are done.
        """
        outcomes: list[FileOutcome] = []

        def note(outcome: FileOutcome) -> None:
            outcomes.append(outcome)
            report(outcome)

        waiting = []
        for item in self._items:
            if journal.is_done(item):
                note(FileOutcome(item, FileState.SKIPPED, report=journal.report(item)))
                continue
            settings = self._settings
            reason = refusal(item, settings.recipe, settings.handling, COMMAND_LINE)
            try:
                check_target(item, COMMAND_LINE, overwrite=self._overwrite)
            except AppError as error:
                reason = str(error)
            if reason:
                note(FileOutcome(item, FileState.FAILED, reason))
            else:
                waiting.append(item)
        with _folder_of_parts(self._settings):
            for item, text, reason in self._answers(waiting, token):
                if text is None:
                    note(FileOutcome(item, FileState.FAILED, reason))
                else:
                    note(self._finish(item, text, journal))
        return outcomes

    def _finish(self, item: Item, text: str, journal: Journal) -> FileOutcome:
        try:  # again: it may have come meanwhile
            check_target(item, COMMAND_LINE, overwrite=self._overwrite)
        except AppError as error:
            return FileOutcome(item, FileState.FAILED, str(error))
        return finish(item, text, self._settings, journal)

    def _answers(
        self, items: Sequence[Item], token: CancelToken
    ) -> Iterator[tuple[Item, str | None, str]]:
        if not items:
            return
        left: dict[str, tuple[Future, int]] = {}
        ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        again = Counter[int]()
        try:
            self._submit(items, range(len(items)), left, ended)
            while left and not token.cancelled:
                try:
                    key = ended.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    self._sender.check()
                    continue
                future, number = left[key]
                text, failure = None, None
                try:
                    text = self._sender.answer(future)
                except SchedulerLost:
                    raise
                except AppError as error:
                    failure = error
                if text is None and failure is None:
                    _watch(future, ended)
                    continue
                del left[key], future
                only_waited = times_begun(number, self._settings) <= _BEGUN
                if failure is self._sender.ended and only_waited and again[number] < TRIES:
                    again[number] += 1
                    self._submit(items, [number], left, ended)
                else:
                    yield items[number], text, str(failure)
        finally:
            self._sender.drop([future for future, _ in left.values()])

    def _submit(
        self,
        items: Sequence[Item],
        numbers: Sequence[int],
        left: dict[str, tuple[Future, int]],
        ended: queue.SimpleQueue[str],
    ) -> None:
        texts = [describe(number, items[number], self._settings) for number in numbers]
        keys = [f"kernelscope-{secrets.token_hex(8)}-{number}" for number in numbers]
        futures = self._sender.send(filter_file, texts, keys)
        for future, number in zip(futures, numbers, strict=True):
            left[future.key] = future, number
            _watch(future, ended)


def _watch(future: Future, ended: queue.SimpleQueue[str]) -> None:
    """Put the key of a task into `ended` when it ends."""
    future.add_done_callback(lambda done: ended.put(done.key))


@contextmanager
def _folder_of_parts(settings: TaskSettings) -> Iterator[None]:
    """Make the folder of parts anew, and remove it: an earlier batch may have been killed."""
    shutil.rmtree(settings.parts, ignore_errors=True)
    with explained(settings.parts):
        settings.parts.mkdir(parents=True)
        (settings.parts / OPEN).touch()
    try:
        yield
    finally:
        # In one step, so that no worker adds to it meanwhile; one that makes it anew clears it.
        aside = settings.parts.with_name(f"{settings.parts.name}-{secrets.token_hex(8)}")
        with suppress(OSError):
            settings.parts.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _closing(client: Client) -> Iterator[Client]:
    try:
        yield client
    finally:
        client.close(timeout=_CONNECT_SECONDS)


def _distributed() -> Any:
    """Import Dask, whose notices of lost connections the batch reports itself."""
    try:
        import distributed
    except ImportError as error:
        raise AppError(
            "A cluster needs Dask, which is not installed.",
            f"Install it: {install_command('cluster')}",
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed
