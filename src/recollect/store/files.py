"""memory_file_states and memory_malformed_lines: how far each transcript was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from recollect.store.database import Transaction, marks
from recollect.types import FileStatus, Owner

_FEW = 200  # keys that are looked up one by one instead of reading the whole table
MALFORMED_KEPT = 100  # lines reported per file; the count goes on


@dataclass(frozen=True, slots=True)
class FileState:
    source: str
    file_path: str  # file key
    root: str
    status: FileStatus = FileStatus.IDLE
    last_modified: int = 0
    signature: str = ""  # empty until something was processed; see `signed`
    file_size: int = 0
    last_processed_offset: int = 0
    last_entry_timestamp: str | None = None
    line_count: int = 0
    malformed_count: int = 0
    generation: int = 1
    reimporting: bool = False
    head_hash: str = ""
    tail_hash: str = ""
    parser_state: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.source, self.file_path

    @property
    def refused(self) -> str:
        """The off-switches by which something in it was refused; empty when nothing was."""
        return self.signature.partition(" ")[2]

    def next_generation(self, *, reimporting: bool) -> FileState:
        """The same key, read from its beginning."""
        return replace(
            self,
            generation=self.generation + 1,
            reimporting=reimporting,
            signature="",
            last_processed_offset=0,
            line_count=0,
            malformed_count=0,
            head_hash="",
            tail_hash="",
            parser_state="",
        )


@dataclass(frozen=True, slots=True)
class MalformedLine:
    source: str
    file_path: str
    line_number: int
    line_offset: int
    reason: str


def signed(signature: str, refused: str) -> str:
    """The signature of a file that was read, with the off-switches by which something in it was refused: it is read
    again when either is another."""
    return f"{signature} {refused}" if refused else signature


_COLUMNS = tuple(FileState.__dataclass_fields__)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM memory_file_states WHERE tenant = :tenant AND agent_id = :agent_id"
_SOURCES = "SELECT DISTINCT source FROM memory_file_states WHERE tenant = :tenant AND agent_id = :agent_id"
_SAVE = f"""
INSERT INTO memory_file_states (tenant, agent_id, {", ".join(_COLUMNS)})
VALUES (:tenant, :agent_id, {", ".join(":" + name for name in _COLUMNS)})
ON CONFLICT (tenant, agent_id, source, file_path) DO UPDATE SET
  {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in ("source", "file_path"))}
"""


def load(tx: Transaction, owner: Owner, source: str, file_path: str) -> FileState | None:
    row = tx.row(
        f"{_SELECT} AND source = :source AND file_path = :file_path",
        {**owner.names(), "source": source, "file_path": file_path},
    )
    return _state(row) if row else None


def with_status(tx: Transaction, owner: Owner, status: FileStatus) -> list[FileState]:
    few = "" if status is FileStatus.IDLE else " AND status <> 'idle'"  # as their index says
    rows = tx.rows(f"{_SELECT} AND status = :status{few}", {**owner.names(), "status": status})
    return sorted(map(_state, rows), key=lambda each: (each.source, each.file_path))


def signatures(tx: Transaction, owner: Owner, keys: Sequence[str]) -> dict[str, dict[str, int]]:
    """file key → signature → offset, of any source: what a scan compares with."""
    sql = (
        "SELECT file_path, signature, last_processed_offset FROM memory_file_states"
        " WHERE tenant = :tenant AND agent_id = :agent_id"
    )
    names = owner.names()
    if len(keys) <= _FEW:
        sources = [source for (source,) in tx.rows(_SOURCES, names)]  # leads the index
        placeholders, chosen = marks("key", keys)
        among, known_sources = marks("source", sources)
        sql += f" AND source IN ({among or 'NULL'}) AND file_path IN ({placeholders or 'NULL'})"
        names |= chosen | known_sources
    known: dict[str, dict[str, int]] = {}
    for path, signature, offset in tx.rows(sql, names):
        known.setdefault(path, {})[signature] = offset
    return known


def save(tx: Transaction, owner: Owner, states: Iterable[FileState]) -> None:
    columns = ({name: getattr(state, name) for name in _COLUMNS} for state in states)
    tx.run_many(_SAVE, [{**owner.names(), **each, "reimporting": int(each["reimporting"])} for each in columns])


_OF_A_FILE = (  # table, and its column with the file's key
    ("memory_file_states", "file_path"),
    ("memory_malformed_lines", "file_path"),
    ("memory_transcript_entries", "source_file"),
    ("memory_compactions", "source_file"),
    ("memory_conversations", "source_file"),
)


def move(tx: Transaction, owner: Owner, was: FileState, now: FileState) -> None:
    """A file stands under another key, of which nothing was known before."""
    names = {**owner.names(), "source": was.source, "was": was.file_path, "now": now.file_path, "root": now.root}
    own = "tenant = :tenant AND agent_id = :agent_id AND source = :source"
    tx.run(f"DELETE FROM memory_file_states WHERE {own} AND file_path = :now", names)
    tx.run(f"UPDATE memory_file_states SET root = :root WHERE {own} AND file_path = :was", names)
    for table, column in _OF_A_FILE:
        tx.run(f"UPDATE {table} SET {column} = :now WHERE {own} AND {column} = :was", names)


def _state(row: tuple[object, ...]) -> FileState:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["status"] = FileStatus(str(values["status"]))
    values["reimporting"] = bool(values["reimporting"])
    return FileState(**values)  # type: ignore[arg-type]  # the columns are the fields


def save_malformed(tx: Transaction, owner: Owner, lines: Iterable[MalformedLine]) -> None:
    tx.run_many(
        "INSERT INTO memory_malformed_lines"
        " (tenant, agent_id, source, file_path, line_offset, line_number, reason)"
        " VALUES (:tenant, :agent_id, :source, :file_path, :line_offset, :line_number, :reason) ON CONFLICT DO NOTHING",
        [{**owner.names(), **asdict(line)} for line in lines],
    )


def clear_malformed(tx: Transaction, owner: Owner, state: FileState) -> None:
    tx.run(
        "DELETE FROM memory_malformed_lines WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND source = :source AND file_path = :file_path",
        {**owner.names(), "source": state.source, "file_path": state.file_path},
    )


def malformed(tx: Transaction, owner: Owner, limit: int = 100) -> list[MalformedLine]:
    rows = tx.rows(
        "SELECT source, file_path, line_number, line_offset, reason FROM memory_malformed_lines"
        " WHERE tenant = :tenant AND agent_id = :agent_id ORDER BY source, file_path, line_offset LIMIT :limit",
        {**owner.names(), "limit": limit},
    )
    return [MalformedLine(*row) for row in rows]
