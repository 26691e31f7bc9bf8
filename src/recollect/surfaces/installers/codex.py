"""Codex's settings: the MCP server in config.toml, hooks in hooks.json or, where the user keeps theirs, in config.toml.

Pure: texts → texts. The top level of hooks.json may hold `description` and `hooks` and nothing else. Codex runs a hook
only after its user trusted it; it keeps that in config.toml under `hooks.state`, by file, event and position, with a
hash of the definition. So a hook of ours that goes takes its trust with it, and hooks that move up keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from recollect.surfaces.installers.entries import NAME, Hook, Server, Whose, is_own_server, whose
from recollect.surfaces.installers.hooks_json import Place, handlers, handlers_of, with_hooks, without_hooks
from recollect.surfaces.installers.json_text import or_empty, value_of
from recollect.surfaces.installers.toml_text import appended, parse, plain, without
from recollect.surfaces.installers.values import Agent, Commands, Texts, reading

AGENT = "codex"
_TIMEOUTS = {  # seconds; the last one is the most that Codex allows
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 10,
    "PreCompact": 10,
    "PostCompact": 10,
    "SessionEnd": 3,
}
ADVICE = (
    "Codex runs a hook only after you trusted it: start `codex`, type /hooks, look at the entries of recollect and"
    " trust them. Until then Codex skips them without a word. It asks again when an upgrade changes them."
)


def agent(environ: Mapping[str, str], user_home: Path, commands: Commands) -> Agent:
    chosen = environ.get("CODEX_HOME")
    folder = Path(chosen) if chosen else user_home / ".codex"
    config, hooks = folder / "config.toml", folder / "hooks.json"
    calls = tuple(Hook(event, commands.hook(event, AGENT), seconds) for event, seconds in _TIMEOUTS.items())

    def merged(texts: Texts) -> dict[Path, str]:
        with reading(config):
            told = with_server(texts[config] or "", commands.server)
            there, ours = bool(_events(told)), bool(_ours(told))
        with reading(hooks):
            text = texts[hooks]
            if ours or (there and not _has_hooks(text)):  # in one file, not in two: else they would run twice
                kept = {} if text is None else {hooks: without_hooks(or_empty(text))}
                return {config: with_toml_hooks(told, calls), **kept}
            return {config: told, hooks: with_hooks(or_empty(text), calls)}

    def stripped(texts: Texts) -> dict[Path, str]:
        with reading(hooks):
            ours = [each[:3] for each in handlers(or_empty(texts[hooks]))]
            bare = without_hooks(or_empty(texts[hooks]))
        with reading(config):
            text = without_trust(texts[config] or "", hooks, ours)
            text = without_trust(text, config, _ours(text))
            return {config: without_server(without_toml_hooks(text)), hooks: bare}

    def switched_off(texts: Texts) -> str:
        features = plain(texts[config] or "").get("features", {})
        off = isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))
        return f"`[features] hooks = false` in {config} keeps every hook from running." if off else ""

    return Agent(AGENT, "Codex", (config, hooks), (folder,), merged, stripped, switched_off, ADVICE)


def with_server(text: str, server: Server) -> str:
    """`[mcp_servers.recollect]` is there. One that is ours says what it should, and keeps what else it says."""
    servers = plain(text).get("mcp_servers", {})
    there = servers.get(NAME) if isinstance(servers, dict) else ...
    entry: dict[str, Any] = {"command": server.command, "args": list(server.args)}
    if server.env:
        entry["env"] = dict(server.env)
    if there is None:
        return appended(text, ("mcp_servers", NAME), entry)
    if not isinstance(there, dict) or not is_own_server(there.get("command"), there.get("args")):
        raise ValueError(f"`mcp_servers.{NAME}` is a server of somebody else")
    if not isinstance(there.get("env", {}), dict):
        raise ValueError(f"`mcp_servers.{NAME}.env` is no table")
    wanted = {**there, **entry, "env": {**there.get("env", {}), **server.env}}
    changed = [name for name, value in wanted.items() if value != there.get(name, {})]
    if not changed:
        return text
    document = parse(text)
    for name in changed:
        document["mcp_servers"][NAME][name] = wanted[name]
    return tomlkit.dumps(document)


def without_server(text: str) -> str:
    servers = plain(text).get("mcp_servers", {})
    there = servers.get(NAME) if isinstance(servers, dict) else None
    if not isinstance(there, dict) or not is_own_server(there.get("command"), there.get("args")):
        return text
    return without(text, ("mcp_servers", NAME))


def with_toml_hooks(text: str, wanted: Sequence[Hook]) -> str:
    """As `with_hooks`, for those who keep their hooks in config.toml."""
    events = {hook.event for hook in wanted}
    text = _cut(text, [each for each in _ours(text) if each[0] not in events])
    for hook in wanted:
        own = [each for each in _ours(text) if each[0] == hook.event]
        said = {"command": hook.command, "timeout": hook.timeout}
        if own:
            text = _cut(text, own[1:])
            _, group, handler = own[0]
            document = parse(text)
            there = document["hooks"][hook.event][group]["hooks"][handler]
            if any(there.get(name) != value for name, value in said.items()):
                there.update(said)
                text = tomlkit.dumps(document)
        elif not any(whose(each.get("command")) is Whose.MENTIONS for each in _said(text, hook.event)):
            text = appended(text, ("hooks", hook.event), [{"hooks": [{"type": "command", **said}]}])
    return text


def without_toml_hooks(text: str) -> str:
    return _cut(text, _ours(text))


def without_trust(text: str, file: Path, ours: Sequence[Place]) -> str:
    """Without the trust in hooks of ours that go; the trust in others goes up with them."""
    state = _hooks(text).get("state", {}) if ours else {}
    known = {f"{path}:{_snake(event)}:": event for path in (file, file.resolve()) for event, _, _ in ours}
    moved: list[tuple[int, str, str]] = []
    for key in state if isinstance(state, dict) else ():
        found = re.fullmatch(r"(.*:)(\d+):(\d+)", key, re.DOTALL)
        if found and (event := known.get(found[1])):
            group, handler = int(found[2]), int(found[3])
            if (event, group, handler) in ours:
                text = without(text, ("hooks", "state", key))
            elif above := sum(1 for name, each, _ in ours if name == event and each < group):
                moved.append((group, key, f"{found[1]}{group - above}:{handler}"))
    if not moved:
        return text
    document: Any = parse(text)
    for _, old, new in sorted(moved):
        document["hooks"]["state"][new] = document["hooks"]["state"].pop(old)
    return tomlkit.dumps(document)


def _has_hooks(text: str | None) -> bool:
    return bool(text and text.strip() and value_of(text).get("hooks"))


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _events(text: str) -> dict[str, Any]:
    """`hooks` of config.toml without what Codex itself keeps there."""
    return {event: groups for event, groups in _hooks(text).items() if event != "state"}


def _hooks(text: str) -> dict[str, Any]:
    hooks = plain(text).get("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError("`hooks` is no table")
    return hooks


def _ours(text: str) -> list[Place]:
    return [each[:3] for each in handlers_of({"hooks": _events(text)})]


def _said(text: str, event: str) -> list[dict[str, Any]]:
    return [handler for group in _events(text).get(event, []) for handler in group.get("hooks", [])]


def _cut(text: str, places: Sequence[Place]) -> str:
    """Without these handlers, nor the groups and events that this leaves empty."""
    for event, group, handler in reversed(places):
        groups = _events(text)[event]
        path: tuple[str | int, ...] = ("hooks", event, group, "hooks", handler)
        if len(groups[group]["hooks"]) == 1:
            path = ("hooks", event) if len(groups) == 1 else ("hooks", event, group)
        text = without(text, path)
    return text
