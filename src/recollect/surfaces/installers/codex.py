"""Codex's settings: the MCP server in config.toml, hooks in hooks.json or, where the user keeps theirs, in config.toml.

Pure: texts → texts. The top level of hooks.json may hold `description` and `hooks` and nothing else. Codex runs a hook
only after its user trusted it; it keeps that in config.toml under `hooks.state`, by file, event and position, with a
hash of the definition. So a hook of ours that goes takes its trust with it, and hooks that move up keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tomllib import loads
from typing import Any

import tomlkit

from recollect.surfaces.installers.json_text import JSON, or_empty, value_of
from recollect.surfaces.installers.merge import (
    Place,
    Syntax,
    handlers,
    with_hooks,
    with_server,
    without_hooks,
    without_server,
)
from recollect.surfaces.installers.toml_text import parse, put, without
from recollect.surfaces.installers.values import Agent, Commands, Texts, reading

AGENT = "codex"
_SERVERS = "mcp_servers"
ADVICE = (
    "Codex runs a hook only after you trusted it: start `codex`, type /hooks, look at the entries of recollect and"
    " trust them. Until then Codex skips them without a word. It asks again when an upgrade changes them."
)


def agent(environ: Mapping[str, str], user_home: Path, commands: Commands) -> Agent:
    chosen = environ.get("CODEX_HOME")
    folder = Path(chosen) if chosen else user_home / ".codex"
    config, hooks = folder / "config.toml", folder / "hooks.json"
    entry = {name: value for name, value in commands.server().items() if value}
    calls = commands.hooks(AGENT, SessionEnd=3)  # the most that Codex allows

    def merged(texts: Texts) -> dict[Path, str]:
        with reading(config):
            told = with_server(CONFIG, texts[config] or "", _SERVERS, entry)
            there, ours = bool(_settings(told).get("hooks")), bool(handlers(CONFIG, told))
        with reading(hooks):
            text = texts[hooks]
            if ours or (there and not _has_hooks(text)):  # in one file, not in two: else they would run twice
                kept = {} if text is None else {hooks: without_hooks(JSON, or_empty(text))}
                return {config: with_hooks(CONFIG, told, calls), **kept}
            return {config: told, hooks: with_hooks(JSON, or_empty(text), calls)}

    def stripped(texts: Texts) -> dict[Path, str]:
        with reading(hooks):
            ours = [each[:3] for each in handlers(JSON, or_empty(texts[hooks]))]
            bare = without_hooks(JSON, or_empty(texts[hooks]))
        with reading(config):
            text = texts[config] or ""
            own = [each[:3] for each in handlers(CONFIG, text)]
            text = without_trust(without_trust(text, hooks, ours), config, own)
            return {config: without_server(CONFIG, without_hooks(CONFIG, text), _SERVERS), hooks: bare}

    def switched_off(texts: Texts) -> str:
        features = loads(texts[config] or "").get("features", {})
        off = isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))
        return f"`[features] hooks = false` in {config} keeps every hook from running." if off else ""

    return Agent(AGENT, "Codex", (config, hooks), (folder,), merged, stripped, switched_off, ADVICE)


def without_trust(text: str, file: Path, ours: Sequence[Place]) -> str:
    """Without the trust in hooks of ours that go; the trust in others goes up with them."""
    state = loads(text).get("hooks", {}).get("state", {}) if ours else {}
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


def _settings(text: str) -> dict[str, Any]:
    """config.toml without what Codex itself keeps among the hooks."""
    found = loads(text)
    if isinstance(hooks := found.get("hooks"), dict):
        found["hooks"] = {event: groups for event, groups in hooks.items() if event != "state"}
    return found


CONFIG = Syntax(_settings, put, without)
