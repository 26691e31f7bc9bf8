"""Claude Code's settings: hooks in settings.json, the user's MCP servers in .claude.json. Pure: texts → texts.

`timeout` is in seconds. Hooks at the end of a session share 1.5 s unless a settings file asks for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.surfaces.installers.entries import NAME, Hook, Server, is_own_server
from recollect.surfaces.installers.hooks_json import with_hooks, without_hooks
from recollect.surfaces.installers.json_text import NotJson, cut, or_empty, put, value_of
from recollect.surfaces.installers.values import Agent, Commands, Texts, reading

AGENT = "claude-code"
_TIMEOUTS = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 10,
    "PreCompact": 10,
    "PostCompact": 10,
    "SessionEnd": 5,
}


def agent(environ: Mapping[str, str], user_home: Path, commands: Commands) -> Agent:
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(chosen) if chosen else user_home / ".claude"
    settings, servers = folder / "settings.json", (folder if chosen else user_home) / ".claude.json"
    if not servers.exists() and (older := folder / ".config.json").exists():
        servers = older  # where it was kept at first, and is still read from
    hooks = tuple(Hook(event, commands.hook(event, AGENT), seconds) for event, seconds in _TIMEOUTS.items())

    def merged(texts: Texts) -> dict[Path, str]:
        with reading(settings):
            hooked = with_hooks(or_empty(texts[settings]), hooks)
        with reading(servers):
            return {settings: hooked, servers: with_server(or_empty(texts[servers]), commands.server)}

    def stripped(texts: Texts) -> dict[Path, str]:
        with reading(settings):
            bare = without_hooks(or_empty(texts[settings]))
        with reading(servers):
            return {settings: bare, servers: without_server(or_empty(texts[servers]))}

    def switched_off(texts: Texts) -> str:
        off = value_of(or_empty(texts[settings])).get("disableAllHooks")
        return f"`disableAllHooks` in {settings} keeps every hook from running." if off else ""

    return Agent(
        AGENT,
        "Claude Code",
        (settings, servers),
        (folder, servers),
        merged,
        stripped,
        switched_off,
        advice="Sessions that are open take no notice until they are started again.",
    )


def with_server(text: str, server: Server) -> str:
    """The MCP server is there. One that is ours says what it should, and keeps what else it says."""
    there = _server(text)
    if there is None:
        entry = {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
        return put(text, ("mcpServers", NAME), entry)
    if not is_own_server(there.get("command"), there.get("args")):
        raise NotJson(f"`mcpServers.{NAME}` is a server of somebody else")
    for name, value in (("command", server.command), ("args", list(server.args))):
        if there.get(name) != value:
            text = put(text, ("mcpServers", NAME, name), value)
    env = there.get("env", {})
    if server.env and not isinstance(env, dict):
        raise NotJson(f"`mcpServers.{NAME}.env` is no object")
    for name, value in server.env.items():
        if env.get(name) != value:
            text = put(text, ("mcpServers", NAME, "env", name), value)
    return text


def without_server(text: str) -> str:
    there = _server(text)
    if there is None or not is_own_server(there.get("command"), there.get("args")):
        return text
    return cut(text, ("mcpServers", NAME))


def _server(text: str) -> dict[str, Any] | None:
    document = value_of(text)
    servers = document.get("mcpServers", {}) if isinstance(document, dict) else None
    there = servers.get(NAME) if isinstance(servers, dict) else ...
    if there is not None and not isinstance(there, dict):
        raise NotJson("`mcpServers` is not what it has to be")
    return there
