"""The files that phase 2 writes for itself and its agent: names, raw memories, rollout summaries, the diff. Pure.

Text that came out of a conversation is data. It stands between fences that are longer than any run of backticks in
it, or on one line that cannot open anything, so that no text can pass for a heading, an entry or an instruction.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from recollect.consolidate.selection import Selection, latest_first
from recollect.markdown import code, displayed
from recollect.note import hand
from recollect.store.stage1 import Input
from recollect.types import Hand, MemoryKind, Remembered, Scope, Severity, Stage1, project_name

RAW = "raw_memories.md"
ROLLOUTS = "rollout_summaries"
HANDBOOK = "handbook.md"
SUMMARY = "summary.md"
PROJECTS = "projects"

SOURCE = re.compile(r"\[([^\[\]\s]+@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\]")  # [session_key]
MEMORY = re.compile(r"\^+(m-[0-9A-Za-z-]+)")  # ^m-…

_SLUG = 48
_TITLE = 200
_PLAIN = (MemoryKind.PREFERENCE, Severity.PREFER)  # says the same twice
_RUN = re.compile(r"`+")
_FENCES = re.compile(r"`{3,}|~{3,}")
_PAGE = re.compile(rf"{ROLLOUTS}/\d{{4}}-\d\d-\d\d-(?:[a-z0-9-]+-)?[0-9a-f]{{8}}\.md", re.ASCII)
_PROJECT = re.compile(rf"{PROJECTS}/(?:[a-z0-9-]+-)?[0-9a-f]{{8}}/{re.escape(SUMMARY)}")


# Names


def slug(text: str, *, tail: bool = False) -> str:
    """Lower-case letters, digits and dashes: a name on every file system. `tail` keeps the end of a long text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return (name[-_SLUG:] if tail else name[:_SLUG]).strip("-")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def project_folder(project_id: str) -> str:
    """Readable, and different for different projects."""
    return "-".join(part for part in (slug(project_id, tail=True), digest(project_id)) if part)


def project_path(project_id: str) -> str:
    return f"{PROJECTS}/{project_folder(project_id)}/{SUMMARY}"


def project_paths(selection: Selection, memories: Iterable[Remembered]) -> dict[str, str]:
    """project_id → where its summary lies, for every project with input."""
    ids = {each.row.project_id for each in selection.chosen}
    ids |= {memory.scope_id for memory in memories if memory.scope is Scope.PROJECT}
    return {project_id: project_path(project_id) for project_id in sorted(ids - {""})}


def rollout_path(row: Stage1) -> str:
    name = "-".join(
        part for part in (row.first_message_at[:10], slug(row.rollout_slug), digest(row.session_key)) if part
    )
    return f"{ROLLOUTS}/{name}.md"


def is_raw(path: str) -> bool:
    """Is it one of the files that every run makes from the rows? Names that we do not give are somebody else's."""
    return path == RAW or _PAGE.fullmatch(path) is not None


def is_kept(path: str) -> bool:
    """Is it one of the files that are consolidated?"""
    return path in (HANDBOOK, SUMMARY) or _PROJECT.fullmatch(path) is not None


# Data in text


def one_line(text: str) -> str:
    """The text on one line, inert, and unable to pass for a citation."""
    return displayed(flat(text))


def flat(text: str) -> str:
    """The same as it is written, to be cut or to stand between fences."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    text = _uncited(_uncited(text))  # what is taken out may join what stood around it
    if _uncited(text) != text:  # nested on purpose
        text = _uncited(text.translate(_NO_MARKS))
    return text


def title(project_id: str) -> str:
    """The project as a heading names it."""
    return displayed(flat(project_name(project_id))[-_TITLE:])


_NO_MARKS = str.maketrans("[]^", "() ", "`~")


def _uncited(text: str) -> str:
    return MEMORY.sub(r"\1", SOURCE.sub(r"(\1)", _FENCES.sub("`", text)))


def fenced(text: str) -> str:
    """The text as it is, but for what no file can hold, between fences that it cannot close."""
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    longest = max((len(run) for run in _RUN.findall(text)), default=0)
    fence = "`" * max(4, longest + 1)
    return f"{fence}text\n{text.strip()}\n{fence}"


def cite_source(session_key: str) -> str:
    return f"[{source_name(session_key)}]"


def source_name(session_key: str) -> str:
    """The key as it is cited: without what would end the citation early, or pass for another."""
    return "".join(
        "_" if letter in "[]^<>`\\" or letter.isspace() or not letter.isprintable() else letter
        for letter in session_key
    )


def cite_memory(memory_id: str) -> str:
    return f"^{memory_name(memory_id)}"


def memory_name(memory_id: str) -> str:
    return memory_id if memory_id.startswith("m-") else f"m-{memory_id}"


def label(memory: Remembered, *, kind: bool = True) -> str:
    """`constraint, must, 2026-03-02`"""
    parts = [memory.kind.replace("_", " ")] if kind else []
    if memory.severity is not Severity.NONE and (memory.kind, memory.severity) != _PLAIN:
        parts.append(memory.severity.replace("_", " "))
    if memory.pinned:
        parts.append("pinned")
    if hand(memory) is Hand.AGENT:
        parts.append("noted by an agent")
    return ", ".join([*parts, memory.valid_from[:10]])


# Files


def raw_files(rows: Iterable[Input], memories: Sequence[Remembered]) -> dict[str, str]:
    """raw_memories.md and a rollout summary per row; `memories` are those that the rows state."""
    ordered = [each.row for each in latest_first(rows)]
    stated: dict[str, list[Remembered]] = {}
    for memory in memories:
        for key in sorted({key for key, _ in memory.sources}):
            stated.setdefault(key, []).append(memory)
    files = {rollout_path(row): rollout(row, stated.get(row.session_key, ())) for row in ordered}
    return {RAW: raw_memories(ordered), **files}


def raw_memories(rows: Iterable[Stage1]) -> str:
    """Merged raw memories in the order given."""
    parts = [
        "# Raw memories\n\nWhat was found in each conversation, the latest first. What stands between fences is quoted."
    ]
    for row in rows:
        title = f"## {row.source_updated_at[:10]} {slug(row.rollout_slug) or 'conversation'}"
        parts.append(f"{title}\n\n{_facts(row)}\n\n{fenced(row.raw_memory)}")
    return "\n\n".join(parts) + "\n"


def rollout(row: Stage1, stated: Sequence[Remembered]) -> str:
    title = one_line(row.memory_sentence) or slug(row.rollout_slug) or "A conversation"
    parts = [f"# {title}", _facts(row), f"## Summary\n\n{fenced(row.rollout_summary)}"]
    if stated:
        lines = [f"- {one_line(each.text)} ({label(each)}) {cite_memory(each.id)}" for each in stated]
        parts.append("## Memories that it states\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _facts(row: Stage1) -> str:
    facts = {
        "session_key": row.session_key,
        "project": row.project_id or "none",
        "folder": row.project or "none",
        "from": f"{row.first_message_at} to {row.source_updated_at}",
        "agent": row.source,
    }
    return "\n".join(f"- {name}: {code(flat(value))}" for name, value in facts.items())


def diff(selection: Selection) -> str:
    """What changed since the last consolidation, a line per conversation."""
    rows = {each.row.session_key: each.row for each in selection.union}
    parts = []
    for name, keys in (
        ("added", selection.added),
        ("retained", selection.retained),
        ("removed", selection.removed),
    ):
        lines = [_described(key, rows) for key in keys] or ["(none)"]
        parts.append(f"{name}:\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _described(key: str, rows: Mapping[str, Stage1]) -> str:
    row = rows.get(key)
    if row is None:
        return f"- {cite_source(key)} no longer exists"
    project = one_line(row.project_id) or "no project"
    return f"- {cite_source(key)} {row.source_updated_at[:10]}, {project}, {rollout_path(row)}"
