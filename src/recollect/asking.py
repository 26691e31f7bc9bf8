"""What a model is asked: the cost, the exact questions, what the person's own agent reads, and how that is undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.parts import AGENTS_AT_ONCE, Parts

if TYPE_CHECKING:
    from recollect.extract.values import Backlog, Report, Transcript
    from recollect.turns.retirement import RetirementNote
    from recollect.types import Conversation

_SECONDS_PER_ANSWER = 25.0  # of a coding agent's
_RENDERED = 100  # conversations whose prompts an estimate counts
_AGENT_READS = 4  # conversations that it is given between two looks at whether it may go on


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would cost, about."""

    conversations: int
    tokens: int
    dollars: float  # 0: not known
    seconds: float = 0.0
    model: str = ""


class Asking(Parts):
    """The verbs that ask a model, and what a person agreed to have read."""

    def estimate(self, *, limit: int | None = None, now: bool = False, again: bool = False) -> Estimate | None:
        """What `process` would send to a paid model, or to the person's own agent; None when nobody is billed."""
        from recollect.models.choose import language_model

        name = self.settings.config.model
        model = language_model(self.settings, name)
        if model is not None:
            backlog = self._extract().backlog(limit=limit, now=now, again=again) if model.paid else None
            return self._priced(name, backlog) if backlog else None
        due = self.offer.due(older=now and again)
        return next((self.cost(name, talks[:limit]) for name, talks in due.items()), None)

    def cost(self, model: str, talks: Sequence[Conversation]) -> Estimate:
        """What it takes to have a model read these conversations: the newest are rendered, the others are reckoned by
        how many messages they have."""
        from recollect.extract.load import load
        from recollect.extract.model import backlog
        from recollect.extract.values import Backlog

        near = talks[:_RENDERED]
        loaded = (load(self.database, self.owner, [each]) for each in near)
        found = backlog(loaded, self.settings.config.model_part_tokens)
        share = sum(each.entry_count for each in talks) / max(sum(each.entry_count for each in near), 1)
        counts = (found.input_tokens, found.output_tokens, found.answers)
        return self._priced(model, Backlog(len(talks), *(round(each * share) for each in counts)))

    def _priced(self, name: str, found: Backlog) -> Estimate:
        from recollect.models.choose import language_model

        model = language_model(self.settings, name)
        dollars = model.price(found.input_tokens, found.output_tokens) if model else 0.0
        seconds = found.answers * _SECONDS_PER_ANSWER / AGENTS_AT_ONCE
        return Estimate(found.conversations, found.tokens, dollars, seconds, name)

    def questions(
        self, *, limit: int | None = None, now: bool = False, again: bool = False
    ) -> Iterator[tuple[str, list[str]]]:
        """Session key → exactly what `process` would send to the model for it. UsageError where none is configured."""
        from recollect.extract.offer import agreed

        if self.settings.config.model == "offline" and not agreed(self.settings.config):
            hint = "Name one with `model` in config.toml, or agree to your own agent: `recollect init`."
            raise UsageError("without a model nothing is sent", hint=hint)
        if self.settings.config.model != "offline":
            for each in self._extract().sent(limit, now, again):
                yield each.conversation.session_key, self._asked(self.settings.config.model, each)
        for model, talks in self.offer.due(older=now and again).items():
            for talk in talks[:limit]:
                yield talk.session_key, self.asked_about(model, talk)

    def asked_about(self, model: str, talk: Conversation) -> list[str]:
        """Exactly what this model would be sent about a conversation."""
        from recollect.extract.load import load

        return self._asked(model, load(self.database, self.owner, [talk]))

    def _asked(self, model: str, transcript: Transcript) -> list[str]:
        from recollect.extract.load import with_known
        from recollect.extract.model import questions
        from recollect.models.agent_cli import rendered

        near = with_known(self.ground, transcript)
        whole = rendered if model.startswith("cli:") else lambda instructions, content, _: f"{instructions}\n{content}"
        return questions(near, self.settings.config.model_part_tokens, whole)

    def have_agent_read(self, report: Report, *, limit: int | None, now: bool, again: bool, **more: Any) -> None:
        """What the person agreed to is read by their own agent, a few conversations at a time, while nothing is in the
        way: see `Offer.waits`. It ends with the first failure."""
        most = limit if limit is not None else None if now else self.settings.config.max_rollouts_per_startup
        for model, talks in self.offer.due(older=now and again).items():
            keys = [each.session_key for each in talks[:most]]
            report.left_to_agent += len(talks)
            while keys and not (report.agent_waits or report.limited):
                if why := self.offer.waits(asked=now):
                    report.agent_waits = why
                    break
                chosen, keys = keys[:_AGENT_READS], keys[_AGENT_READS:]
                done = self.read_by_agent(model, chosen, now=now, **more)
                report.left_to_agent -= done.stored
                report.add(done)
                if done.failed or done.given_up:
                    break

    def read_by_agent(
        self,
        model: str,
        keys: Sequence[str],
        *,
        now: bool = True,
        progress: Callable[[int, int], None] = lambda done, of: None,
        stopping: Callable[[int], None] = lambda running: None,
        retirement: RetirementNote | None = None,
    ) -> Report:
        """The person's own agent reads these conversations, as far as they agreed to it. What is retired on the way
        stands in the note that is given, else in one of its own."""
        from recollect.extract.values import Reading
        from recollect.turns.retirement import RetirementNote

        note = retirement or RetirementNote(self.ground)
        extract = self._extract(stopping, model_name=model, reading=Reading.OFFERED, retirement=note)
        done = extract.run(keys=keys, now=now, again=True, progress=progress)
        if retirement is None:
            note.take_in(self.intake, self._extract(model_name="offline"))
        done.by_agent = done.stored
        return done

    def read_without_model(
        self, keys: Sequence[str], progress: Callable[[int, int], None] = lambda done, of: None
    ) -> Report:
        """These conversations, as far as nobody has read them."""
        done = self._extract(model_name="offline").run(keys=keys, now=True, progress=progress)
        self._projection.update()
        return done

    def told_of(self, session_key: str) -> tuple[str, list[str]]:
        """What a conversation's summary tells, and the memories that it states."""
        from recollect.store import memories, stage1

        with self.database.read() as tx:
            row = stage1.load(tx, self.owner, session_key)
            held = memories.of_session(tx, self.owner, session_key)
        return row.rollout_summary if row else "", [each.text for each in held]

    def without_agent(self, projects: Collection[str] = ()) -> Report:
        """Undoes what the person's own agent read, in these projects or in all: it is read without a model, and what
        only the agent stated is stated no more."""
        from recollect.extract.values import Reading
        from recollect.turns.retirement import RetirementNote

        talks, note = self.offer.read(projects), RetirementNote(self.ground)
        self.offer.revive(talks)
        extract = self._extract(model_name="offline", reading=Reading.UNDOING, retirement=note)
        done = extract.run(keys=list(dict.fromkeys(each.session_key for each in talks)), now=True, again=True)
        note.take_in(self.intake, self._extract(model_name="offline"))
        self._projection.update()
        self.consolidate(now=True)
        return done
