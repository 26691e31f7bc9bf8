"""What is in the store, what is going on, and what is wrong with it; for `status` and `health`. Reads only."""

from __future__ import annotations

import shutil
import stat
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.extract import OFFLINE, WITHOUT_MODEL
from recollect.extract.offer import Missed
from recollect.models.embed.catalog import stale, wanted
from recollect.models.plan_limit import is_plan_limit
from recollect.store import answers, conversations, files, memories, stage1, users, vectors
from recollect.store.answers import Spent
from recollect.store.database import Transaction
from recollect.store.jobs import Job, Jobs
from recollect.store.tombstones import JOB
from recollect.types import FileStatus, JobStatus, Owner, timestamp

if TYPE_CHECKING:
    from recollect.app import Memory

_TABLES = (
    "memory_file_states",
    "memory_transcript_entries",
    "memory_conversations",
    "memory_compactions",
    "memory_projects",
    "memory_repositories",
    "memory_malformed_lines",
    "memory_jobs",
    "memory_stage1",
    "memory_artifacts",
    "memory_memories",
    "memory_sources",
    "memory_answers",
    "memory_vectors",
)
_UNWELL = (JobStatus.DEAD, JobStatus.FAILED, JobStatus.BACKING_OFF, JobStatus.PAUSED)
LOW_SPACE = 200 * 1024 * 1024
UNREADABLE = "Nothing of it is taken in: make it readable, or give it a name in UTF-8, or name it in `ignore`."
_RECENT = timedelta(days=6)
_MANY = 10  # memories that older rules kept


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong, and what to do about it."""

    problem: str
    hint: str


@dataclass(slots=True)
class Overview:
    """The JSON of `status` and `health`."""

    home: str
    root: str  # the folder of the tenant's files
    database: str
    database_bytes: int
    enabled: bool
    tables: dict[str, int] = field(default_factory=dict)  # table → rows of this agent
    sources: dict[str, dict[str, int]] = field(default_factory=dict)  # source → files, entries
    conversations: dict[str, int] = field(default_factory=dict)  # status → number
    jobs: dict[str, int] = field(default_factory=dict)  # state → number
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)  # kind of job → state → number
    memories: dict[str, int] = field(default_factory=dict)  # kind of memory → current ones
    loosened: int = 0  # of those, how many bind or hold everywhere no more, since nobody knows whose words they are
    vectors: dict[str, Any] = field(default_factory=dict)  # embedder configured, serving, and documents that wait
    model: str = ""
    missed: Missed = field(default_factory=Missed)  # what the person's own agent has not read
    tokens: list[Spent] = field(default_factory=list)  # of the last days, per model
    waiting: list[Job] = field(default_factory=list)  # jobs that did not succeed, newest first
    problems: list[Trouble] = field(default_factory=list)


def overview(memory: Memory, *, deep: bool = False) -> Overview:
    """`deep` also checks the database's integrity, malformed lines one by one, whether transcripts can be read, and
    whether what was erased is here again."""
    settings, owner = memory.settings, memory.owner
    postgres = memory.database.dialect.name == "postgres"
    result = Overview(
        home=str(settings.home),
        root=str(settings.root),
        database="PostgreSQL" if postgres else str(settings.database_file),
        database_bytes=memory.database.size(),
        enabled=settings.config.enabled,
        model=settings.config.model,
    )
    jobs = Jobs(owner, clock=memory.clock)
    with memory.database.read() as tx:
        result.tables = {table: _count(tx, table, owner.names()) for table in _TABLES}
        result.sources = _sources(tx, owner.names())
        result.conversations = conversations.count_by_status(tx, owner)
        result.kinds = jobs.count(tx)
        for states in result.kinds.values():
            for state, number in states.items():
                result.jobs[state] = result.jobs.get(state, 0) + number
        result.memories = memories.count_by_kind(tx, owner)
        result.loosened = len(memories.loosened(tx, owner))
        result.tokens = answers.spent(tx, owner, timestamp(memory.clock() - _RECENT)[:10])
        result.waiting = jobs.list(tx, _UNWELL)
        result.vectors = _vectors(tx, memory)
        removal = jobs.find(tx, *JOB)
        if removal is not None and removal.status in (JobStatus.PENDING, JobStatus.RUNNING):
            hint = "`recollect process` finishes it; so does any other command."
            result.problems.append(Trouble("a removal was cut short, or is going on", hint))
        if stuck := half_read(tx, owner, jobs):
            what = f"{len(stuck)} files were left in the middle of being read"
            result.problems.append(Trouble(what, "`recollect ingest` resumes them."))
        if unsettled := users.waiting(tx, owner):
            what = f"of {unsettled} conversations and memories of chats it is not known yet whose they are"
            result.problems.append(Trouble(what, "`recollect process` finds out; until then nobody is told of them."))
        result.problems += _doubtful(stage1.kept_by_older(tx, owner, WITHOUT_MODEL, OFFLINE))
        result.problems += [_job_trouble(job) for job in result.waiting]
        result.problems += _malformed(tx, memory, result.tables["memory_malformed_lines"], deep)
        if deep and not postgres:
            hint = "`recollect doctor --fix` sets it aside and rebuilds it from the files."
            result.problems += [Trouble(f"the database is damaged: {each}", hint) for each in damage(tx)]
    if deep and settings.config.enabled:
        result.problems += [Trouble(f"{each.path}: {each.reason}", UNREADABLE) for each in memory.intake.unreadable()]
    if deep:
        result.problems += _risen(memory)
    if settings.config.enabled:
        result.missed = memory.offer.missed()
    result.problems += [Trouble(each.message, each.hint) for each in memory.waiting()]
    result.problems += _surroundings(memory)
    return result


def _doubtful(by_older_rules: int) -> list[Trouble]:
    """A warning where many memories are left of rules of which readers called one line in twelve worth keeping."""
    if by_older_rules < _MANY:
        return []
    what = (
        f"{by_older_rules:,} memories were kept without a model by the rules of an older version, most of them doubtful"
    )
    hint = "`recollect process --again --now` takes out what today's rules would not keep, but for what was of use."
    return [Trouble(what, hint)]


def _vectors(tx: Transaction, memory: Memory) -> dict[str, Any]:
    model = wanted(memory.settings)
    serving = [each.name for each in vectors.models(tx, memory.owner) if each.status is vectors.Status.SERVING]
    waiting = vectors.backlog(tx, memory.owner, model) if model else {}
    return {
        "embedder": model or "none",
        "serving": "".join(serving) if model else "",
        "backlog": {str(kind): number for kind, number in waiting.items()},
    }


def _count(tx: Transaction, table: str, names: dict[str, Any]) -> int:
    row = tx.row(f"SELECT COUNT(*) FROM {table} WHERE tenant = :tenant AND agent_id = :agent_id", names)
    return int(row[0]) if row else 0


def _sources(tx: Transaction, names: dict[str, Any]) -> dict[str, dict[str, int]]:
    where = "WHERE tenant = :tenant AND agent_id = :agent_id AND source <> 'unknown' GROUP BY source ORDER BY source"
    found: dict[str, dict[str, int]] = {}
    for key, table in (("files", "memory_file_states"), ("entries", "memory_transcript_entries")):
        for source, number in tx.rows(f"SELECT source, COUNT(*) FROM {table} {where}", names):
            found.setdefault(source, {"files": 0, "entries": 0})[key] = number
    return found


def half_read(tx: Transaction, owner: Owner, jobs: Jobs) -> list[str]:
    """Files that nobody who is alive reads on, as source/path."""
    reading = [f"{each.source}/{each.file_path}" for each in files.with_status(tx, owner, FileStatus.INGESTING)]
    return [each for each in reading if not jobs.is_held(tx, "ingest", each)]


def _job_trouble(job: Job) -> Trouble:
    when = f", next try {job.not_before}" if job.not_before else ""
    hint = "It is tried again by itself at that time; `recollect retry` does not wait."
    if job.status is JobStatus.PAUSED:
        hint = "Raise max_tokens_per_day and run `recollect retry`, or wait."
        if is_plan_limit(job.last_error):
            hint = "Nothing is asked before then; `recollect retry` tries sooner."
    elif not job.not_before:
        hint = "Mend the cause, then run `recollect retry`."
    return Trouble(f"{job.kind} {job.key} is {job.status} after {job.attempts} attempts{when}: {job.last_error}", hint)


def _malformed(tx: Transaction, memory: Memory, number: int, deep: bool) -> list[Trouble]:
    if not number:
        return []
    hint = "They are reported, never stored; the rest of each file was taken in."
    if not deep:
        return [Trouble(f"{number} lines of transcripts could not be understood", "`recollect health` lists them.")]
    return [
        Trouble(f"{line.source} {line.file_path}:{line.line_number}: {line.reason}", hint)
        for line in files.malformed(tx, memory.owner)
    ]


def damage(tx: Transaction) -> list[str]:
    """What SQLite finds broken in its file."""
    return [row[0] for row in tx.rows("PRAGMA quick_check") if row[0] != "ok"]


def _risen(memory: Memory) -> list[Trouble]:
    """What was erased and is here again: an older copy of the database was put back."""
    from recollect.artifacts import tombstones
    from recollect.artifacts.files import Files
    from recollect.artifacts.forget import Forget

    stones = tombstones.read_all(Files(memory.settings.root))
    graves = tombstones.erased(stones.values(), memory.database, memory.owner, ())
    what = Forget(memory.ground).risen(graves)
    return [Trouble(what, "`recollect reindex` erases it again.")] if what else []


def _surroundings(memory: Memory) -> list[Trouble]:
    troubles = []
    home = memory.settings.home
    if not memory.settings.config.enabled:
        troubles.append(Trouble("recollect is switched off", "Set enabled = true in config.toml."))
    if home.exists():
        free = shutil.disk_usage(home).free
        if free < LOW_SPACE:
            troubles.append(Trouble(f"only {free // 2**20} MB of disk space are left", "Free some space."))
        if stat.S_IMODE(home.stat().st_mode) & 0o077:
            troubles.append(Trouble(f"{home} can be read by other users", f"chmod 700 {home}"))
    if stale(memory.settings):
        hint = "The daemon replaces it, or `recollect models install arctic`; until then a coarser model is used."
        troubles.append(Trouble("the installed embedding model belongs to an earlier version of recollect", hint))
    return troubles
