"""What a chat's turns are remembered by: fingerprints, reactions, signals, the active set; and their JSON forms. Pure.

Values are frozen and checked when they are made. Their JSON is what the turn log and the rows hold, so it only ever
grows: unknown keys are passed over, and an item that cannot be read is left out, never guessed.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from recollect.blocks import without_memories
from recollect.errors import UsageError
from recollect.extract.resolve import is_revision
from recollect.redact import redact
from recollect.types import Scope, Timestamp, moment, timestamp

TURN_LOG = "artifact:turn.log"
FINGERPRINT = "artifact:turn.fingerprint.v1"
REACTION = "artifact:turn.log.reaction"
ACTIVE_SET = "conversation.active_set.v1"
BUCKET = "conversation.memory.bucket.v1"
REACTION_PREFIX = "[turn.log.reaction]"
SIGNAL_TAG = "assistant_signal"
BINDING_TAG = "binding"  # of fingerprints that hold what must or must not be done beyond their conversation
KEY_TAG = "key"  # followed by a key that is spoken of
TITLE_TAG = "title"  # of those that gave their conversation one
_NEVER = Timestamp("")
_LONGEST = 4_000  # characters of a key or a value
SURE = 0.7  # confidence from which a machine's reaction counts

Value = str | int | float | bool


class Kind(StrEnum):
    """What an item is."""

    ASSERTION = "assertion"  # what the user wants
    EXCEPTION = "exception"  # what the user does not want
    FACT = "fact"
    SIGNAL = "signal"  # what the assistant promoted or claimed


class Wish(StrEnum):
    """How strict an assertion is."""

    MUST = "must"
    PREFER = "prefer"
    ALLOW = "allow"


class Limit(StrEnum):
    """How strict an exception is."""

    AVOID = "avoid"
    DO_NOT = "do_not"


class Weight(StrEnum):
    """How much a fact matters."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Push(StrEnum):
    """How hard the assistant pushed."""

    MENTION = "mention"
    RECOMMEND = "recommend"
    STRONG_PROMOTE = "strong_promote"


ItemSeverity = Wish | Limit | Weight | Push
_BINDING = (Wish.MUST, Limit.DO_NOT)
_SEVERITIES: dict[Kind, type[ItemSeverity]] = {
    Kind.ASSERTION: Wish,
    Kind.EXCEPTION: Limit,
    Kind.FACT: Weight,
    Kind.SIGNAL: Push,
}
_USUAL: dict[Kind, ItemSeverity] = {
    Kind.ASSERTION: Wish.PREFER,
    Kind.EXCEPTION: Limit.AVOID,
    Kind.FACT: Weight.MEDIUM,
    Kind.SIGNAL: Push.MENTION,
}


class By(StrEnum):
    """Who found an item."""

    CALLER = "caller"
    RULES = "rules"
    MODEL = "model"


def normalise_key(key: object) -> str:
    """As it stands in a tag: lower case, letters and digits, words joined by `_`."""
    return _normalised(str(key))


@lru_cache(maxsize=8192)  # the same keys are compared before every turn
def _normalised(key: str) -> str:
    folded = unicodedata.normalize("NFKC", key).casefold()
    return "_".join(re.findall(r"[^\W_]+", folded))[:64].strip("_")


@dataclass(frozen=True, slots=True)
class Item:
    """One assertion, exception, fact or signal."""

    kind: Kind
    key: str  # what it is about
    value: Value
    severity: ItemSeverity
    scope: Scope = Scope.PROJECT
    applies_to: tuple[str, ...] = ()  # where it holds; empty: everywhere in its scope
    quote: str = ""  # the words it was taken from
    by: By = By.CALLER

    @property
    def text(self) -> str:
        """The statement: a value that is a sentence speaks for itself."""
        value = shown(self.value)
        return (value if is_sentence(value) else f"{self.key}: {value}") + self.places

    @property
    def places(self) -> str:
        """How the statement ends: where it holds."""
        return f" (for {', '.join(self.applies_to)})" if self.applies_to else ""

    @property
    def about(self) -> tuple[str, tuple[str, ...]]:
        """Two items with the same are about the same thing."""
        return normalise_key(self.key), self.applies_to

    @property
    def is_binding(self) -> bool:
        """It has its place, whatever else is left out."""
        return self.severity in _BINDING

    def corrected(self, text: str, severity: str) -> Item:
        """As a memory that was made of it says now."""
        value = text.removesuffix(self.places).removeprefix(f"{self.key}: ")
        strict = next((each for each in _SEVERITIES[self.kind] if each == severity), self.severity)
        return self if text == self.text and strict is self.severity else replace(self, value=value, severity=strict)

    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"key": self.key, "value": self.value, "severity": str(self.severity)}
        told |= {"scope": str(self.scope), "applies_to": list(self.applies_to)}
        return told | {"provenance": {"quote": self.quote, "by": str(self.by)}}


def tidy(text: object) -> str:
    """What every store and model can take, without what was injected: no NUL, no half characters. UsageError for what
    is no text."""
    if not isinstance(text, str):
        raise UsageError(f"{text!r} is no text"[:200])
    return without_memories(text.replace("\0", "").encode("utf-8", "replace").decode())


def is_sentence(value: str) -> bool:
    return " " in value and value[-1:] in ".!?…"


def shown(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def item(
    kind: Kind,
    key: str,
    value: Value,
    severity: str = "",
    *,
    scope: str = Scope.PROJECT,
    applies_to: str | Iterable[str] = (),
    quote: str = "",
    by: By = By.CALLER,
) -> Item:
    """Checked; UsageError names what is wrong."""
    if not normalise_key(key):
        raise UsageError(f"an item needs a key, and {key!r} is none")
    if not _is_value(value):
        raise UsageError(f"the value of `{key}` is empty, or neither text, a number nor true or false")
    if len(str(key)) > _LONGEST or len(str(value)) > _LONGEST:
        raise UsageError(f"an item is a statement, and {_LONGEST:,} characters are the most")
    allowed = _SEVERITIES[kind]
    try:
        strict = allowed(severity) if severity else _USUAL[kind]
        within = Scope(scope)
    except ValueError as error:
        raise UsageError(
            f"`{key}`: {error}", hint=f"The severity is one of {', '.join(allowed)}; the scope of {', '.join(Scope)}."
        ) from None
    named = tuple(filter(None, (str(each).strip() for each in several(applies_to))))
    return Item(kind, str(key).strip(), value, strict, within, named, quote, by)


def several(given: object) -> Iterable[Any]:
    """A text is one of them, and not its letters."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise UsageError(f"no list: {given!r}"[:200])
    return given


def _is_value(value: object) -> bool:
    """What JSON can hold, and says something."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, int):
        return value.bit_length() <= _LONGEST
    return isinstance(value, float) and math.isfinite(value)


def assertion(key: str, value: Value, severity: str = "prefer", **more: Any) -> Item:
    """What the user wants: must, prefer or allow."""
    return item(Kind.ASSERTION, key, value, severity, **more)


def exception(key: str, value: Value, severity: str = "avoid", **more: Any) -> Item:
    """What the user does not want: avoid or do_not."""
    return item(Kind.EXCEPTION, key, value, severity, **more)


def fact(key: str, value: Value, severity: str = "medium", **more: Any) -> Item:
    """What is so: high, medium or low."""
    return item(Kind.FACT, key, value, severity, **more)


def signal(key: str, value: Value, severity: str = "mention", **more: Any) -> Item:
    """What the assistant said: mention, recommend or strong_promote."""
    return item(Kind.SIGNAL, key, value, severity, **{"scope": Scope.USER, **more})


_FIELDS = {
    "assertions": Kind.ASSERTION,
    "exceptions": Kind.EXCEPTION,
    "facts": Kind.FACT,
    "assistant_signals": Kind.SIGNAL,
}


def key_tag(one: Item) -> str:
    return f"{KEY_TAG}:{normalise_key(one.key)}"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """turn.fingerprint.v1: what one turn is remembered by."""

    objective: str = ""
    topics: tuple[str, ...] = ()
    assertions: tuple[Item, ...] = ()
    exceptions: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    assistant_signals: tuple[Item, ...] = ()
    conversation_title: str = ""  # where this turn gave the conversation one
    made_at: Timestamp = _NEVER

    @property
    def items(self) -> tuple[Item, ...]:
        """What the user said; signals are the assistant's."""
        return (*self.assertions, *self.exceptions, *self.facts)

    @property
    def tags(self) -> tuple[str, ...]:
        keys = dict.fromkeys(f"{SIGNAL_TAG}:{normalise_key(each.key)}" for each in self.assistant_signals)
        lasting = any(each.is_binding and each.scope is not Scope.CONVERSATION for each in self.items)
        own = (*((SIGNAL_TAG,) if keys else ()), *keys, *((BINDING_TAG,) if lasting else ()))
        return (FINGERPRINT, *own, *dict.fromkeys(key_tag(each) for each in self.items))

    def with_items(self, keep: Callable[[Item], bool]) -> Fingerprint:
        return self.changed(lambda each: each if keep(each) else None)

    def changed(self, change: Callable[[Item], Item | None]) -> Fingerprint:
        """With other items, or without some."""
        lists = (self.assertions, self.exceptions, self.facts)
        assertions, exceptions, facts = (tuple(filter(None, map(change, items))) for items in lists)
        return replace(self, assertions=assertions, exceptions=exceptions, facts=facts)

    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"version": "v1", "objective": self.objective, "topics": list(self.topics)}
        told |= {name: [each.json() for each in getattr(self, name)] for name in _FIELDS}
        return told | {"conversation_title": self.conversation_title, "made_at": self.made_at}

    @staticmethod
    def of(told: Any, *, binding: bool = False) -> Fingerprint:
        """From its JSON, whatever version wrote it; with `binding`, of its items only those that bind."""
        if not isinstance(told, Mapping):
            return Fingerprint()
        lists = {name: tuple(_items(kind, told.get(name), binding)) for name, kind in _FIELDS.items()}
        return Fingerprint(
            objective=_text(told.get("objective")),
            topics=tuple(_texts(told.get("topics"))),
            conversation_title=_text(told.get("conversation_title")),
            made_at=Timestamp(_text(told.get("made_at"))),
            **lists,
        )


_SCOPES = {str(scope): scope for scope in Scope}


def _items(kind: Kind, told: Any, binding: bool) -> Iterable[Item]:
    for each in told if isinstance(told, list | tuple) else ():
        if binding and (not isinstance(each, Mapping) or each.get("severity") not in _BINDING):
            continue
        try:  # as we write it: many are read before every turn
            key, value, source = each["key"], each["value"], each["provenance"]
            if key.strip() and _is_value(value) and len(f"{key}{value}") <= _LONGEST and not each["applies_to"]:
                severity, scope = _SEVERITIES[kind](each["severity"]), _SCOPES[each["scope"]]
                yield Item(kind, key, value, severity, scope, (), source["quote"], By(source["by"]))
                continue
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        if isinstance(each, Mapping):
            source = each.get("provenance")
            source = source if isinstance(source, Mapping) else {}
            by = source.get("by")
            try:
                yield item(
                    kind,
                    _text(each.get("key")),
                    each.get("value", ""),
                    _text(each.get("severity")),
                    scope=_text(each.get("scope")) or Scope.PROJECT,
                    applies_to=_texts(each.get("applies_to")),
                    quote=_text(source.get("quote")),
                    by=By(by) if by in list(By) else By.CALLER,
                )
            except UsageError:
                continue


_GIVEN = frozenset(("key", "value", "severity", "scope", "applies_to", "provenance"))


def as_items(kind: Kind, given: Iterable[Item | Mapping[str, Any]]) -> tuple[Item, ...]:
    """From values or their JSON, as a caller gives them, without secrets. UsageError for what is neither."""
    made = []
    for each in several(given):
        if isinstance(each, Item) and each.kind is kind:
            one = each
        elif isinstance(each, Mapping) and not set(each) - _GIVEN and isinstance(each.get("provenance") or {}, Mapping):
            source = each.get("provenance") or {}
            told = {name: value for name, value in each.items() if name != "provenance" and value is not None}
            by = By(source["by"]) if source.get("by") in list(By) else By.CALLER
            one = item(kind, **{"key": "", "value": "", **told}, quote=_text(source.get("quote")), by=by)
        else:
            raise UsageError(f"no {kind}: {each!r}"[:200], hint="Make one with recollect.turns.values." + kind)
        made.append(_clean(one))
    return tuple(made)


def _clean(one: Item) -> Item:
    value = redact(one.value) if isinstance(one.value, str) else one.value
    places = tuple(map(redact, one.applies_to))
    return replace(one, key=redact(one.key), value=value, applies_to=places, quote=redact(one.quote))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    found = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return [each for each in found if isinstance(each, str) and each]


class Opinion(StrEnum):
    """What somebody thought of a turn."""

    OK = "ok"
    NOT_OK = "not_ok"
    NEUTRAL = "neutral"


class Origin(StrEnum):
    USER = "user"  # replaces the user's reaction before it
    MACHINE = "machine"  # adds to the others, from confidence 0.7


@dataclass(frozen=True, slots=True)
class Feedback:
    """artifact:turn.log.reaction: what somebody thought of a turn."""

    turn_id: str
    reaction: Opinion
    text: str = ""
    confidence: float = 1.0
    origin: Origin = Origin.USER
    at: Timestamp = _NEVER
    conversation: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise UsageError("a confidence is between 0 and 1")

    @property
    def counts(self) -> bool:
        return self.origin is Origin.USER or self.confidence >= SURE

    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(self)
        del told["conversation"]  # follows from where it stands
        return told

    def serialized(self) -> str:
        return f"{REACTION_PREFIX}\n{encode(self.json())}"

    @staticmethod
    def parse(text: str, conversation: str = "") -> Feedback:
        return replace(
            msgspec.json.decode(text.removeprefix(REACTION_PREFIX), type=Feedback), conversation=conversation
        )


@dataclass(frozen=True, slots=True)
class TurnMemory:
    """A turn's fingerprint, where and when it was made."""

    turn_id: str
    at: Timestamp
    fingerprint: Fingerprint
    conversation: str = ""  # empty: the present one
    replaced: Mapping[str, str] = field(default_factory=dict)  # text of an item → what it said before, and where

    @property
    def turn(self) -> tuple[str, str]:
        """Which turn it is; a `ref` may be that of two."""
        return self.conversation, self.turn_id

    @property
    def ref(self) -> str:
        """How it is named beside turns of the present conversation."""
        return f"{self.conversation}/{self.turn_id}" if self.conversation else self.turn_id


@dataclass(frozen=True, slots=True)
class PriorTurn:
    """A turn as it is shown to those who come after it."""

    turn_id: str
    at: Timestamp
    user: str  # beginning of what the user said
    assistant: str


@dataclass(frozen=True, slots=True)
class SaidSignal:
    """What the assistant promoted, in whatever conversation."""

    signal: Item
    turn_id: str
    conversation: str
    at: Timestamp


@dataclass(frozen=True, slots=True)
class ActiveSet:
    """conversation.active_set.v1: what a conversation has chosen."""

    picked_bucket_ids: tuple[str, ...] = ()
    selected_local_memories_turn_ids: tuple[str, ...] = ()
    last_reconciled_ts: str = ""  # turns up to this one are in the buckets
    since_last_reconcile: int = 0  # turns after it
    conversation_title: str = ""

    def serialized(self) -> str:
        return encode(msgspec.to_builtins(self))

    @staticmethod
    def parse(text: str) -> ActiveSet:
        return msgspec.json.decode(text, type=ActiveSet)


def after(at: Timestamp) -> Timestamp:
    """The next moment: what is said later is newer, whatever the clocks say."""
    try:
        return timestamp(moment(at) + timedelta(milliseconds=1))
    except OverflowError:  # at the end of time
        return at


def encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@dataclass(frozen=True, slots=True)
class TurnScope:
    """Whose turns: every call is bound to one, and nothing outside of it is seen."""

    project: str
    user: str
    conversation: str
    tenant: str | None = None  # None: that of the memory's configuration

    def __post_init__(self) -> None:
        for name in ("project", "user", "conversation", *(("tenant",) if self.tenant is not None else ())):
            require_name(name, getattr(self, name))


def require_name(what: str, name: object) -> None:
    """A name that is missing is an error, never a wider query."""
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"a turn needs a {what}", hint="Give project, user, conversation and turn, each a text.")
    if len(name) > 512 or "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise UsageError(f"this {what} is no name: longer than 512 characters, or with half characters in it")


def settled(memories: Sequence[TurnMemory]) -> list[TurnMemory]:
    """Newest first; where items contradict each other the newest stands, and says what it replaced.

    Two items are about the same thing when key and `applies_to` are equal. An exception for a special case stands
    beside the rule. What is settled stays as it is.
    """
    newest: dict[tuple[str, tuple[str, ...]], list[tuple[TurnMemory, Item]]] = {}
    notes: dict[tuple[str, str], dict[str, str]] = {}
    ordered = sorted(memories, key=lambda each: (each.at, each.turn_id), reverse=True)
    kept: list[TurnMemory] = []
    for each in ordered:

        def holds(one: Item, memory: TurnMemory = each) -> bool:
            for by, other in newest.get(one.about, ()):
                if by.turn != memory.turn and _contradicts(other, one):
                    told = notes.setdefault(by.turn, dict(by.replaced))
                    told.setdefault(other.text, f"replaces “{one.text}” ({memory.ref})")
                    return False
                same = (other.kind, other.value, other.severity) == (one.kind, one.value, one.severity)
                if by.turn != memory.turn and same:
                    return False  # said again since
            newest.setdefault(one.about, []).append((memory, one))
            return True

        kept.append(replace(each, fingerprint=each.fingerprint.with_items(holds)))
    return [replace(each, replaced=notes.get(each.turn, each.replaced)) for each in kept]


def _contradicts(newer: Item, older: Item) -> bool:
    if newer.kind is older.kind:
        return (newer.value, newer.severity) != (older.value, older.severity)
    opposite = {newer.kind, older.kind} == {Kind.ASSERTION, Kind.EXCEPTION}
    new, old = shown(newer.value), shown(older.value)
    return opposite and (new.casefold() == old.casefold() or (is_sentence(new) and is_revision(new, old)))
