"""Our hooks and our MCP server in the text of a settings file, whatever its syntax. Pure: text → text.

Hooks have the shape that Claude Code and Codex share: event → groups → handlers. The user's groups keep their place:
ours is a group of its own at the end, because Codex knows which hooks are trusted by their position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.surfaces.hooks import launcher
from recollect.surfaces.installers.entries import NAME, Hook, Whose, is_own_server, whose

Path = tuple[str | int, ...]  # from the root: names of members, numbers of elements
Place = tuple[str, int, int]  # event, number of the group, number of the handler in it
_Handler = tuple[str, int, int, dict[str, Any]]  # where it stands, and what it says


class Syntax(NamedTuple):
    """How one place of a text is changed, with every other byte as it is. ValueError for what cannot be understood."""

    value_of: Callable[[str], Any]  # what the text says
    put: Callable[[str, Path, Any], str]  # the value at that path; at the length of an array, behind its last element
    cut: Callable[[str, Path], str]  # without what stands there, and without what this leaves empty


def with_hooks(form: Syntax, text: str, wanted: Sequence[Hook]) -> str:
    """Each hook is there once. An older one of ours says what it should in its place; one too many goes."""
    events = {hook.event for hook in wanted}
    text = _cut(form, text, [each for each in handlers(form, text) if each[0] not in events])
    for hook in wanted:
        text = _with_hook(form, text, hook)
    return text


def with_lines(form: Syntax, text: str) -> str:
    """Each call as earlier releases wrote it is a line that cannot block, in its place; nothing else changes."""
    for event, group, handler, said in handlers(form, text):
        if found := launcher.direct(said["command"]):
            text = form.put(text, ("hooks", event, group, "hooks", handler, "command"), found[1].line)
    return text


def changed(form: Syntax, before: str, after: str) -> list[Place]:
    """Where a hook of ours does not say any more what it said before."""
    kept = {each[:3]: each[3] for each in handlers(form, after)}
    return [each[:3] for each in handlers(form, before) if kept.get(each[:3]) != each[3]]


def server_programs(form: Syntax, text: str, table: str) -> list[str]:
    """The programs that our MCP server needs: an interpreter, a script, or both; empty: there is no such server."""
    there = _server(form, text, table)
    if there is None or not _is_ours(there):
        return []
    script = there["args"][: there["args"].index("mcp")][-1:]
    return [there["command"], *(each for each in script if str(each).startswith("/"))]


def without_hooks(form: Syntax, text: str) -> str:
    """Without ours."""
    return _cut(form, text, handlers(form, text))


def handlers(form: Syntax, text: str) -> list[_Handler]:
    """Ours."""
    return [each for each in _all(form.value_of(text)) if whose(each[3].get("command")) is Whose.OURS]


def _cut(form: Syntax, text: str, gone: Sequence[_Handler]) -> str:
    """A group goes with its last handler, whatever else it says: the groups behind it move up."""
    for event, group, handler, _ in reversed(gone):
        alone = len(form.value_of(text)["hooks"][event][group]["hooks"]) == 1
        text = form.cut(text, ("hooks", event, group) if alone else ("hooks", event, group, "hooks", handler))
    return text


def _with_hook(form: Syntax, text: str, hook: Hook) -> str:
    own = [each for each in handlers(form, text) if each[0] == hook.event]
    text = _cut(form, text, own[1:])
    if own:
        _, group, handler, said = own[0]
        for name, value in (("command", hook.command), ("timeout", hook.timeout)):
            if said.get(name) != value:
                text = form.put(text, ("hooks", hook.event, group, "hooks", handler, name), value)
        return text
    document = form.value_of(text)
    theirs = [said for event, _, _, said in _all(document) if event == hook.event]
    if any(whose(said.get("command")) is Whose.MENTIONS for said in theirs):
        return text
    fresh = {"hooks": [{"type": "command", "command": hook.command, "timeout": hook.timeout}]}
    if hook.event not in document.get("hooks", {}):
        return form.put(text, ("hooks", hook.event), [fresh])
    return form.put(text, ("hooks", hook.event, len(document["hooks"][hook.event])), fresh)


def _all(document: Any) -> Iterator[_Handler]:
    """Every handler. A shape that no agent reads is refused: what cannot be understood must not be changed."""
    for event, groups in _expect(_expect(document, dict, "it").get("hooks", {}), dict, "`hooks`").items():
        for number, group in enumerate(_expect(groups, list, f"`hooks.{event}`")):
            found = _expect(group, dict, f"`hooks.{event}[{number}]`").get("hooks", [])
            for place, said in enumerate(_expect(found, list, f"`hooks.{event}[{number}].hooks`")):
                if isinstance(said, dict):
                    yield event, number, place, said


def with_server(form: Syntax, text: str, table: str, entry: Mapping[str, Any]) -> str:
    """The MCP server is there. One that is ours says what it should, and keeps what else it says."""
    there = _server(form, text, table)
    if there is None:
        return form.put(text, (table, NAME), dict(entry))
    if not _is_ours(there):
        raise ValueError(f"`{table}.{NAME}` is a server of somebody else")
    for name in ("command", "args"):
        if there.get(name) != entry[name]:
            text = form.put(text, (table, NAME, name), entry[name])
    env = _expect(there.get("env", {}), dict, f"`{table}.{NAME}.env`")
    for name, value in entry.get("env", {}).items():
        if env.get(name) != value:
            text = form.put(text, (table, NAME, "env", name), value)
    return text


def without_server(form: Syntax, text: str, table: str) -> str:
    there = _server(form, text, table)
    return text if there is None or not _is_ours(there) else form.cut(text, (table, NAME))


def _server(form: Syntax, text: str, table: str) -> dict[str, Any] | None:
    servers = _expect(_expect(form.value_of(text), dict, "it").get(table, {}), dict, f"`{table}`")
    there: dict[str, Any] = _expect(servers.get(NAME, {}), dict, f"`{table}.{NAME}`")
    return there if NAME in servers else None


def _is_ours(server: Mapping[str, Any]) -> bool:
    return is_own_server(server.get("command"), server.get("args"))


def _expect(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {'no object' if kind is dict else 'no list'}")
    return value
