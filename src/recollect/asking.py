"""What a model is asked: the cost, the exact questions, what the person's own agent reads, and how that is undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.parts import AGENTS_AT_ONCE, Parts

if TYPE_CHECKING:
    from recollect.extract.values import Report, Transcript

_SECONDS_PER_ANSWER = 25.0  # of a coding agent's
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
    """What is sent to a model, and by whose leave."""

    def estimate(self, *, limit: int | None = None, now: bool = False, again: bool = False) -> Estimate | None:
        """What `process` would send to a paid model, or to the person's own agent; None when nobody is billed."""
        from recollect.extract.model import backlog
        from recollect.models.choose import language_model

        config = self.settings.config
        for name, talks in self._sent(limit, now, again):
            model = language_model(self.settings, name)
            if model is not None and model.paid:
                found = backlog(talks, config.model_part_tokens)
                seconds = found.answers * _SECONDS_PER_ANSWER / AGENTS_AT_ONCE
                dollars = model.price(found.input_tokens, found.output_tokens)
                return Estimate(found.conversations, found.tokens, dollars, seconds, name)
        return None

    def _sent(self, limit: int | None, now: bool, again: bool) -> Iterator[tuple[str, Iterator[Transcript]]]:
        """Model → the conversations that `process` would send to it."""
        from recollect.extract.load import load

        if self.settings.config.model != "offline":
            yield self.settings.config.model, self._extract().sent(limit, now, again)
        for name, talks in self.offer.due(older=now and again).items():
            yield name, (load(self.database, self.owner, [each]) for each in talks[:limit])

    def questions(
        self, *, limit: int | None = None, now: bool = False, again: bool = False
    ) -> Iterator[tuple[str, list[str]]]:
        """Session key → exactly what `process` would send to the model for it. UsageError where none is configured."""
        from recollect.extract.offer import agreed

        if self.settings.config.model == "offline" and not agreed(self.settings.config):
            hint = "Name one with `model` in config.toml, or agree to your own agent: `recollect init`."
            raise UsageError("without a model nothing is sent", hint=hint)
        for model, talks in self._sent(limit, now, again):
            for each in talks:
                yield each.conversation.session_key, self.asked(model, each)

    def asked(self, model: str, transcript: Transcript) -> list[str]:
        """Exactly what this model would be sent about a conversation."""
        from recollect.extract.load import with_known
        from recollect.extract.model import questions
        from recollect.models.agent_cli import rendered

        near = with_known(self.ground, transcript)
        whole = rendered if model.startswith("cli:") else lambda instructions, content, _: f"{instructions}\n{content}"
        return questions(near, self.settings.config.model_part_tokens, whole)

    def _have_agent_read(self, report: Report, *, limit: int | None, now: bool, again: bool, **more: Any) -> None:
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
    ) -> Report:
        """The person's own agent reads these conversations, as far as they agreed to it."""
        from recollect.extract.values import Reading

        extract = self._extract(stopping, model_name=model, reading=Reading.OFFERED)
        done = extract.run(keys=keys, now=now, again=True, progress=progress)
        done.by_agent = done.stored
        return done

    def without_agent(self, projects: Collection[str] = ()) -> Report:
        """Undoes what the person's own agent read, in these projects or in all: it is read without a model, and what
        only the agent stated is stated no more."""
        from recollect.extract.values import Reading

        talks = self.offer.read(projects)
        self.offer.revive(talks)
        extract = self._extract(model_name="offline", reading=Reading.UNDOING)
        done = extract.run(keys=list(dict.fromkeys(each.session_key for each in talks)), now=True, again=True)
        self._projection.update()
        self.consolidate(now=True)
        return done
