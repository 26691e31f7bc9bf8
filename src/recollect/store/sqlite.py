"""SQLite through apsw. A connection per thread; writers queue behind BEGIN IMMEDIATE and the busy timeout.

WAL with synchronous=NORMAL: a power cut may lose the last commits but never tears one; a killed process loses nothing.
The file and its siblings are readable by their owner only.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from recollect.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from recollect.store import words
from recollect.store.database import Dialect, Parameters, Row

SQLITE = Dialect(
    name="sqlite",
    skip_locked="",  # a transaction that writes is alone
    for_update="",
    types={
        "KEY": "TEXT",
        "SERIAL": "INTEGER PRIMARY KEY",
        "SEQUENCE": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "VECTOR": "BLOB",
    },
)

_PAGE = 8192  # measured: random inserts into the uuid index cost a third less than with 4096
_WAL_PAGES = 8000  # 64 MB between checkpoints, so that a hot page is copied back once, not once per commit


class SqliteTransaction:
    dialect = SQLITE

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Parameters | None = None) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters | None = None) -> Row | None:
        return self._connection.execute(sql, parameters).fetchone()

    def run(self, sql: str, parameters: Parameters | None = None) -> int:
        before = self._connection.total_changes()
        self._connection.execute(sql, parameters)
        # changes() leaves out what triggers did, but keeps its value when a statement changes nothing
        return self._connection.changes() if self._connection.total_changes() != before else 0

    def run_many(self, sql: str, parameters: Iterable[Parameters | Row]) -> int:
        before = self._connection.total_changes()
        self._connection.executemany(sql, parameters)
        return self._connection.total_changes() - before

    def script(self, sql: str) -> None:
        self._connection.execute(sql)

    def touched(self) -> set[str]:
        return set()  # what is deleted is overwritten, whichever table it was in


class SqliteDatabase:
    dialect = SQLITE

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._local = threading.local()
        self._all: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()  # a thread's goes with the thread
        self._guard = threading.Lock()
        with _translated(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # created here, so that it is never readable by others, not even for a moment
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection()

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open()
            self._local.connection = connection
            with self._guard:
                self._all.add(connection)
        return connection

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        connection.set_busy_handler(_patience(self._busy_timeout))
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        _insist(connection, "PRAGMA journal_mode = WAL", self._busy_timeout)
        for pragma in (
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "secure_delete = ON",  # what is deleted is overwritten
            f"wal_autocheckpoint = {_WAL_PAGES}",
            "cache_size = -32000",
        ):
            connection.execute(f"PRAGMA {pragma}")
        words.register(connection)
        return connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SqliteTransaction]:
        with _translated(self._path):
            connection = self._connection()
            connection.execute(begin)
            try:
                yield SqliteTransaction(connection)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except apsw.Error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def write(self) -> Any:
        return self._transaction("BEGIN IMMEDIATE")

    def read(self) -> Any:
        return self._transaction("BEGIN")

    def size(self) -> int:
        names = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(name.stat().st_size for name in names if name.exists())

    def pulse(self) -> str:
        with _translated(self._path):
            connection = self._connection()
            (others,) = connection.execute("PRAGMA data_version").fetchone() or (0,)
            return f"{others}.{connection.total_changes()}"

    def scrub(self, tables: Collection[str] | None = None) -> str:
        """Write the file anew, whichever tables were touched, and empty the log."""
        with _translated(self._path):
            connection = self._connection()
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("VACUUM")
            deadline = time.monotonic() + self._busy_timeout
            while True:
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0,)
                if not busy:
                    return ""
                if time.monotonic() > deadline:
                    raise StoreBusy(f"{self._path}: another process is reading it")
                time.sleep(0.02)

    def close(self) -> None:
        with self._guard:
            for connection in list(self._all):
                with suppress(
                    apsw.ThreadingViolationError
                ):  # a thread that was given up is at it: it goes with the thread
                    connection.close()
            self._all.clear()
        self._local = threading.local()


def _patience(timeout: float) -> Callable[[int], bool]:
    """Waits for a lock in steps of a millisecond: SQLite's own steps grow to 100, and writers here hold it briefly."""
    began = 0.0

    def wait(tries: int) -> bool:
        nonlocal began
        if tries == 0:
            began = time.monotonic()
        time.sleep(0.001)
        return time.monotonic() - began < timeout

    return wait


def _insist(connection: apsw.Connection, sql: str, timeout: float) -> None:
    """For a statement that does not ask the busy handler: another process may be creating the database."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute(sql)
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """What a person can act on becomes an error of ours; bugs (wrong SQL) pass through."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(f"{path} is held by another process") from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreDamaged(f"{path}: {error}") from error
    except apsw.FullError as error:
        raise StoreFull(f"no space left for {path}") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError) as error:
        raise StoreError(
            f"{path} cannot be used: {error}", hint="Check the folder's permissions and the disk's space."
        ) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}", hint="Check RECOLLECT_HOME.") from error
