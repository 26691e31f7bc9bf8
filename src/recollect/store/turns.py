"""memory_turn_artifacts, memory_turn_tags, memory_turn_files, memory_active_sets: what is known of chat turns.

Every read names tenant, agent, project and user, and where a conversation is meant, that one: there is no query that
widens because something is missing. Rows past their time are not read, and `purge` removes a bounded number of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recollect.store.database import Transaction, rows_of
from recollect.types import Owner, Timestamp

_KEY = ("project", "user_id", "conversation", "kind", "turn_id", "ref")
_OWN = "tenant = :tenant AND agent_id = :agent_id"
_USER = f"{_OWN} AND project = :project AND user_id = :user_id"
_SAME = " AND ".join(f"t.{name} = a.{name}" for name in ("tenant", "agent_id", *_KEY))


class Person(NamedTuple):
    """Whose rows, in which project."""

    owner: Owner
    project: str
    user_id: str

    def names(self) -> dict[str, str]:
        return {**self.owner.names(), "project": self.project, "user_id": self.user_id}


class Artifact(NamedTuple):
    """A row, without its owner."""

    project: str
    user_id: str
    conversation: str
    kind: str
    turn_id: str
    ref: str
    session_id: str
    at: str
    text: str
    hosted_uri: str
    expires_at: str
    tags: tuple[str, ...] = ()


_COLUMNS = Artifact._fields[:-1]
_SELECT = f"SELECT {', '.join('a.' + name for name in _COLUMNS)} FROM memory_turn_artifacts a"


def save(tx: Transaction, owner: Owner, artifacts: Iterable[Artifact], *, replacing: bool = False) -> int:
    """How many were not there before. With `replacing`, one that is not newer than what is there is left out."""
    made = 0
    columns = ("tenant", "agent_id", *_COLUMNS)
    update = ", ".join(f"{name} = excluded.{name}" for name in ("at", "text", "hosted_uri", "expires_at", "session_id"))
    again = f"UPDATE SET {update} WHERE excluded.at >= memory_turn_artifacts.at" if replacing else "NOTHING"
    sql = (
        f"INSERT INTO memory_turn_artifacts ({', '.join(columns)}) VALUES ({', '.join(':' + each for each in columns)})"
        f" ON CONFLICT (tenant, agent_id, {', '.join(_KEY)}) DO {again}"
    )
    key = ("tenant", "agent_id", *_KEY, "tag", "at")
    for each in artifacts:
        names = {**owner.names(), **dict(zip(_COLUMNS, each, strict=False))}
        changed = tx.run(sql, names)
        made += changed
        if not changed:
            continue
        if replacing:
            tx.run(f"DELETE FROM memory_turn_tags WHERE {_OWN} AND {_matching()}", names)
        tx.run_many(
            f"INSERT INTO memory_turn_tags ({', '.join(key)}) VALUES ({', '.join(':' + name for name in key)})"
            " ON CONFLICT DO NOTHING",
            [
                {**{name: names[name] for name in (*key[:8], "at")}, "tag": tag}
                for tag in dict.fromkeys(each.tags)
                if tag != each.kind  # which the artifact says itself
            ],
        )
    return made


def _matching() -> str:
    return " AND ".join(f"{name} = :{name}" for name in _KEY)


def newest(
    tx: Transaction, person: Person, conversation: str, kind: str, now: Timestamp, limit: int, since: str | None = None
) -> list[Artifact]:
    """Of one conversation, newest first; with `since`, what came next after it, oldest first."""
    order = "at DESC, turn_id DESC, ref DESC" if since is None else "at, turn_id, ref"
    names = {"conversation": conversation, "kind": kind, "since": since or "", "now": now, "limit": limit}
    rows = tx.rows(
        f"{_SELECT} WHERE {_USER} AND conversation = :conversation AND kind = :kind AND at > :since"
        f" AND expires_at > :now ORDER BY {order} LIMIT :limit",
        {**person.names(), **names},
    )
    return [Artifact(*row) for row in rows]


def latest(tx: Transaction, person: Person, kind: str, now: Timestamp, limit: int) -> list[Artifact]:
    """Of all conversations of a user, newest first."""
    rows = tx.rows(
        f"{_SELECT} WHERE {_USER} AND kind = :kind ORDER BY at DESC, turn_id DESC, ref DESC LIMIT :limit",
        {**person.names(), "kind": kind, "limit": limit},
    )
    return _unexpired([Artifact(*row) for row in rows], now)


def first(tx: Transaction, person: Person, conversation: str, kind: str, now: Timestamp) -> Artifact | None:
    """The oldest of its kind in a conversation."""
    row = tx.row(
        f"{_SELECT} WHERE {_USER} AND conversation = :conversation AND kind = :kind AND at > ''"
        " AND expires_at > :now ORDER BY at, turn_id LIMIT 1",
        {**person.names(), "conversation": conversation, "kind": kind, "now": now},
    )
    return Artifact(*row) if row else None


def find(
    tx: Transaction, person: Person, conversation: str, kind: str, turn_ids: Sequence[str], now: Timestamp
) -> list[Artifact]:
    """Of these turns."""
    sql = (
        f"{_SELECT} WHERE {_USER} AND conversation = :conversation AND kind = :kind AND turn_id IN ({{among}})"
        " ORDER BY at DESC, turn_id DESC"
    )
    rows = rows_of(tx, sql, {**person.names(), "conversation": conversation, "kind": kind}, turn_ids)
    return _unexpired([Artifact(*row) for row in rows], now)


def said_in(
    tx: Transaction, person: Person, turns: Sequence[tuple[str, str]], kind: str, now: Timestamp
) -> list[Artifact]:
    """Of (session, turn) pairs, whatever conversation of the user they are in."""
    found = []
    for session, turn in turns:
        rows = tx.rows(
            f"{_SELECT} WHERE {_USER} AND session_id = :session AND turn_id = :turn AND kind = :kind",
            {**person.names(), "session": session, "turn": turn, "kind": kind},
        )
        found += [Artifact(*row) for row in rows]
    return _unexpired(found, now)


def _unexpired(found: Sequence[Artifact], now: Timestamp) -> list[Artifact]:
    """Told apart here: by a condition in SQL, SQLite would walk through everybody's rows in the order they expire."""
    return [each for each in found if each.expires_at > now]


_NEWEST_TAGS = "at DESC, turn_id DESC, conversation"


def tagged(tx: Transaction, person: Person, tag: str, now: Timestamp, limit: int, offset: int = 0) -> list[Artifact]:
    """Of all conversations of a user, newest first, from the `offset`th on. Every one has the tag that it was found
    by."""
    found = f"SELECT * FROM memory_turn_tags WHERE {_USER} AND tag = :tag"
    found += f" ORDER BY {_NEWEST_TAGS} LIMIT :limit OFFSET :offset"
    rows = tx.rows(  # the newest tags first, then their artifacts: the oldest are the first to expire
        f"SELECT {', '.join('a.' + name for name in _COLUMNS)}, t.tag FROM ({found}) t"
        f" JOIN memory_turn_artifacts a ON {_SAME} ORDER BY t.at DESC, t.turn_id DESC, t.conversation",
        {**person.names(), "tag": tag, "limit": limit, "offset": offset},
    )
    return _unexpired([Artifact(*row[:-1])._replace(tags=row[-1:]) for row in rows], now)


def tags(tx: Transaction, person: Person, conversation: str, kind: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """(turn, ref) → tags of the artifacts of a kind, beside the kind itself."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    rows = tx.rows(
        "SELECT turn_id, ref, tag FROM memory_turn_tags a"
        f" WHERE {_USER} AND conversation = :conversation AND kind = :kind ORDER BY turn_id, ref, tag",
        {**person.names(), "conversation": conversation, "kind": kind},
    )
    for turn, ref, tag in rows:
        found[turn, ref] = (*found.get((turn, ref), ()), tag)
    return found


def of_session(tx: Transaction, owner: Owner, session_id: str, kind: str) -> list[Artifact]:
    """Of a session by its id, expired or not: for extraction, which comes later."""
    rows = tx.rows(
        f"{_SELECT} WHERE {_OWN} AND session_id = :session AND kind = :kind ORDER BY at, turn_id",
        {**owner.names(), "session": session_id, "kind": kind},
    )
    return [Artifact(*row) for row in rows]


def user_of(tx: Transaction, owner: Owner, session_id: str) -> str:
    """Whose a session is, as far as its artifacts are there; else empty."""
    row = tx.row(
        f"SELECT MIN(user_id) FROM memory_turn_artifacts WHERE {_OWN} AND session_id = :session",
        {**owner.names(), "session": session_id},
    )
    return (row[0] or "") if row else ""


# The active set


def load_active_set(
    tx: Transaction, person: Person, conversation: str, now: Timestamp, lock: str = ""
) -> Artifact | None:
    """As an artifact of no kind; None when there is none."""
    row = tx.row(
        f"SELECT session_id, at, text, expires_at FROM memory_active_sets WHERE {_USER}"
        f" AND conversation = :conversation AND expires_at > :now{lock}",
        {**person.names(), "conversation": conversation, "now": now},
    )
    if row is None or not row[2]:
        return None
    session, at, text, end = row
    return Artifact(person.project, person.user_id, conversation, "", "", "", session, at, text, "", end)


def hold_active_set(
    tx: Transaction, person: Person, conversation: str, session_id: str, at: Timestamp, expires_at: str
) -> Artifact | None:
    """The same, and nobody else changes it until the transaction ends; there is one from now on."""
    own = {"conversation": conversation, "session_id": session_id, "text": "", "at": at, "expires_at": expires_at}
    names = {**person.names(), **own}
    tx.run(
        f"INSERT INTO memory_active_sets ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"
        " ON CONFLICT DO NOTHING",
        names,
    )
    return load_active_set(tx, person, conversation, at, f" {tx.dialect.for_update}")


def save_active_set(
    tx: Transaction, person: Person, conversation: str, session_id: str, text: str, at: Timestamp, expires_at: str
) -> None:
    own = {"conversation": conversation, "session_id": session_id, "text": text, "at": at, "expires_at": expires_at}
    names = {**person.names(), **own}
    tx.run(
        f"INSERT INTO memory_active_sets ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"
        " ON CONFLICT (tenant, agent_id, project, user_id, conversation) DO UPDATE SET"
        " text = excluded.text, at = excluded.at, expires_at = excluded.expires_at",
        names,
    )


# Files


def signatures(tx: Transaction, owner: Owner) -> dict[str, str]:
    """Path → what it was when its rows were made."""
    return dict(tx.rows(f"SELECT path, signature FROM memory_turn_files WHERE {_OWN}", owner.names()))


def save_signatures(tx: Transaction, owner: Owner, found: Mapping[str, str]) -> None:
    """Of files whose rows are made now."""
    tx.run_many(
        "INSERT INTO memory_turn_files (tenant, agent_id, path, signature)"
        " VALUES (:tenant, :agent_id, :path, :signature) ON CONFLICT (tenant, agent_id, path)"
        " DO UPDATE SET signature = excluded.signature",
        [(owner.tenant, owner.agent_id, path, signature) for path, signature in sorted(found.items())],
    )


# Removal


def delete_signatures(tx: Transaction, owner: Owner, paths: Iterable[str]) -> int:
    """Of files that are gone; how many rows went."""
    gone = [{**owner.names(), "path": path} for path in paths]
    return tx.run_many(f"DELETE FROM memory_turn_files WHERE {_OWN} AND path = :path", gone) if gone else 0


def purge(tx: Transaction, owner: Owner, now: Timestamp, limit: int) -> int:
    """Rows past their time, at most `limit`; how many artifacts went."""
    names = {**owner.names(), "now": now}
    rows = tx.rows(
        f"SELECT {', '.join(_KEY)} FROM memory_turn_artifacts WHERE {_OWN} AND expires_at <= :now LIMIT :limit",
        {**names, "limit": limit},
    )
    if rows:
        _delete(tx, owner, rows)
    tx.run(
        f"DELETE FROM memory_active_sets WHERE {_OWN} AND (project, user_id, conversation) IN (SELECT project, user_id,"
        f" conversation FROM memory_active_sets WHERE {_OWN} AND expires_at <= :now LIMIT :limit)",
        {**names, "limit": limit},
    )
    return len(rows)


def delete_bucket(tx: Transaction, person: Person, bucket_id: str, kind: str) -> None:
    _delete(tx, person.owner, [(person.project, person.user_id, "", kind, "", bucket_id)])


def erase(tx: Transaction, owner: Owner, turns: Iterable[tuple[str, str]]) -> int:
    """All that is known of turns by (session, turn): their artifacts, reactions to them and reactions they held, and
    what their conversations had chosen. How many rows went."""
    removed = 0
    for session, turn in sorted(set(turns)):
        names = {**owner.names(), "session": session, "turn": turn, "said": f"turn:{turn}"}
        rows = tx.rows(
            f"SELECT {', '.join(_KEY)} FROM memory_turn_artifacts WHERE {_OWN} AND session_id = :session"
            " AND (turn_id = :turn OR ref = :said)",
            names,
        )
        removed += _delete(tx, owner, rows)
        removed += tx.run(f"DELETE FROM memory_active_sets WHERE {_OWN} AND session_id = :session", names)
    return removed


def _delete(tx: Transaction, owner: Owner, keys: Iterable[tuple[str, ...]]) -> int:
    found = [{**owner.names(), **dict(zip(_KEY, key, strict=True))} for key in keys]
    if not found:
        return 0
    tx.run_many(f"DELETE FROM memory_turn_tags WHERE {_OWN} AND {_matching()}", found)
    return tx.run_many(f"DELETE FROM memory_turn_artifacts WHERE {_OWN} AND {_matching()}", found)
