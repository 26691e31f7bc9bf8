"""Codex's settings: the MCP server in config.toml, hooks in hooks.json or, where the user keeps theirs, in config.toml.

Pure: texts → texts. The top level of hooks.json may hold `description` and `hooks` and nothing else. Codex runs a hook
only after its user trusted it; it keeps that in config.toml under `hooks.state`, by file, event and position, with a
hash of the definition. So a hook of ours that goes takes its trust with it, and hooks that move up keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tomllib import loads
from typing import Any

from recollect.surfaces.installers.entries import Hook
from recollect.surfaces.installers.json_text import JSON, or_empty, value_of
from recollect.surfaces.installers.merge import (
    Place,
    Syntax,
    changed,
    handlers,
    server_programs,
    with_hooks,
    with_lines,
    with_server,
    without_hooks,
    without_server,
)
from recollect.surfaces.installers.toml_text import parse, put, without
from recollect.surfaces.installers.values import Agent, Commands, Entry, Texts, reading

AGENT = "codex"
_SERVERS = "mcp_servers"
ADVICE = (
    "Codex runs a hook only after you trusted it: start `codex`, type /hooks, look at the entries of recollect and"
    " trust them. Until then Codex skips them without a word."
)


def agent(environ: Mapping[str, str], user_home: Path, commands: Commands) -> Agent:
    chosen = environ.get("CODEX_HOME")
    folder = Path(chosen) if chosen else user_home / ".codex"
    files = _Files(
        folder / "config.toml",
        folder / "hooks.json",
        {name: value for name, value in commands.server().items() if value},
        commands.hooks(AGENT, SessionEnd=3),  # the most that Codex allows
    )
    return Agent(
        AGENT,
        "Codex",
        (files.config, files.hooks),
        (folder,),
        files.merged,
        files.stripped,
        files.renewed,
        files.entries,
        files.server,
        files.switched_off,
        ADVICE,
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """Codex's two files, and what is done with their texts."""

    config: Path
    hooks: Path
    mcp: Mapping[str, Any]  # the entry of our MCP server
    calls: Sequence[Hook]

    def merged(self, texts: Texts) -> dict[Path, str]:
        with reading(self.config):
            told = with_server(CONFIG, texts[self.config] or "", _SERVERS, self.mcp)
            there, ours = bool(_settings(told).get("hooks")), bool(handlers(CONFIG, told))
        with reading(self.hooks):
            text = texts[self.hooks]
            if ours or (there and not _has_hooks(text)):  # in one file, not in two: else they would run twice
                kept = {} if text is None else {self.hooks: without_hooks(JSON, or_empty(text))}
                hooked = with_hooks(CONFIG, told, self.calls)
                return {self.config: distrusted(hooked, self.config, changed(CONFIG, told, hooked)), **kept}
            hooked = with_hooks(JSON, or_empty(text), self.calls)
            return {
                self.config: distrusted(told, self.hooks, changed(JSON, or_empty(text), hooked)),
                self.hooks: hooked,
            }

    def stripped(self, texts: Texts) -> dict[Path, str]:
        with reading(self.hooks):
            ours = [each[:3] for each in handlers(JSON, or_empty(texts[self.hooks]))]
            bare = without_hooks(JSON, or_empty(texts[self.hooks]))
        with reading(self.config):
            text = texts[self.config] or ""
            own = [each[:3] for each in handlers(CONFIG, text)]
            text = without_trust(without_trust(text, self.hooks, ours), self.config, own)
            return {self.config: without_server(CONFIG, without_hooks(CONFIG, text), _SERVERS), self.hooks: bare}

    def renewed(self, texts: Texts) -> dict[Path, str]:
        with reading(self.hooks):
            before = or_empty(texts[self.hooks])
            after = with_lines(JSON, before)
            moved = changed(JSON, before, after)
        with reading(self.config):
            told = texts[self.config] or ""
            text = with_lines(CONFIG, told)
            text = distrusted(distrusted(text, self.config, changed(CONFIG, told, text)), self.hooks, moved)
        return {self.config: text, self.hooks: after}

    def entries(self, texts: Texts) -> list[Entry]:
        found = []
        with reading(self.config):
            text = texts[self.config] or ""
            inside = handlers(CONFIG, text)
            trusted = {
                name for name, said in _state(text).items() if isinstance(said, dict) and said.get("trusted_hash")
            }
        with reading(self.hooks):
            beside = handlers(JSON, or_empty(texts[self.hooks]))
        for file, ours in ((self.config, inside), (self.hooks, beside)):
            for event, group, handler, said in ours:
                is_trusted = not trusted.isdisjoint(_keys(file, event, group, handler))
                found.append(Entry(file, said["command"], is_trusted))
        return found

    def server(self, texts: Texts) -> list[str]:
        with reading(self.config):
            return server_programs(CONFIG, texts[self.config] or "", _SERVERS)

    def switched_off(self, texts: Texts) -> str:
        features = loads(texts[self.config] or "").get("features", {})
        off = isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))
        return f"`[features] hooks = false` in {self.config} keeps every hook from running." if off else ""


def distrusted(text: str, file: Path, places: Sequence[Place]) -> str:
    """Without the trust in hooks of ours that were changed: it does not hold for what they say now."""
    for place in places:
        for key in _keys(file, *place):
            if key in _state(text):
                text = without(text, ("hooks", "state", key))
    return text


def _keys(file: Path, event: str, group: int, handler: int) -> set[str]:
    """By which Codex knows a hook."""
    return {f"{path}:{_snake(event)}:{group}:{handler}" for path in (file, file.resolve())}


def _state(text: str) -> dict[str, Any]:
    """What Codex keeps about hooks, by their keys."""
    hooks = loads(text).get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def without_trust(text: str, file: Path, ours: Sequence[Place]) -> str:
    """Without the trust in hooks of ours that go; the trust in others goes up with them."""
    known = {f"{path}:{_snake(event)}:": event for path in (file, file.resolve()) for event, _, _ in ours}
    moved: list[tuple[int, str, str]] = []
    for key in _state(text) if ours else ():
        found = re.fullmatch(r"(.*:)(\d+):(\d+)", key, re.DOTALL)
        if found and (event := known.get(found[1])):
            group, handler = int(found[2]), int(found[3])
            if (event, group, handler) in ours:
                text = without(text, ("hooks", "state", key))
            elif above := sum(1 for name, each, _ in ours if name == event and each < group):
                moved.append((group, key, f"{found[1]}{group - above}:{handler}"))
    if not moved:
        return text
    import tomlkit  # it costs 30 ms, and every command looks at settings

    document: Any = parse(text)
    for _, old, new in sorted(moved):
        document["hooks"]["state"][new] = document["hooks"]["state"].pop(old)
    return tomlkit.dumps(document)


def _has_hooks(text: str | None) -> bool:
    return bool(text and text.strip() and value_of(text).get("hooks"))


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _settings(text: str) -> dict[str, Any]:
    """config.toml without what Codex itself keeps among the hooks."""
    found = loads(text)
    if isinstance(hooks := found.get("hooks"), dict):
        found["hooks"] = {event: groups for event, groups in hooks.items() if event != "state"}
    return found


CONFIG = Syntax(_settings, put, without)
