"""Who writes into memory, and what agents may write. Pure.

A person writes by commands and in Python. An agent writes over MCP, and by any command in a shell that it runs. It may
note things for the project that it works in, and correct or forget what only agents noted there. What a person said,
what binds and what holds in every project is for a person to change.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.errors import NotForAgents
from recollect.note import SESSION_NAME, hand
from recollect.types import Hand, Remembered, Scope

SHELLS = (  # variables in the environment of commands that agents run; none that people set in their own shells
    "AI_AGENT",  # conventions that several agents follow
    "AGENT",
    "CLAUDECODE",  # Claude Code
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_SANDBOX",  # Codex
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",  # Gemini CLI, and its descendant
    "QWEN_CODE",
    "OPENCODE",  # OpenCode
    "OPENCODE_CLIENT",
    "CURSOR_AGENT",  # Cursor
    "COPILOT_CLI",  # GitHub Copilot
    "COPILOT_AGENT",
    "COPILOT_AGENT_SESSION_ID",
    "PI_CODING_AGENT",  # Pi
    "AMP_CURRENT_THREAD_ID",  # Amp
    "AUGMENT_AGENT",  # Auggie
    "ANTIGRAVITY_AGENT",
    "CLINE_ACTIVE",  # Cline
    "CRUSH",
    "GOOSE_TERMINAL",  # Goose
)
SESSIONS = (  # of those that name the agent's session
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_SESSION_ID",
    "COPILOT_AGENT_SESSION_ID",
    "AMP_CURRENT_THREAD_ID",
)
_OFF = ("", "0", "false", "no")


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, and from where."""

    hand: Hand = Hand.PERSON
    project: str = ""  # id of the project they are in; empty: in none
    session: str = ""  # of an agent, where it is known

    @property
    def is_agent(self) -> bool:
        return self.hand is Hand.AGENT


PERSON = Author()


def author(environ: Mapping[str, str], project: str = "") -> Author:
    """Whoever runs a command in this environment."""
    if not any(environ.get(name, "").strip().lower() not in _OFF for name in SHELLS):
        return Author(project=project)
    return Author(Hand.AGENT, project, session(environ))


def session(environ: Mapping[str, str]) -> str:
    """The agent's session that the environment names; empty: none."""
    return next((found for name in SESSIONS if SESSION_NAME.fullmatch(found := environ.get(name, ""))), "")


def refusal(what: str, command: Sequence[str]) -> NotForAgents:
    """`command` is what a person runs instead."""
    run = shlex.join(("recollect", *command))
    return NotForAgents(f"an agent may not {what}", hint=f"The user can run it in a terminal of their own: {run}")


def may(author: Author, verb: str, command: Sequence[str], revisions: Sequence[Remembered] = ()) -> NotForAgents | None:
    """Why the author may not do this to the memory that has these revisions; None: they may. No revisions: it concerns
    more than one memory, or is never for an agent."""
    if not author.is_agent:
        return None
    doing = {"feedback": "judge"}.get(verb, verb)
    if not revisions:
        return refusal(f"{doing} this", command)
    if any(hand(each) is not Hand.AGENT for each in revisions):
        return refusal(f"{doing} this: it is more than a note of agents", command)
    if any((each.scope, each.scope_id) != (Scope.PROJECT, author.project) for each in revisions):
        return refusal(f"{doing} this: it belongs to another project", command)
    return None
