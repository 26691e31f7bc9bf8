"""Hooks in a JSON file of the shape that Claude Code and Codex share: event → groups → handlers. Pure: text → text.

The user's groups keep their place: ours is a group of its own at the end, because Codex knows which hooks are trusted
by their position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from recollect.surfaces.installers.entries import Hook, Whose, whose
from recollect.surfaces.installers.json_text import NotJson, cut, put, value_of

Place = tuple[str, int, int]  # event, number of the group, number of the handler in it


def with_hooks(text: str, wanted: Sequence[Hook]) -> str:
    """Each hook is there once. An older one of ours says what it should in its place; one too many goes."""
    events = {hook.event for hook in wanted}
    for event, group, handler, _ in reversed([each for each in handlers(text) if each[0] not in events]):
        text = cut(text, ("hooks", event, group, "hooks", handler))
    for hook in wanted:
        text = _with_hook(text, hook)
    return text


def without_hooks(text: str) -> str:
    """Without ours."""
    for event, group, handler, _ in reversed(list(handlers(text))):
        text = cut(text, ("hooks", event, group, "hooks", handler))
    return text


def handlers(text: str) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Ours: event, number of the group, number of the handler in it, and what it says."""
    return handlers_of(value_of(text))


def handlers_of(document: Any) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    for event, group, handler, said in _all(document):
        if whose(said.get("command")) is Whose.OURS:
            yield event, group, handler, said


def _with_hook(text: str, hook: Hook) -> str:
    own = [each for each in handlers(text) if each[0] == hook.event]
    for event, group, handler, _ in reversed(own[1:]):
        text = cut(text, ("hooks", event, group, "hooks", handler))
    if own:
        _, group, handler, said = own[0]
        for name, value in (("command", hook.command), ("timeout", hook.timeout)):
            if said.get(name) != value:
                text = put(text, ("hooks", hook.event, group, "hooks", handler, name), value)
        return text
    document = value_of(text)
    theirs = [said for event, _, _, said in _all(document) if event == hook.event]
    if any(whose(said.get("command")) is Whose.MENTIONS for said in theirs):
        return text
    group = {"hooks": [{"type": "command", "command": hook.command, "timeout": hook.timeout}]}
    if hook.event not in document.get("hooks", {}):
        return put(text, ("hooks", hook.event), [group])
    return put(text, ("hooks", hook.event, len(document["hooks"][hook.event])), group)


def _all(document: Any) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Every handler. A shape that no agent reads is refused: what cannot be understood must not be changed."""
    if not isinstance(document, dict):
        raise NotJson("it is no object")
    for event, groups in _expect(document.get("hooks", {}), dict, "`hooks`").items():
        for number, group in enumerate(_expect(groups, list, f"`hooks.{event}`")):
            found = _expect(group, dict, f"`hooks.{event}[{number}]`").get("hooks", [])
            for place, said in enumerate(_expect(found, list, f"`hooks.{event}[{number}].hooks`")):
                if isinstance(said, dict):
                    yield event, number, place, said


def _expect(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise NotJson(f"{what} is {'no object' if kind is dict else 'no list'}")
    return value
