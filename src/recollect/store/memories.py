"""memory_memories, memory_sources and memory_use: typed statements, where they were said, how often they were used.

Each source is what one conversation states, in its own words and with its own dates. A revision lives as long as a
conversation states it, and says what that one said in which it was first seen. Which revision is current follows from
`valid_from`; nothing is ever marked as superseded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from recollect.errors import NotFound
from recollect.note import is_session
from recollect.occasions import joined, occasions, parted
from recollect.store.database import Row, Transaction, beginning, in_parts, outside, rows_of
from recollect.types import BINDING, MemoryKind, Owner, Remembered, Scope, Severity, Timestamp, Trust

OWN = "m.tenant = :tenant AND m.agent_id = :agent_id"
_MINE = "tenant = :tenant AND agent_id = :agent_id"
UNOWNED = "m.user_id = ''"  # of no user of a chat
CURRENT = (  # no revision of the memory was said later
    "NOT EXISTS (SELECT 1 FROM memory_memories n WHERE n.tenant = m.tenant AND n.agent_id = m.agent_id"
    " AND n.memory_id = m.memory_id AND (n.valid_from > m.valid_from"
    " OR (n.valid_from = m.valid_from AND n.revision > m.revision)))"
)
_STAYED = (  # no revision of the memory that was said later holds elsewhere
    "NOT EXISTS (SELECT 1 FROM memory_memories n WHERE n.tenant = m.tenant AND n.agent_id = m.agent_id"
    " AND n.memory_id = m.memory_id AND (n.scope <> m.scope OR n.scope_id <> m.scope_id)"
    " AND (n.valid_from > m.valid_from OR (n.valid_from = m.valid_from AND n.revision > m.revision)))"
)
_SAID = "kind, text, severity, scope, scope_id, created_at, valid_from, pinned, occasions, user_id, loosened, trust"
COLUMNS = f"memory_id, revision, {_SAID}"
_ROW = f"m.{COLUMNS.replace(', ', ', m.')}"
_FIRST = "s.loosened, s.created_at, s.valid_from, s.session_key, s.entry_uuid"  # how sources are sorted
_SELECT = (
    f"SELECT {_ROW}, s.session_key, s.entry_uuid, {_FIRST} FROM memory_memories m"
    " LEFT JOIN memory_sources s ON s.tenant = m.tenant AND s.agent_id = m.agent_id AND s.memory_id = m.memory_id"
    " AND s.revision = m.revision"
    f" WHERE {OWN}"
)


_NAME = re.compile(r"\^?(m-.*?)(?:-r\d{1,9})?")  # as it is shown, the revision may stand behind it
_FEW = 6  # candidates that a name of several is answered with


@dataclass(frozen=True, slots=True)
class Use:
    count: int
    last: str  # empty: never


def in_scopes(tx: Transaction, owner: Owner, scopes: Sequence[tuple[Scope, str]], user: str = "") -> list[Remembered]:
    """Every revision of every memory of these (scope, scope id) pairs that belongs to this user of a chat, or to none;
    of one that was moved elsewhere since, none. No scope, no memories."""
    found: list[Remembered] = []
    for scope, scope_id in scopes:
        names = {**owner.names(), "scope": str(scope), "scope_id": scope_id, "user": user}
        where = f" AND m.scope = :scope AND m.scope_id = :scope_id AND m.user_id = :user AND {_STAYED}"
        found += _load(tx, where, names)
    return found


def all_of(tx: Transaction, owner: Owner, user: str | None = None) -> list[Remembered]:
    """Every revision of every memory of this owner; with `user` of that user of a chat alone, or of none if empty."""
    whose = "" if user is None else " AND m.user_id = :user"
    names = {**owner.names(), "user": user} if whose else owner.names()
    return _load(tx, f"{whose} ORDER BY m.memory_id, m.revision", names)  # as they lie: quicker to read


def of_session(tx: Transaction, owner: Owner, session_key: str) -> list[Remembered]:
    """What a conversation states, in the order it was said: in its own words, with its own dates and sources."""
    sql = f"SELECT {COLUMNS}, session_key, entry_uuid FROM memory_sources WHERE {_MINE} AND session_key = :key"
    found: dict[tuple[str, int], Remembered] = {}
    for each in sorted(
        map(_remembered, tx.rows(sql, {**owner.names(), "key": session_key})), key=lambda each: each.sources
    ):
        before = found.get((each.id, each.revision))
        found[each.id, each.revision] = replace(each, sources=(*before.sources, *each.sources)) if before else each
    return sorted(found.values(), key=lambda each: (each.valid_from, each.id, each.revision))


def find(tx: Transaction, owner: Owner, ids: Sequence[str]) -> list[Remembered]:
    """Every revision of these memories."""
    return _load_of(tx, owner.names(), " AND m.memory_id IN ({among})", ids)


def leading(tx: Transaction, owner: Owner, most: int, without: Collection[str] = ()) -> list[Remembered]:
    """Current memories to choose from for a reader who knows nothing yet: of each kind, and of each severity that
    binds, the `most` that were said last; none of the users of chats, nor those `without`. Sorted by id."""
    chosen = [("severity = :value", str(severity)) for severity in BINDING]
    chosen += [("kind = :value AND m.severity NOT IN ('must', 'do_not')", str(kind)) for kind in MemoryKind]
    listed, names = outside(tx.dialect, "m.memory_id", without)
    where = f"{OWN} AND {UNOWNED}{listed}"
    return current(find(tx, owner, newest(tx, where, owner.names() | names, chosen, most)))


def newest(
    tx: Transaction, where: str, names: Mapping[str, Any], chosen: Sequence[tuple[str, str]], most: int
) -> list[str]:
    """Ids of current memories that are pinned, or fulfil one of these conditions on a `:value`; of each the newest."""
    found: set[str] = set()
    for condition, value in (("pinned = 1", ""), *chosen):
        rows = tx.rows(
            f"SELECT m.memory_id FROM memory_memories m WHERE {where} AND m.{condition} AND {CURRENT}"
            " ORDER BY m.valid_from DESC, m.memory_id DESC LIMIT :most",
            {**names, "value": value, "most": most},
        )
        found |= {memory_id for (memory_id,) in rows}
    return sorted(found)


def pinned(tx: Transaction, owner: Owner) -> list[Remembered]:
    """Current memories that a person pinned, but for those of users of chats. Sorted by id."""
    where = f"{OWN} AND {UNOWNED} AND m.pinned = 1 AND {CURRENT}"
    rows = tx.rows(f"SELECT m.memory_id FROM memory_memories m WHERE {where}", owner.names())
    return current(find(tx, owner, [name for (name,) in rows]))


def ids(tx: Transaction, owner: Owner, text: str, limit: int, scopes: Sequence[tuple[Scope, str]] = ()) -> list[str]:
    """Of the memories whose id begins with this text; in these scopes, and of no user of a chat, if some are named."""
    where, names = beginning("memory_id", text)
    among = " OR ".join(f"(scope = :scope{n} AND scope_id = :within{n})" for n in range(len(scopes)))
    among = f" AND user_id = '' AND ({among})" if among else ""
    for number, (scope, scope_id) in enumerate(scopes):
        names |= {f"scope{number}": str(scope), f"within{number}": scope_id}
    rows = tx.rows(
        "SELECT DISTINCT memory_id FROM memory_memories WHERE tenant = :tenant AND agent_id = :agent_id"
        f" AND {where}{among} ORDER BY memory_id LIMIT :limit",
        {**owner.names(), **names, "limit": limit},
    )
    return [memory_id for (memory_id,) in rows]


def named(tx: Transaction, owner: Owner, name: str, project_id: str = "") -> str:
    """The id of the memory that a name stands for: an id, or a beginning that no other has; empty: there is none.

    Of several that begin so, the only one that is user-wide or of this project is meant. NotFound names the candidates
    among those alone."""
    found = _NAME.fullmatch(name.strip())
    every = ids(tx, owner, found[1], 2) if found else []
    if found is None or not every:
        return ""
    if found[1] in every or len(every) == 1:
        return found[1] if found[1] in every else every[0]
    near = ids(tx, owner, found[1], _FEW, [(Scope.USER, ""), (Scope.PROJECT, project_id)])
    if len(near) == 1:
        return near[0]
    told = f" of these: {', '.join(near)}{', …' if len(near) == _FEW else ''}" if near else " of several memories"
    raise NotFound(f"`{found[1]}` may be any{told}", hint="Give more of its id.")


def stated_in(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> list[Remembered]:
    """Every revision of every memory of which these conversations state one."""
    where = (
        " AND m.memory_id IN (SELECT memory_id FROM memory_sources WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND session_key IN ({among}))"
    )
    return _load_of(tx, owner.names(), where, session_keys)


def judged(tx: Transaction, owner: Owner, entries: Sequence[str]) -> list[Remembered]:
    """Every revision of the memories that these entries state, and that a person changed by a note or called wrong."""
    own = "tenant = :tenant AND agent_id = :agent_id"
    where = (
        f" AND m.memory_id IN (SELECT memory_id FROM memory_feedback WHERE {own} AND user_reaction = 'not_ok'"
        f" UNION SELECT memory_id FROM memory_sources WHERE {own} AND revision > 1"
        " AND SUBSTR(session_key, 1, 2) IN ('n-', 'p-'))"
        " AND EXISTS (SELECT 1 FROM memory_sources o WHERE o.tenant = m.tenant AND o.agent_id = m.agent_id"
        " AND o.memory_id = m.memory_id AND o.entry_uuid IN ({among}))"
    )
    return _load_of(tx, owner.names(), where, entries)


def replace_sessions(tx: Transaction, owner: Owner, stated: Mapping[str, Sequence[Remembered]]) -> None:
    """session key → what its conversation states now, instead of what it stated before.

    Whole revisions, each as this conversation tells it. Revisions that nobody states any more are removed, but for the
    uses that were counted. What was loosened changes no revision that others state.
    """
    gone = f"DELETE FROM memory_sources WHERE {_MINE} AND session_key IN ({{among}}) RETURNING memory_id"
    before = {name for (name,) in rows_of(tx, gone, owner.names(), list(stated))}
    derive(tx, owner, sorted(before | _state(tx, owner, [row for each in stated.values() for row in each])))


def restate(tx: Transaction, owner: Owner, stated: Sequence[Remembered]) -> None:
    """What conversations state, in the words of today; what else they state stays."""
    gone = [
        {**owner.names(), "key": key, "uuid": uuid, "id": row.id, "revision": row.revision}
        for row in stated
        for key, uuid in row.sources
    ]
    name = "session_key = :key AND entry_uuid = :uuid AND memory_id = :id AND revision = :revision"
    tx.run_many(f"DELETE FROM memory_sources WHERE {_MINE} AND {name}", gone)
    derive(tx, owner, sorted(_state(tx, owner, stated)))


def _state(tx: Transaction, owner: Owner, stated: Sequence[Remembered]) -> set[str]:
    """Adds what is stated; the ids of the memories."""
    told = sorted(stated, key=lambda row: (row.id, row.revision))
    names = [{**owner.names(), **row_of(row)} for row in told]
    tx.run_many(f"{_INSERT} ON CONFLICT DO NOTHING", names)  # whoever else states it at the same time waits here
    tx.run_many(
        f"INSERT INTO memory_sources (tenant, agent_id, session_key, entry_uuid, {COLUMNS})"
        f" VALUES (:tenant, :agent_id, :key, :uuid, {_PLACES}) ON CONFLICT DO NOTHING",
        [
            {**values, "key": key, "uuid": uuid}
            for values, row in zip(names, told, strict=True)
            for key, uuid in row.sources
        ],
    )
    return {row.id for row in told}


def unlike(tx: Transaction, owner: Owner, session_keys: Collection[str]) -> list[str]:
    """Ids of memories that these conversations alone state, or nobody, and whose rows do not follow from that."""
    sql = f"SELECT {COLUMNS}, session_key, entry_uuid FROM memory_sources WHERE {_MINE}"
    told: dict[str, list[Row]] = {}
    for row in tx.rows(sql, owner.names()):
        told.setdefault(row[0], []).append(row)
    held: dict[str, list[Row]] = {}
    for row in tx.rows(f"SELECT {COLUMNS} FROM memory_memories WHERE {_MINE}", owner.names()):
        held.setdefault(row[0], []).append(row)
    found = []
    for name in sorted({*told, *held}):
        rows, sources = held.get(name, []), told.get(name, [])
        if all(source[-2] in session_keys for source in sources) and rows != [source[:-2] for source in sources]:
            due = derived(map(_remembered, sources)) if sources else []
            if sorted(rows) != sorted(tuple(row_of(each).values()) for each in due):
                found.append(name)
    return found


def derive(tx: Transaction, owner: Owner, ids: Sequence[str]) -> None:
    """Brings the rows of these memories in line with their sources."""
    among = f"WHERE {_MINE} AND memory_id IN ({{among}}) ORDER BY memory_id, revision"
    held = rows_of(tx, f"SELECT {COLUMNS} FROM memory_memories {among} {tx.dialect.for_update}", owner.names(), ids)
    rows = rows_of(tx, f"SELECT {COLUMNS}, session_key, entry_uuid FROM memory_sources {among}", owner.names(), ids)
    known = {(row[0], row[1]): dict(zip(_VALUES, row, strict=True)) for row in held}
    now: dict[tuple[str, int], dict[str, Any]] = {}
    for _, sources in groupby(map(_remembered, rows), key=lambda each: each.id):
        now |= {(each.id, each.revision): row_of(each) for each in derived(list(sources))}
    tx.run_many(
        f"{_INSERT} ON CONFLICT (tenant, agent_id, memory_id, revision) DO UPDATE SET"
        f" {', '.join(f'{name} = excluded.{name}' for name in _SAID.split(', '))}",
        [{**owner.names(), **values} for key, values in now.items() if values != known.get(key)],
    )
    tx.run_many(
        f"DELETE FROM memory_memories WHERE {_MINE} AND memory_id = :id AND revision = :revision",
        [{**owner.names(), "id": name, "revision": revision} for name, revision in known.keys() - now.keys()],
    )


def derived(stated: Iterable[Remembered]) -> list[Remembered]:
    """The revisions of one memory, from every statement of it with its one source. Each says what the conversation says
    in which it was first seen, and is pinned if one of them says so. It matters on the occasions that they tell, the
    newest conversations' first; where none does, on those of what it replaced, but for a note that says otherwise."""
    told = sorted(stated, key=_first)
    created = min(each.created_at for each in told)
    revisions: dict[int, list[Remembered]] = {}
    for each in told:
        revisions.setdefault(each.revision, []).append(each)
    found: list[Remembered] = []
    for first, *more in sorted(revisions.values(), key=lambda several: (several[0].valid_from, several[0].revision)):
        every = sorted([first, *more], key=lambda each: each.sources)
        every.sort(key=lambda each: _began(each.sources[0][0]), reverse=True)
        when = occasions(one for each in every for one in each.occasions)
        if found and not when and (found[-1].text == first.text or not is_session(_session(first.sources[0][0]))):
            when = found[-1].occasions
        is_pinned = any(each.pinned for each in every)
        found.append(replace(first, created_at=created, pinned=is_pinned, occasions=when))
    return found


def _first(each: Remembered) -> tuple[object, ...]:
    """As `_FIRST` has it."""
    return (each.loosened, each.created_at, each.valid_from, each.sources)


def current(revisions: Iterable[Remembered]) -> list[Remembered]:
    """The revision of each memory that holds: that which was said last. Sorted by id."""
    newest: dict[str, Remembered] = {}
    for each in revisions:
        best = newest.get(each.id)
        if best is None or (each.valid_from, each.revision) > (best.valid_from, best.revision):
            newest[each.id] = each
    return [newest[key] for key in sorted(newest)]


def loosened(tx: Transaction, owner: Owner) -> list[str]:
    """Ids of the current memories that bind or hold everywhere no more, whatever their files say."""
    where = f"{OWN} AND m.loosened = 1 AND {CURRENT}"
    return [name for (name,) in tx.rows(f"SELECT memory_id FROM memory_memories m WHERE {where}", owner.names())]


def count_by_kind(tx: Transaction, owner: Owner) -> dict[str, int]:
    """Current memories."""
    rows = tx.rows(
        f"SELECT kind, COUNT(*) FROM memory_memories m WHERE {OWN} AND {CURRENT} GROUP BY kind ORDER BY kind",
        owner.names(),
    )
    return dict(rows)


_USE = "SELECT memory_id, usage_count, last_usage FROM memory_use WHERE tenant = :tenant AND agent_id = :agent_id"


def uses(tx: Transaction, owner: Owner) -> dict[str, Use]:
    return {name: Use(*row) for name, *row in tx.rows(f"{_USE} ORDER BY memory_id", owner.names())}


def uses_of(tx: Transaction, owner: Owner, ids: Sequence[str]) -> dict[str, Use]:
    """Of those that were used."""
    rows = rows_of(tx, f"{_USE} AND memory_id IN ({{among}}) ORDER BY memory_id", owner.names(), ids)
    return {name: Use(*row) for name, *row in rows}


def cite(tx: Transaction, owner: Owner, ids: Sequence[str], now: Timestamp) -> None:
    """One more use of each."""
    if ids:
        tx.run_many(
            "INSERT INTO memory_use (tenant, agent_id, memory_id, usage_count, last_usage)"
            " VALUES (:tenant, :agent_id, :id, 1, :now) ON CONFLICT (tenant, agent_id, memory_id) DO UPDATE SET"
            " usage_count = memory_use.usage_count + 1, last_usage = excluded.last_usage",
            [{**owner.names(), "id": each, "now": now} for each in ids],
        )


_VALUES = ("id", "revision", *_SAID.replace("user_id", "user").split(", "))
_PLACES = ", ".join(f":{name}" for name in _VALUES)
_INSERT = f"INSERT INTO memory_memories (tenant, agent_id, {COLUMNS}) VALUES (:tenant, :agent_id, {_PLACES})"


def row_of(each: Remembered) -> dict[str, Any]:
    return {name: _plain(getattr(each, name)) for name in _VALUES}


def _plain(value: object) -> object:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return joined(value)
    return int(value) if isinstance(value, bool) else value


def _session(session_key: str) -> str:
    return session_key.rpartition("@")[0]


def _began(session_key: str) -> str:
    return session_key.rpartition("@")[2]


def _load_of(tx: Transaction, names: dict[str, Any], where: str, values: Sequence[str]) -> list[Remembered]:
    """Each revision once, whichever of the values it was found by."""
    loaded = in_parts(lambda some, chosen: _load(tx, some, chosen), where, names, values)
    return list({(each.id, each.revision): each for part in loaded for each in part}.values())


def _load(tx: Transaction, where: str, names: dict[str, Any]) -> list[Remembered]:
    """Sources in the order in which they were seen, that first whose words a revision has."""
    # sorted here: SQLite would rather walk all of an owner's memories in that order than look up the few and sort them
    rows = sorted(tx.rows(_SELECT + where, names), key=lambda row: (row[:2], row[16:] if row[14] is not None else ()))
    found: list[Remembered] = []
    for _, several in groupby(rows, key=itemgetter(0, 1)):
        every = list(several)
        sources = tuple((row[14], row[15]) for row in every if row[14] is not None)
        found.append(replace(_remembered(every[0]), sources=sources))
    return found


def _remembered(row: Row) -> Remembered:
    """A row of `COLUMNS`, and the source if it has one."""
    return Remembered(
        id=row[0],
        revision=row[1],
        kind=MemoryKind(row[2]),
        text=row[3],
        severity=Severity(row[4]),
        scope=Scope(row[5]),
        scope_id=row[6],
        created_at=row[7],
        valid_from=row[8],
        pinned=bool(row[9]),
        occasions=parted(row[10]),
        user=row[11],
        loosened=bool(row[12]),
        trust=Trust(row[13]),
        sources=((row[14], row[15]),) if len(row) > 14 else (),
    )
