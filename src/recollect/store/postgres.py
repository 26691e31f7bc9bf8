"""PostgreSQL through psycopg 3 and its pool."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, LiteralString

import psycopg
from psycopg import errors as pg
from psycopg import sql
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

    def touched(self) -> set[str]:
        return {name for (name,) in self._connection.execute(_TOUCHED).fetchall()}


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
        self._be_patient(connection, self._busy_timeout)
        connection.commit()

    @staticmethod
    def _be_patient(connection: psycopg.Connection[Row], seconds: float) -> None:
        names = {"patience": str(max(1, int(seconds * 1000)))}
        connection.execute("SELECT set_config('lock_timeout', %(patience)s, false)", names)

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

    def pulse(self) -> str:
        """Which transactions are over: any that changes something is one more, in whichever database of the server."""
        with self.read() as tx:
            found = tx.row("SELECT CAST(pg_current_snapshot() AS TEXT)")
        return str(found[0]) if found else ""

    def scrub(self, tables: Collection[str] | None = None) -> str:
        """Write the files of the tables and their indexes anew: a dead row keeps its bytes until others overwrite them.
        Statistics hold samples of columns, so they are made and written anew, too. The server only warns of what it
        skips. StoreBusy names the tables that others hold."""
        told: list[str] = []
        held: list[str] = []
        with _translated(), self._connection() as connection:
            connection.autocommit = True
            connection.add_notice_handler(heard := lambda notice: told.append(notice.message_primary or ""))
            try:
                if not self._outlast(connection):
                    raise StoreBusy("PostgreSQL: a transaction that began earlier may still see what was erased")
                found = [name for (name,) in connection.execute(_TABLES).fetchall()]
                deadline = time.monotonic() + self._busy_timeout
                for name in (*(each for each in found if tables is None or each in tables), "pg_statistic"):
                    patience = max(deadline - time.monotonic(), _LEAST_PATIENCE)
                    is_free = name != "pg_statistic" or self._outlast(connection)
                    if not is_free or not self._rewrite(connection, name, patience):
                        held.append(name)
            finally:
                connection.remove_notice_handler(heard)
                self._be_patient(connection, self._busy_timeout)
                connection.autocommit = False
        if held:
            raise StoreBusy(
                f"PostgreSQL: others hold {', '.join(held)}, whose files still hold what was erased;"
                " `recollect doctor --fix` writes them anew"
            )
        skipped = sorted({match[1] for each in told if (match := _SKIPPED.search(each))})
        return (
            f"PostgreSQL: the files of {', '.join(skipped)} still hold what was erased;"
            " the owner of the tables, or of the database, writes them anew by `VACUUM FULL`"
            if skipped
            else ""
        )

    def _rewrite(self, connection: psycopg.Connection[Row], table: str, patience: float) -> bool:
        """False: somebody holds the table."""
        self._be_patient(connection, patience)
        try:
            connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
            self._clear_statistics(connection, table)
        except pg.LockNotAvailable:
            return False
        return True

    @staticmethod
    def _clear_statistics(connection: psycopg.Connection[Row], table: str) -> None:
        """ANALYZE leaves those of an empty table as they were. Only a superuser may delete them; a column whose type is
        set again loses its own, too."""
        name = sql.Identifier(table)
        if table == "pg_statistic" or connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(name)).fetchone():
            return
        try:
            connection.execute(
                "DELETE FROM pg_statistic WHERE starelid = CAST(%(table)s AS regclass)", {"table": table}
            )
        except pg.InsufficientPrivilege:
            for (column,) in connection.execute(_TEXTS, {"table": table}).fetchall():
                with suppress(pg.FeatureNotSupported, pg.InsufficientPrivilege):  # a view shows it; not ours
                    parts = {"table": name, "column": sql.Identifier(column)}
                    connection.execute(sql.SQL("ALTER TABLE {table} ALTER COLUMN {column} TYPE text").format(**parts))

    def _outlast(self, connection: psycopg.Connection[Row]) -> bool:
        """Wait for whoever began before and may still see what was deleted: VACUUM keeps that, and says nothing. So it
        does for whoever writes, in whichever database of the server. False: they do not end."""
        names = {"now": str(connection.execute("SELECT pg_current_xact_id()").fetchall()[0][0])}
        deadline = time.monotonic() + self._busy_timeout
        while connection.execute(_EARLIER, names).fetchone():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def close(self) -> None:
        self._pool.close()


_EARLIER = """
SELECT 1 WHERE pg_snapshot_xmin(pg_current_snapshot()) <= CAST(%(now)s AS xid8)
UNION ALL
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
  AND age(backend_xmin) > age(CAST(CAST(%(now)s AS xid8) AS xid))
"""
_TABLES = """
SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'memory\\_%' AND pg_table_is_visible(oid)
ORDER BY relname
"""
_TEXTS = """
SELECT attname FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation
WHERE attrelid = CAST(%(table)s AS regclass) AND attnum > 0 AND NOT attisdropped AND atttypid = 25
  AND collname = 'default' AND attgenerated = ''
"""
_TOUCHED = "SELECT relname FROM pg_stat_xact_user_tables WHERE n_tup_upd + n_tup_del > 0"
_LEAST_PATIENCE = 0.2  # seconds to wait for each table when time is up
_SKIPPED = re.compile(r'"(memory_\w+|pg_statistic)".* skipping it')

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
