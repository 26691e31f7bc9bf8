"""PostgreSQL through psycopg 3 and its pool."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from recollect.errors import ConfigError, StoreAway, StoreBusy, StoreError, StoreFull
from recollect.store.database import Dialect, Parameters, Row, positional, pyformat

POSTGRES = Dialect(
    name="postgres",
    skip_locked="FOR UPDATE SKIP LOCKED",
    for_update="FOR UPDATE",
    types={
        "KEY": 'TEXT COLLATE "C"',
        "SERIAL": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "SEQUENCE": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "VECTOR": "REAL[]",
    },
)


class PostgresTransaction:
    dialect = POSTGRES

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Parameters | None = None) -> list[Row]:
        return self._connection.execute(pyformat(sql), parameters or {}).fetchall()

    def row(self, sql: str, parameters: Parameters | None = None) -> Row | None:
        return self._connection.execute(pyformat(sql), parameters or {}).fetchone()

    def run(self, sql: str, parameters: Parameters | None = None) -> int:
        return self._connection.execute(pyformat(sql), parameters or {}).rowcount

    def run_many(self, sql: str, parameters: Iterable[Parameters | Row]) -> int:
        rows = list(parameters)
        query = positional(sql) if rows and isinstance(rows[0], tuple) else pyformat(sql)
        with self._connection.cursor() as cursor:
            cursor.executemany(query, rows)
            return max(cursor.rowcount, 0)

    def script(self, sql: str) -> None:
        self._connection.execute(sql.encode())


class PostgresDatabase:
    dialect = POSTGRES

    def __init__(self, url: str, busy_timeout: float) -> None:
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what it says, the error says
        try:
            if "@" in str(conninfo_to_dict(url).get("host") or ""):  # the rest of a password
                raise psycopg.ProgrammingError
        except psycopg.ProgrammingError:  # it quotes what it does not understand, passwords as well
            raise ConfigError(
                "`database` is no URL that PostgreSQL understands",
                hint="In user, password and names write %, @, :, /, ?, #, & and blanks as %25, %40 and so on.",
            ) from None
        self._url = url
        self._busy_timeout = busy_timeout
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            url,
            min_size=0,
            max_size=8,
            timeout=busy_timeout,
            open=False,
            kwargs={"client_encoding": "UTF8"},
            configure=self._configure,
            check=self._check,
        )
        with _translated():
            self._pool.open()

    def _configure(self, connection: psycopg.Connection[Row]) -> None:
        """By a statement: `options` belong to the user, who may choose a schema by them."""
        names = {"patience": str(max(1, int(self._busy_timeout * 1000)))}
        connection.execute("SELECT set_config('lock_timeout', %(patience)s, false)", names)
        connection.commit()

    def _check(self, connection: psycopg.Connection[Row]) -> None:
        """The server may have been restarted since. Then no other is any good either: the pool would find that out one
        by one, and wait twice as long after each."""
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            self._pool.check()
            raise

    @contextmanager
    def _transaction(self, begin: LiteralString = "") -> Iterator[PostgresTransaction]:
        with _translated(), self._connection() as connection:
            if begin:
                connection.execute(begin)
            yield PostgresTransaction(connection)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        """The pool only says that time is up: why, one more attempt tells."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            psycopg.connect(self._url, connect_timeout=2).close()
            raise StoreBusy(f"PostgreSQL: {error}") from error

    def write(self) -> Any:
        return self._transaction()

    def read(self) -> Any:
        return self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def size(self) -> int:
        with self.read() as tx:
            found = tx.row("SELECT pg_database_size(current_database())")
        return int(found[0]) if found else 0

    def scrub(self) -> str:
        """Dead rows give their space back; the server overwrites it as it goes on. It only warns of what it skips, and
        of shared tables nearly always."""
        told: list[str] = []
        with _translated(), self._connection() as connection:
            connection.autocommit = True
            connection.add_notice_handler(heard := lambda notice: told.append(notice.message_primary or ""))
            try:
                self._outlast(connection)
                connection.execute("VACUUM")
            finally:
                connection.remove_notice_handler(heard)
                connection.autocommit = False
        skipped = [each for each in told if '"memory_' in each]
        return (
            f"PostgreSQL keeps dead rows until it is vacuumed by the owner of its tables: {skipped[0]}"
            if skipped
            else ""
        )

    def _outlast(self, connection: psycopg.Connection[Row]) -> None:
        """Waits for whoever began before and may still see what was deleted: VACUUM leaves that, and says nothing."""
        names = {"now": str(connection.execute("SELECT CAST(pg_current_xact_id() AS xid)").fetchall()[0][0])}
        deadline = time.monotonic() + self._busy_timeout
        while connection.execute(_EARLIER, names).fetchone():
            if time.monotonic() > deadline:
                raise StoreBusy("PostgreSQL: a transaction that began earlier may still see what was erased")
            time.sleep(0.02)

    def close(self) -> None:
        self._pool.close()


_EARLIER = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
  AND GREATEST(age(backend_xmin), age(backend_xid)) > age(CAST(%(now)s AS xid))
"""


_RIGHTS = "The role of the `database` URL needs a schema in its search path in which it may write and create tables."
_LIMIT = "If it was a limit of the role or the database (`statement_timeout`, say), raise it for recollect."
_AWAY = ("08", "57P", "53300", "25P03")  # codes of a connection that is lost or refused; else libpq gives none


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure) as error:
        raise StoreBusy(f"PostgreSQL: {error.diag.message_primary}") from error
    except pg.DiskFull as error:
        raise StoreFull(f"PostgreSQL: {error}") from error
    except (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction, pg.InvalidSchemaName) as error:
        raise StoreError(f"PostgreSQL: {error.diag.message_primary}", hint=_RIGHTS) from error
    except (psycopg.OperationalError, pg.IdleInTransactionSessionTimeout, pg.TransactionTimeout) as error:
        reason = " ".join(str(error).split())
        if error.sqlstate is None or error.sqlstate.startswith(_AWAY):
            raise StoreAway(f"PostgreSQL: {reason}") from error
        raise StoreError(f"PostgreSQL: {reason}", hint=_LIMIT) from error
