"""`recollect hook`: its help. The command itself never comes here: see `recollect.__main__`."""

from __future__ import annotations

import click

from recollect.errors import UsageError


@click.command(
    "hook",
    epilog="""\b
Examples:
  echo '{"session_id": "…", "cwd": "/code/tides", "prompt": "…"}' | recollect hook UserPromptSubmit
Events: SessionStart, UserPromptSubmit, Stop, PreCompact, PostCompact, SessionEnd. RECOLLECT_BYPASS=1: does nothing.""",
)
@click.argument("event", required=False)
@click.option("--agent", metavar="NAME", help="claude-code or codex. [default: guessed from the event]")
@click.option("--home", metavar="FOLDER", help="Another RECOLLECT_HOME.")
def command(event: str | None, agent: str | None, home: str | None) -> None:
    """Answer an agent's event (JSON on standard input). Agents call it; it always ends with status 0."""
    from recollect.surfaces.hooks.client import main

    if home == "":
        raise UsageError("--home names no folder", hint="Leave it away, or name a folder.")
    main([part for part in (event or "", "--agent", agent or "", *(("--home", home) if home else ())) if part != ""])
