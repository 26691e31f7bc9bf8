"""One turn of a chat: what is known before it, what agents are shown, what is found out, and what is written down.

Everything is decided here in memory; `Turns` reads and writes. Nothing is written before `persist`, which happens once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recollect.errors import ArtifactError, UsageError
from recollect.ingest.sources.recollect import Turn as Line
from recollect.redact import redact
from recollect.turns import present, prompts
from recollect.turns.buckets import Bucket, picked
from recollect.turns.present import View, ViewRole
from recollect.turns.reconcile import Ask, Offer, Reconciled, chosen_ids, reconcile
from recollect.turns.signals import SignalSpec, extract
from recollect.turns.values import (
    ActiveSet,
    Feedback,
    Fingerprint,
    Item,
    Kind,
    PriorTurn,
    SaidSignal,
    TurnMemory,
    after,
    as_items,
    require_name,
    settled,
    several,
    tidy,
)
from recollect.types import moment

if TYPE_CHECKING:
    from recollect.turns.chat import Turns

log = logging.getLogger(__name__)

_PICKED = 3  # buckets
_TOPICS = 8

Items = Iterable[Item | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TurnState:
    """Everything that is known before a turn."""

    prior: tuple[PriorTurn, ...] = ()  # newest first
    memories: tuple[TurnMemory, ...] = ()  # newest first: the window, what was chosen last, and what binds
    feedback: tuple[Feedback, ...] = ()  # of the conversation, newest first
    signals: tuple[SaidSignal, ...] = ()  # of the user, newest first
    buckets: tuple[Bucket, ...] = ()  # of the user; none when they are switched off
    active_set: ActiveSet = field(default_factory=ActiveSet)
    unread: bool = False  # there may be more that binds


@dataclass(slots=True)
class TurnLogState:
    """The current turn's log in memory: `state["fingerprint"]` is there once it is persisted."""

    state: dict[str, Any] = field(default_factory=dict)


class ChatTurn:
    """One turn, from before the gate until it is persisted."""

    def __init__(self, turns: Turns, turn_id: str, user_text: str = "") -> None:
        require_name("turn", turn_id)
        self.turn_id = turn_id
        self.user_text, self._spoke = tidy(user_text), bool(user_text.strip())
        self.answer = ""
        self.signals: SignalSpec | None = None
        self.fingerprint = Fingerprint()
        self.tlog = TurnLogState()
        self.result: Reconciled | None = None
        self.persisted = False
        self._turns = turns
        self._state: TurnState | None = None
        self._selected: tuple[str, ...] | None = None
        self._at = turns.now
        self._lock = threading.RLock()  # one call at a time, from whatever thread

    def __enter__(self) -> ChatTurn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.persisted:
            self.persist()

    def _hear(self, user_text: str | None) -> None:
        """What a user says is theirs; a turn that is nothing but a block that came back is a turn all the same."""
        if user_text is not None:
            self.user_text, self._spoke = tidy(user_text), bool(user_text.strip())

    def preload(self) -> TurnState:
        """Reads what is known before the turn; once, however often it is called. TurnConflict when it was erased."""
        with self._lock:
            if self._state is None:
                found = self._turns.load(self.turn_id)
                self._state = replace(  # a turn that is done again does not come before itself
                    found,
                    prior=tuple(each for each in found.prior if each.turn_id != self.turn_id),
                    memories=tuple(each for each in found.memories if each.turn != self._turn),
                )
            return self._state

    def view(self, role: str, *, user_text: str | None = None, ages: bool = False, budget: int | None = None) -> View:
        """What an agent is given: `gate`, `reconciler`, `downstream` or `final`. `ages` shows how long ago; `budget`
        is the most tokens of a block."""
        with self._lock:
            self._hear(user_text)
            try:
                who = ViewRole(role)
            except ValueError:
                raise UsageError(f"no role `{role}`", hint=f"One of {', '.join(ViewRole)}.") from None
            return self._view(who, ages, self._turns.block_tokens if budget is None else budget)

    retrospective_view = view

    def _view(self, role: ViewRole, ages: bool, budget: int) -> View:
        state = self.preload()
        now = moment(self._turns.now) if ages else None
        memories: Sequence[TurnMemory] = state.memories
        current = None
        if role in (ViewRole.DOWNSTREAM, ViewRole.FINAL):
            memories = self._chosen(state)
            at = max([self._turns.now, *(after(each.at) for each in state.memories[:1])])  # whatever the clock says
            current = TurnMemory(self.turn_id, at, self.fingerprint)
        more: dict[str, Any] = {"now": now, "budget": budget}
        told = {"current": current, "unread": state.unread, **more}
        if role is ViewRole.FINAL:
            return View(
                role,
                (
                    present.memories_block(memories, order_label="selected", **told),
                    present.feedback_block(state.feedback, order_label="", **more),
                    present.signals_block(state.signals, order_label="", **more),
                ),
            )
        return View(
            role,
            (
                present.current_block(self.turn_id, redact(self.user_text), budget=budget),
                present.prior_block(state.prior, **more),
                present.candidates_block(memories, state.feedback, **more),
                present.feedback_block(state.feedback, **more),
                present.memories_block(memories, **told),
            ),
        )

    def _chosen(self, state: TurnState) -> list[TurnMemory]:
        """The chosen turns; of the others only what binds, and what says last what these or a rule spoke about."""
        if self._selected is None:
            raise UsageError(
                "nothing is selected yet", hint="Call `reconcile` first, or give `local_memories_turn_ids`."
            )
        told = [(each.ref in self._selected, one) for each in state.memories for one in each.fingerprint.items]
        about = {one.about for is_chosen, one in told if is_chosen or one.is_binding}
        kept = []
        for each in settled(state.memories):
            if each.ref not in self._selected:
                each = replace(each, fingerprint=each.fingerprint.with_items(lambda one: one.about in about))
            if each.fingerprint.items:
                kept.append(each)
        return kept

    def reconcile(self, user_text: str | None = None) -> Reconciled:
        """Finds out what the user says and which earlier turns matter; both go into the fingerprint and the views."""
        with self._lock:
            self._open()
            self._hear(user_text)
            if not self._spoke:
                raise UsageError("there is nothing to reconcile", hint="Give the user's text.")
            state = self.preload()
            if state.active_set.since_last_reconcile >= self._turns.reconciles_after:
                state = replace(state, buckets=self._reconciled_buckets())
            recalled = self._turns.recall(redact(self.user_text))
            recalled = [each for each in recalled if each.turn != self._turn]
            everything = {each.turn: each for each in (*state.memories, *recalled)}
            ordered = sorted(everything.values(), key=lambda each: (each.at, each.turn_id), reverse=True)
            self._state = state = replace(state, memories=tuple(ordered))
            offer = Offer(
                self.turn_id,
                redact(self.user_text),
                self._view(ViewRole.RECONCILER, False, self._turns.block_tokens),
                state.memories,
                state.feedback,
                state.prior[0].turn_id if state.prior else "",
                tuple(each.ref for each in recalled),
            )
            found = reconcile(offer, self._ask("reconcile"))
            buckets = picked(state.buckets, self.user_text, _PICKED)
            self.result = replace(found, picked_bucket_ids=tuple(each.id for each in buckets))
            self._selected = found.local_memories_turn_ids
            self.fingerprint = replace(
                self.fingerprint,
                objective=found.objective,
                topics=found.topics,
                assertions=found.assertions,
                exceptions=found.exceptions,
                facts=found.facts,
            )
            return self.result

    def _reconciled_buckets(self) -> tuple[Bucket, ...]:
        """A bucket that cannot be written stops no turn."""
        try:
            self._turns.reconcile_buckets()
        except ArtifactError as error:
            log.warning("the newest turns are in no buckets yet: %s", error)
        return self._turns.held_buckets()

    def _ask(self, what: str) -> Ask | None:
        if self._turns.model is None:
            return None
        from recollect.turns import schema

        if what == "signals":
            return self._turns.asks(prompts.SIGNALS, schema.SignalsOut)
        ask = self._turns.asks(prompts.RECONCILE, schema.ReconciledOut)
        return lambda journal: ask("<journal>\n" + journal.replace("</journal", "‹/journal") + "\n</journal>")

    def update_fingerprint(
        self,
        *,
        objective: str | None = None,
        topics: Iterable[str] | None = None,
        assertions: Items | None = None,
        exceptions: Items | None = None,
        facts: Items | None = None,
        conversation_title: str | None = None,
        local_memories_turn_ids: Iterable[str] | None = None,
    ) -> Fingerprint:
        """What is given replaces what is there. Ids that were not offered are dropped."""
        with self._lock:
            self._open()
            short: dict[str, Any] = {"objective": (objective, 400), "conversation_title": (conversation_title, 80)}
            given: dict[str, Any] = {
                name: None if text is None else _short(text, most) for name, (text, most) in short.items()
            }
            given["topics"] = None if topics is None else tuple(_short(each, 60) for each in several(topics))[:_TOPICS]
            lists = {"assertions": assertions, "exceptions": exceptions, "facts": facts}
            for (name, items), kind in zip(lists.items(), (Kind.ASSERTION, Kind.EXCEPTION, Kind.FACT), strict=True):
                given[name] = None if items is None else as_items(kind, items)
            self.fingerprint = replace(self.fingerprint, **{k: v for k, v in given.items() if v is not None})
            if local_memories_turn_ids is not None:
                offered = [each.ref for each in self.preload().memories]
                self._selected, _ = chosen_ids(map(tidy, several(local_memories_turn_ids)), offered)
            return self.fingerprint

    def persist(self, answer: str | None = None, signals: SignalSpec | None = None) -> Fingerprint:
        """Writes the turn down, once. The same turn again changes nothing; with other words it is a TurnConflict."""
        with self._lock:
            if self.persisted and (answer is None or tidy(answer) == self.answer):
                return self.fingerprint
            self.answer = tidy(self.answer if answer is None else answer)
            self.signals = self.signals if signals is None else signals
            if not self._spoke and not self.answer.strip():
                raise UsageError(f"turn `{self.turn_id}` has no words", hint="Give the user's text, or an answer.")
            self._write()
            return self.fingerprint

    def _write(self) -> None:
        promoted = extract(redact(self.answer), self.signals, self._ask("signals") if self.signals else None)
        made = replace(self.fingerprint, assistant_signals=promoted, made_at=self._turns.now)
        told, scope = made.json(), self._turns.scope
        feedback = self.result.feedback if self.result else None
        judged = [{"area": "feedback", **feedback.json(), "at": self._at}] if feedback else []
        more = {
            "turn_log": {"state": {"fingerprint": told}, "entries": judged, "feedbacks": []},
            "turn_summary": {
                "prefs": {"assertions": told["assertions"], "exceptions": told["exceptions"]},
                "facts": told["facts"],
                "assistant_signals": told["assistant_signals"],
            },
        }
        line = Line(
            id=self.turn_id,
            at=self._at,
            project=scope.project,
            user=scope.user,
            conversation=scope.conversation,
            user_text=self.user_text,
            assistant_text=self.answer,
            answered_at=self._turns.now,
        )
        self.fingerprint = self._turns.write(line, more, self._chosen_now)
        self.tlog.state["fingerprint"] = self.fingerprint.json()
        self.persisted = True

    def _chosen_now(self, before: ActiveSet, made: Fingerprint) -> ActiveSet:
        own = tuple(each for each in self._selected or () if "/" not in each or each in self._own_ids())
        return replace(
            before,
            selected_local_memories_turn_ids=own,
            picked_bucket_ids=self.result.picked_bucket_ids if self.result else before.picked_bucket_ids,
            since_last_reconcile=before.since_last_reconcile + 1,
            conversation_title=made.conversation_title or before.conversation_title,
        )

    @property
    def _turn(self) -> tuple[str, str]:
        return "", self.turn_id

    def _own_ids(self) -> set[str]:
        return {each.ref for each in self.preload().memories if not each.conversation}

    def _open(self) -> None:
        if self.persisted:
            raise UsageError(f"turn `{self.turn_id}` is persisted", hint="Begin the next one.")


def _short(text: str, most: int) -> str:
    return present.inert(redact(tidy(text)), most)
