"""Claude Code itself, against a scripted model: it remembers across sessions, and only where it should."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import Machine, program
from tests.clients.model import Asked, Call

pytestmark = pytest.mark.clients

SETTINGS = (
    '{\n\t"cleanupPeriodDays": 20,\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}'
)
RULE = "Please always use tabs for indentation in this project, never spaces."


PROGRAM = ("@anthropic-ai/claude-code-*/claude", "@anthropic-ai/claude-code/bin/claude*")


def claude(machine: Machine, project: Path, prompt: str, *options: str, found: str = "") -> str:
    return machine.run(
        [found or program(*PROGRAM), "-p", prompt, *options],
        project,
        ANTHROPIC_BASE_URL=machine.model.url,
        ANTHROPIC_API_KEY="sk-none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
    )


def files(machine: Machine) -> tuple[str, Any]:
    """The hooks' file byte for byte; of the other, which Claude Code writes in every session, what is not ours."""
    servers = machine.home / ".claude.json"
    known = json.loads(servers.read_text()) if servers.exists() else {}
    return (machine.home / ".claude" / "settings.json").read_text(), known.get("mcpServers")


def test_the_closed_loop(machine: Machine) -> None:
    pond, garden = machine.project("pond"), machine.project("garden")
    (machine.home / ".claude").mkdir()
    (machine.home / ".claude" / "settings.json").write_text(SETTINGS)
    machine.recollect("init", "--agent", "claude-code", "--yes")
    assert "tabs for indentation" in machine.given(lambda: claude(machine, pond, RULE)), "said by the user himself"
    memory = machine.learnt("tabs indentation", pond)

    ask = "Please indent the pump module of this project: tabs or spaces?"
    machine.model.script = lambda asked: f"Tabs, as {memory} says."
    given = machine.given(lambda: claude(machine, pond, ask))
    assert "tabs for indentation" in given and memory[:8] in given, machine.logs()
    machine.cited(memory)
    machine.model.script = lambda asked: "Tabs."
    machine.environ["RECOLLECT_BYPASS"] = "1"
    assert memory[:8] not in machine.given(lambda: claude(machine, pond, ask)), "its hooks do nothing"
    del machine.environ["RECOLLECT_BYPASS"]
    elsewhere = machine.given(lambda: claude(machine, garden, ask))
    assert "tabs for indentation" not in elsewhere and memory[:8] not in elsewhere

    erased = machine.recollect("forget", "--memory", memory, "--reason", "no longer", "--yes")
    assert erased["tombstone"]
    after = machine.given(lambda: claude(machine, pond, ask))
    assert "tabs for indentation" not in after and memory[:8] not in after

    machine.recollect("init", "--agent", "claude-code", "--uninstall", "--yes")
    assert files(machine) == (SETTINGS, None)
    without = machine.given(lambda: claude(machine, pond, ask))
    assert "recollect" not in without
    machine.recollect("init", "--uninstall", "--purge", "--yes")
    assert not machine.memory.exists(), "all that a home comes to hold is known to be ours"


def test_its_mcp_tools_are_listed_and_called(machine: Machine) -> None:
    pond = machine.project("pond")
    (machine.home / ".claude").mkdir()
    machine.recollect("init", "--agent", "claude-code", "--yes")
    machine.recollect("remember", "The staging server is called tide-stg-2.", cwd=pond)
    machine.recollect("remember", "The staging server is called heron-9.", cwd=machine.project("garden"))

    def script(asked: Asked) -> str | Call:
        results = [part for part in _parts(asked) if part.get("type") == "tool_result"]
        if any("tide-stg-2" in json.dumps(part) for part in results) or len(results) > 20:
            return "It is tide-stg-2."
        if results:  # the server is still starting
            time.sleep(1)
        return Call("mcp__recollect__search_memory", {"query": "staging server", "kinds": ["memory"]})

    machine.model.script = script
    given = machine.given(
        lambda: claude(machine, pond, "Where is staging?", "--allowedTools", "mcp__recollect__search_memory")
    )
    assert "mcp__recollect__forget_memory" in given or "mcp__recollect__forget_memory" in machine.model.asked[-1].tools
    results = [json.dumps(part) for part in _parts(machine.model.asked[-1]) if part.get("type") == "tool_result"]
    assert "tide-stg-2" in results[-1] and "heron-9" not in results[-1]


def _parts(asked: Asked) -> list[dict[str, Any]]:
    contents = [message["content"] for message in asked.body["messages"]]
    return [part for content in contents if isinstance(content, list) for part in content]
