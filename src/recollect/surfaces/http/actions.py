"""What a person does on the page: one form, one verb. Each returns to where it was, or shows what was wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from recollect.browse import VERBS
from recollect.errors import RecollectError, UsageError
from recollect.hand import Author
from recollect.surfaces.http.app import Ask, View, status_of
from recollect.surfaces.http.views import show_memory
from recollect.types import Hand, MemoryKind, Severity

_PERSON = Author(Hand.PERSON)
_SHARED = frozenset({"back"})


@dataclass(frozen=True, slots=True)
class Form:
    """What a verb takes from its form."""

    do: Callable[[Ask, str], str]  # returns what was done, a key of DONE
    fields: frozenset[str]


def _correct(ask: Ask, name: str) -> str:
    kind, severity = ask.form.get("kind", ""), ask.form.get("severity", "")
    ask.memory.correct(
        name,
        _required(ask, "text"),
        kind=MemoryKind(_one_of(kind, list(MemoryKind), "a kind")) if kind else None,
        severity=Severity(_one_of(severity, list(Severity), "a severity")) if severity else None,
        revision=_revision(ask),
        author=_PERSON,
    )
    return "correct"


def _pin(ask: Ask, name: str) -> str:
    ask.memory.pin(name, author=_PERSON)
    return "pin"


def _unpin(ask: Ask, name: str) -> str:
    ask.memory.unpin(name, author=_PERSON)
    return "unpin"


def _feedback(ask: Ask, name: str) -> str:
    opinion = _one_of(_required(ask, "opinion"), ["ok", "not_ok"], "an opinion")
    ask.memory.feedback(name, opinion, ask.form.get("reason", ""), author=_PERSON)
    return "ok" if opinion == "ok" else "wrong"


def _move(ask: Ask, name: str) -> str:
    target = _required(ask, "project")
    known = [each for each, _ in ask.memory.projects()]
    if target != "*" and target not in known:
        raise UsageError("no such project is known", hint="Choose one of the list.")
    everywhere = target == "*"
    ask.memory.move(
        name, project=None if everywhere else target, everywhere=everywhere, revision=_revision(ask), author=_PERSON
    )
    return "move"


def _undo(ask: Ask, name: str) -> str:
    ask.memory.undo(name, revision=_revision(ask), author=_PERSON)
    return "undo"


def _seen(ask: Ask, name: str) -> str:
    again = ask.form.get("again") == "yes"
    ask.memory.seen([name], again=again)
    return "unseen" if again else "seen"


FORMS: Mapping[str, Form] = {
    "correct": Form(_correct, frozenset({"text", "kind", "severity", "revision"})),
    "pin": Form(_pin, frozenset()),
    "unpin": Form(_unpin, frozenset()),
    "feedback": Form(_feedback, frozenset({"opinion", "reason"})),
    "move": Form(_move, frozenset({"project", "revision"})),
    "undo": Form(_undo, frozenset({"revision"})),
    "seen": Form(_seen, frozenset({"again"})),
}
assert FORMS.keys() == {each.name for each in VERBS if each.writes} - {"forget"}  # which has views of its own


def act(ask: Ask) -> Response:
    """Does it. Whatever is wrong is said beside the form, and what was typed stays there."""
    name, verb = ask.path("id"), ask.path("verb")
    form = FORMS.get(verb)
    if form is None:
        raise UsageError("there is no such thing to do")
    try:
        if unknown := sorted(set(ask.form) - form.fields - _SHARED):
            raise UsageError(f"this form has no field `{unknown[0][:40]}`")
        held = ask.memory.memory(name)
        done = form.do(ask, held.id)
    except RecollectError as error:
        if status_of(error) == 404:
            raise
        return show_memory(ask, name, status_of(error), error, {**ask.form, "verb": verb})
    return ask.back(f"/m/{held.id}", done)


def all_seen(ask: Ask) -> Response:
    """Takes what the inbox showed out of it: the memories that the form names, and no newer one."""
    names = [each for each in ask.form.get("ids", "").split(",") if each]
    if not names or len(names) > 100 or set(ask.form) - {"ids", "back"}:
        raise UsageError("the form does not say what was seen")
    ask.memory.seen(names)
    return ask.back("/inbox", "seen")


def _required(ask: Ask, field: str) -> str:
    value = ask.form.get(field, "").replace("\r\n", "\n").strip()
    if not value:
        raise UsageError(f"the field {field} is empty", hint="Say it in a sentence.")
    return value


def _revision(ask: Ask) -> int:
    """What the person saw. A form always says it."""
    text = ask.form.get("revision", "")
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 10 or int(text) == 0:
        raise UsageError("the form does not say which revision it changes", hint="Reload the page.")
    return int(text)


def _one_of(value: str, known: list[str], what: str) -> str:
    if value not in known:
        raise UsageError(f"that is not {what}", hint=f"There are: {', '.join(known)}.")
    return value


ROUTES: Mapping[str, View] = {"/m/{id}/{verb}": act, "/inbox/seen": all_seen}
