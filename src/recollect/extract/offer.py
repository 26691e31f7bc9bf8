"""What the person's own agent may read now, and what it may not.

A person agrees per project, in `agreed_projects` of config.toml: there they see it and change it, it outlives the
database, and what it does not name is not sent. Every conversation is read without a model first; the agent then reads
those of the agreed projects once more, newest first. So nothing waits for it, and it can be undone.

Deciding is pure: `reason_to_wait`, `is_open`. `Offer` looks up what they need.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.config import Config, Settings
from recollect.extract.jobs import KIND, by_rules, plan_limit, read_by
from recollect.note import SOURCE
from recollect.processes import program
from recollect.store import answers, conversations, stage1
from recollect.store.ground import Ground, Part
from recollect.types import Conversation, ConversationStatus, Timestamp, moment, timestamp

_MODELS = ("cli:claude:haiku", "cli:claude", "cli:codex")  # the cheapest of an agent first
_BUSY = 0.75  # load per core above which a machine is not quiet
_AGENTS = "cli:"  # how the names of models begin that are a person's own agent


def installed(settings: Settings) -> list[str]:
    """The models of agents on this machine, the cheapest of the first agent first."""
    return [each for each in _MODELS if program(program_of(each), settings.environ)]


def program_of(model: str) -> str:
    """The agent whose model it is."""
    return model.split(":")[1]


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts by which it is decided whether the agent may be asked now."""

    now: datetime
    used_at: datetime | None = None  # when somebody last used an agent, by its transcripts
    load: float = 0.0  # of the machine, per core
    spent: int = 0  # tokens of today
    limited_until: datetime | None = None  # when a plan's limit resets that was reached


def reason_to_wait(situation: Situation, config: Config, *, asked: bool = False) -> str:
    """Why the agent is asked nothing now; empty: it may be. A person who `asked` need not wait for quiet."""
    now, until = situation.now, situation.limited_until
    if until is not None and until > now:
        return f"the limit of the plan is reached; it resets at {timestamp(until)[:16]}Z (`recollect retry`: sooner)"
    if config.max_tokens_per_day and situation.spent >= config.max_tokens_per_day:
        return f"{situation.spent:,} tokens were used today, the most that max_tokens_per_day allows"
    quiet = timedelta(minutes=config.agent_quiet_minutes)
    if asked or not quiet:
        return ""
    if situation.used_at is not None and now - situation.used_at < quiet:
        return f"an agent was in use less than {config.agent_quiet_minutes} minutes ago"
    return "the machine is busy" if situation.load > _BUSY else ""


def agreed(config: Config) -> dict[str, frozenset[str]]:
    """The agent's model → the projects that it may read. Nothing where a model is named that reads them all."""
    if config.model != "offline":
        return {}
    named: set[str] = set()
    found = {}
    for model, projects in config.agreed_projects.items():
        found[model] = frozenset(projects) - named  # one agent reads a project
        named |= found[model]
    return {model: projects for model, projects in found.items() if projects}


def since(config: Config, now: datetime) -> Timestamp:
    """Conversations that ended before it are read by the agent only where a person asks for older ones."""
    oldest = timestamp(now - timedelta(days=config.max_rollout_age_days))
    return max(oldest, Timestamp(config.agreed_since))


def is_open(talk: Conversation, strategy: str | None) -> bool:
    """May the agent have something to read here? Not what a model has read, unless it went on since; no note and no
    chat. `strategy` is who read it; None: nobody found anything in it."""
    if talk.source == SOURCE:
        return False
    if talk.status is ConversationStatus.READY:
        return True
    reader = read_by(talk) if strategy is None else strategy
    return (
        talk.status in (ConversationStatus.ARCHIVED, ConversationStatus.SKIPPED) and bool(reader) and by_rules(reader)
    )


def is_by_agent(talk: Conversation, strategy: str | None) -> bool:
    """Did a person's own agent read it?"""
    _, _, model = (read_by(talk) if strategy is None else strategy).partition("/")
    return model.startswith(_AGENTS)


@dataclass(frozen=True, slots=True)
class Missed:
    """What the person's own agent has not read, in conversations."""

    models: tuple[str, ...] = ()  # that were agreed to
    due: int = 0  # read when the machine is quiet
    older: int = 0  # of the agreed projects, from before
    elsewhere: int = 0  # of projects that nobody agreed to
    waits: str = ""  # why nothing is asked now


class Offer(Part):
    """`used_at` tells when somebody last used an agent."""

    def __init__(self, ground: Ground, used_at: Callable[[], datetime | None]) -> None:
        super().__init__(ground)
        self._config = ground.settings.config
        self._used_at = used_at

    def waits(self, *, asked: bool = False) -> str:
        """Why the agent is asked nothing now; empty: it may be."""
        now = self._clock()
        with self._database.read() as tx:
            spent = answers.tokens_on(tx, self._owner, now.date().isoformat())
            job = plan_limit(tx, self._ground.jobs())
        until = moment(job.not_before) if job else None
        situation = Situation(now, spent=spent, limited_until=until)
        if (why := reason_to_wait(situation, self._config, asked=True)) or asked:
            return why
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        return reason_to_wait(Situation(now, self._used_at(), load, spent, until), self._config)

    def due(self, *, older: bool = False) -> dict[str, list[Conversation]]:
        """Model → the conversations that it is to read, newest first; `older` ones than it was agreed for, too."""
        begin = Timestamp("") if older else since(self._config, self._clock())
        projects = agreed(self._config)
        talks = self.open(begin) if projects else []
        found = {model: [each for each in talks if each.project_id in names] for model, names in projects.items()}
        return {model: chosen for model, chosen in found.items() if chosen}

    def open(self, begin: str = "") -> list[Conversation]:
        """Conversations of any project that no model has read as they are, newest first."""
        statuses = (ConversationStatus.READY, ConversationStatus.ARCHIVED, ConversationStatus.SKIPPED)
        with self._database.read() as tx:
            talks = conversations.search(tx, self._owner, statuses=statuses, since=begin, user="")
            readers = stage1.strategies(tx, self._owner)
        found = {each.session_key: each for each in reversed(talks) if is_open(each, readers.get(each.session_key))}
        return [*reversed(found.values())]

    def left_alone(self, talks: Collection[Conversation]) -> list[Conversation]:
        """Those that may be read without a model. In an agreed project, what the agent has read waits for it; so does
        what it was reading when it was cut short, since its answer is paid for."""
        names = {name for projects in agreed(self._config).values() for name in projects}
        if not names:
            return [*talks]
        with self._database.read() as tx:
            readers = stage1.strategies(tx, self._owner)
            answered = answers.keys(tx, self._owner, KIND)

        def waits(talk: Conversation) -> bool:
            return talk.session_key in answered or is_by_agent(talk, readers.get(talk.session_key))

        return [each for each in talks if each.project_id not in names or not waits(each)]

    def read(self, projects: Collection[str] = ()) -> list[Conversation]:
        """Conversations that a person's own agent has read, of these projects or of all; and those that wait for a
        plan's limit to reset."""
        with self._database.read() as tx:
            talks = conversations.search(tx, self._owner)
            readers = stage1.strategies(tx, self._owner)
        return [
            each
            for each in talks
            if is_by_agent(each, readers.get(each.session_key)) and (not projects or each.project_id in projects)
        ]

    def revive(self, talks: Sequence[Conversation]) -> None:
        """What failed, or waits for its time, is due."""
        jobs = self._ground.jobs()
        with self._database.write() as tx:
            for key in sorted({each.session_key for each in talks}):
                jobs.revive(tx, KIND, key)

    def missed(self) -> Missed:
        """For `status`."""
        projects = agreed(self._config)
        if self._config.model != "offline":
            return Missed()
        names = {name for each in projects.values() for name in each}
        talks, begin = self.open(), since(self._config, self._clock())
        own = [each for each in talks if each.project_id in names]
        due = sum(each.last_message_at >= begin for each in own)
        waits = self.waits() if due else ""
        return Missed(tuple(projects), due, len(own) - due, len(talks) - len(own), waits)
