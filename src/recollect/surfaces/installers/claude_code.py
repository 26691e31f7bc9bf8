"""Claude Code's settings: hooks in settings.json, the user's MCP servers in .claude.json. Pure: texts → texts.

`timeout` is in seconds. Hooks at the end of a session share 1.5 s unless a settings file asks for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from recollect.surfaces.installers.json_text import JSON, or_empty, value_of
from recollect.surfaces.installers.merge import (
    handlers,
    server_programs,
    with_hooks,
    with_lines,
    with_server,
    without_hooks,
    without_server,
)
from recollect.surfaces.installers.values import Agent, Commands, Entry, Texts, reading

AGENT = "claude-code"
_SERVERS = "mcpServers"


def agent(environ: Mapping[str, str], user_home: Path, commands: Commands) -> Agent:
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(chosen) if chosen else user_home / ".claude"
    settings, servers = folder / "settings.json", (folder if chosen else user_home) / ".claude.json"
    if not servers.exists() and (older := folder / ".config.json").exists():
        servers = older  # where it was kept at first, and is still read from
    entry = {"type": "stdio", **commands.server()}
    hooks = commands.hooks(AGENT)

    def merged(texts: Texts) -> dict[Path, str]:
        with reading(settings):
            hooked = with_hooks(JSON, or_empty(texts[settings]), hooks)
        with reading(servers):
            return {settings: hooked, servers: with_server(JSON, or_empty(texts[servers]), _SERVERS, entry)}

    def stripped(texts: Texts) -> dict[Path, str]:
        with reading(settings):
            bare = without_hooks(JSON, or_empty(texts[settings]))
        with reading(servers):
            return {settings: bare, servers: without_server(JSON, or_empty(texts[servers]), _SERVERS)}

    def renewed(texts: Texts) -> dict[Path, str]:
        with reading(settings):
            return {settings: with_lines(JSON, or_empty(texts[settings]))}

    def entries(texts: Texts) -> list[Entry]:
        with reading(settings):
            ours = handlers(JSON, or_empty(texts[settings]))
        return [Entry(settings, said["command"], is_trusted=True) for *_, said in ours]

    def server(texts: Texts) -> list[str]:
        with reading(servers):
            return server_programs(JSON, or_empty(texts[servers]), _SERVERS)

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
        renewed,
        entries,
        server,
        switched_off,
        advice="Sessions that are open take no notice until they are started again.",
    )
