"""`recollect bench retrieval`: evidence recall on two public sets of questions about conversations, without any judge.

Turns are stored as entries, questions go through `memory.search` with its floor on. Beside it, from the same run: FTS5
alone (porter, stop words removed) and vectors alone. The files stay where they are; nothing of them is printed.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from statistics import mean
from typing import Any

import apsw

from recollect.app import Memory, open_memory
from recollect.search.meaning import ask
from recollect.search.values import Hit
from recollect.store import entries
from recollect.store.entries import FileKey
from recollect.store.search import Reach
from recollect.store.vectors import Kind
from recollect.surfaces.bench.home import installed_models
from recollect.text import COMMON
from recollect.types import Entry, Role, timestamp

_WORD = re.compile(r"[^\W_]+")
_TURNS = 100  # turns from which sessions are ranked

_SECOND = 0.1  # what a session's second-best turn adds to its best

Found = list[tuple[str, float]]  # ids of turns with their scores, best first
Find = Callable[[str, datetime, int], Found]
"""(question, when it is asked, how many) → what is found."""
Scores = Callable[[Sequence[str], frozenset[str]], dict[str, float]]
"""(ids that were found, those that were wanted) → figures by name."""


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    session: str
    role: Role
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[str]  # turns, or sessions
    at: datetime


@dataclass(frozen=True, slots=True)
class Corpus:
    """One store's worth of turns, and what is asked about them."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question]
    session_of: dict[str, str] = field(default_factory=dict)  # turn → session, where sessions are what is looked for


def run(locomo: Path | None, longmemeval: Path | None, **flags: Any) -> dict[str, Any]:
    return {
        title: _measure(memory, corpora, scores)
        for title, memory, corpora, scores in stores(locomo, longmemeval, **flags)
    }


def stores(
    locomo: Path | None, longmemeval: Path | None, *, home: Path | None, database: str, **flags: Any
) -> Iterator[tuple[str, Memory, list[Corpus], Scores]]:
    """Each file in a store of its own. `home` keeps them, so that a second run need not embed everything again."""
    flags = {"models_folder": installed_models(), "database": database or None, **flags}
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        base = home or Path(name)
        for title, file, read, scores in (
            ("locomo", locomo, read_locomo, _recall),
            ("longmemeval", longmemeval, read_longmemeval, _sessions),
        ):
            if file is None:
                continue
            with open_memory(base / title, tenant=f"bench-{title}", **flags) as memory:
                corpora = list(read(file))
                _fill(memory, corpora)
                yield title, memory, corpora, scores


# ---- The files


def read_locomo(file: Path) -> Iterator[Corpus]:
    """Each conversation is a corpus; categories 1 to 4 with evidence."""
    for sample in json.loads(file.read_text(encoding="utf-8")):
        turns = list(_locomo_turns(sample["conversation"]))
        known = {turn.id for turn in turns}
        after = max(turn.at for turn in turns) + timedelta(days=1)
        questions = []
        for each in sample["qa"]:
            said = {part for text in each.get("evidence") or () for part in re.split(r"[;,\s]+", text)}
            if each["category"] in (1, 2, 3, 4) and said & known:
                questions.append(Question(each["question"], frozenset(said & known), after))
        yield Corpus(f"locomo/{sample['sample_id']}", turns, questions)


def _locomo_turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    number = 1
    while f"session_{number}_date_time" in conversation:
        began = datetime.strptime(f"{conversation[f'session_{number}_date_time']} +0000", "%I:%M %p on %d %B, %Y %z")
        for minute, turn in enumerate(conversation.get(f"session_{number}") or ()):
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            at = began + timedelta(minutes=minute)
            text = f"{turn['speaker']}: {turn['text']}{caption}"
            yield Turn(turn["dia_id"], f"session {number}", Role.USER, text, at)
        number += 1


def read_longmemeval(file: Path) -> Iterator[Corpus]:
    """All sessions are one pool; a session is found by its best turns."""
    data = json.loads(file.read_text(encoding="utf-8"))
    turns = [
        Turn(f"{key}#{number}", key, Role(turn["role"]), turn["content"], _day(session["date"], number))
        for key, session in data["sessions"].items()
        for number, turn in enumerate(session["turns"])
    ]
    questions = [
        Question(each["question"], frozenset(each["answer_sessions"]), _day(each["date"]))
        for each in data["questions"]
        if each["answer_sessions"]
    ]
    yield Corpus("longmemeval/pool", turns, questions, {turn.id: turn.session for turn in turns})


def _day(text: str, minutes: int = 0) -> datetime:
    return datetime.strptime(re.sub(r"\(\w+\) ", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC) + timedelta(
        minutes=minutes
    )


# ---- The store


def _fill(memory: Memory, corpora: Sequence[Corpus]) -> None:
    for corpus in corpora:
        with memory.database.write() as tx:
            for session in dict.fromkeys(turn.session for turn in corpus.turns):
                key = FileKey(memory.owner, "bench", f"{corpus.name}/{session}.jsonl")
                mine = [turn for turn in corpus.turns if turn.session == session]
                rows = [entries.row(key, 1, _entry(corpus, turn), corpus.name, True) for turn in mine]
                entries.insert(tx, rows)
    memory.index()
    memory.vectors.update()


def _entry(corpus: Corpus, turn: Turn) -> Entry:
    return Entry(f"{corpus.name}|{turn.id}", turn.session, turn.role, turn.text, timestamp(turn.at), 0)


# ---- The measure


def _recall(found: Sequence[str], evidence: frozenset[str]) -> dict[str, float]:
    return {f"R@{k}": len(evidence & set(found[:k])) / len(evidence) for k in (5, 10, 20)}


def _sessions(found: Sequence[str], evidence: frozenset[str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for k in (5, 10):
        hits = len(evidence & set(found[:k]))
        scores |= {f"any@{k}": float(hits > 0), f"all@{k}": float(hits == len(evidence))}
        scores[f"evidence@{k}"] = hits / len(evidence)
    return scores


def _measure(memory: Memory, corpora: Sequence[Corpus], scores: Scores) -> dict[str, Any]:
    return {
        "turns": sum(len(corpus.turns) for corpus in corpora),
        "questions": sum(len(corpus.questions) for corpus in corpora),
        "fts": average(corpora, _by_fts, scores),
        "vectors": average(corpora, lambda corpus: _by_vectors(memory, corpus), scores),
        "ours": average(corpora, lambda corpus: _by_search(memory, corpus), scores),
        "off_topic_empty": _off_topic(memory, corpora),
    }


def average(corpora: Sequence[Corpus], find_in: Callable[[Corpus], Find], scores: Scores) -> dict[str, float]:
    rows = []
    for corpus in corpora:
        find = find_in(corpus)
        for question in corpus.questions:
            turns = find(question.text, question.at, _TURNS if corpus.session_of else 20)
            found = by_best_turns(turns, corpus.session_of) if corpus.session_of else [turn for turn, _ in turns]
            rows.append(scores(found, question.evidence))
    return {key: round(mean(row[key] for row in rows), 3) for key in rows[0]} if rows else {}


def by_best_turns(turns: Found, session_of: Mapping[str, str]) -> list[str]:
    """Sessions by their best turn, and a little by the next best."""
    scores: dict[str, list[float]] = {}
    for turn, score in turns:
        scores.setdefault(session_of[turn], []).append(score)
    worth = {session: best + _SECOND * (rest[0] if rest else 0.0) for session, (best, *rest) in scores.items()}
    return sorted(worth, key=lambda session: -worth[session])


def _off_topic(memory: Memory, corpora: Sequence[Corpus]) -> float:
    """The share that get no answer of a hundred questions about things that no store of conversations knows."""
    asked = resources.files("recollect.surfaces.bench").joinpath("off_topic.txt").read_text(encoding="utf-8")
    answered = [bool(memory.search(each, scope=corpus.name)) for corpus in corpora for each in asked.splitlines()]
    return round(1 - mean(answered), 3)


def _by_search(memory: Memory, corpus: Corpus) -> Find:
    def find(question: str, now: datetime, limit: int) -> Found:
        return turns_of(memory.search(question, scope=corpus.name, limit=limit, now=now))

    return find


def turns_of(hits: Sequence[Hit]) -> Found:
    """Best first; what was folded into a hit stands behind it, each in a place of its own."""
    return [(uuid.partition("|")[2], hit.score) for hit in hits for uuid in (hit.entry_uuid, *hit.also)]


def _by_vectors(memory: Memory, corpus: Corpus) -> Find:
    with memory.database.read() as tx:
        rows = tx.rows(
            "SELECT id, entry_uuid FROM memory_transcript_entries WHERE tenant = :tenant AND project_id = :project",
            {"tenant": memory.owner.tenant, "project": corpus.name},
        )
    names = {str(number): uuid.partition("|")[2] for number, uuid in rows}

    def find(question: str, now: datetime, limit: int) -> Found:
        asked = ask(memory.vectors, question, Reach(memory.owner, (corpus.name,)))
        near = asked.nearest(frozenset({Kind.ENTRY}), limit) if asked else {}
        return [(names[ref[1]], near[ref]) for ref in sorted(near, key=lambda each: -near[each])]

    return find


def _by_fts(corpus: Corpus) -> Find:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE turns USING fts5(text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO turns (text) VALUES (?)", [(turn.text,) for turn in corpus.turns])
    sql = "SELECT rowid, bm25(turns) FROM turns WHERE turns MATCH ? ORDER BY 2 LIMIT ?"

    def find(question: str, now: datetime, limit: int) -> Found:
        words = [word for word in dict.fromkeys(_WORD.findall(question.lower())) if word not in COMMON]
        if not words:
            return []
        found = connection.execute(sql, (" OR ".join(f'"{word}"' for word in words), limit))
        return [(corpus.turns[number - 1].id, -rank) for number, rank in found]

    return find
