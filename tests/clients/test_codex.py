"""Codex itself, against a scripted model: it remembers across sessions, once its user has trusted the hooks."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import SECONDS, Machine, program
from tests.clients.model import Asked, Call

pytestmark = pytest.mark.clients

RULE = "Please always use tabs for indentation in this project, never spaces."


def config(machine: Machine) -> str:
    return f"""\
# Mine.
model = "scripted"   # any
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{machine.model.url}/v1"
wire_api = "responses"
"""


PROGRAM = ("@openai/codex-*/vendor/*/bin/codex", ".bin/codex")


def codex(machine: Machine, project: Path, prompt: str, found: str = "") -> str:
    return machine.run([found or program(*PROGRAM), "exec", "--skip-git-repo-check", prompt], project)


def trust(machine: Machine, project: Path, *, keep: bool = True) -> dict[str, str]:
    """Does what a user does who types /hooks and trusts what is there: asks Codex for its hooks and their hashes, and
    lets it keep them. Returns the hashes."""
    with subprocess.Popen(
        [program(*PROGRAM), "app-server"],
        cwd=project,
        env=machine.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin and server.stdout
        guard = threading.Timer(SECONDS, server.kill)
        guard.start()
        try:

            def call(number: int, method: str, parameters: dict[str, Any]) -> Any:
                assert server.stdin and server.stdout
                server.stdin.write(json.dumps({"id": number, "method": method, "params": parameters}) + "\n")
                server.stdin.flush()
                for line in server.stdout:
                    answer = json.loads(line)
                    if answer.get("id") == number and "method" not in answer:
                        return answer["result"]
                raise AssertionError(f"{method}: no answer")

            call(1, "initialize", {"clientInfo": {"name": "test", "version": "0"}})
            listed = call(2, "hooks/list", {"cwds": [str(project)]})["data"]
            hooks = [hook for each in listed for hook in each["hooks"]]
            assert not any(each["errors"] or each["warnings"] for each in listed), listed
            state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
            edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
            if keep:
                call(3, "config/batchWrite", {"edits": [edit]})
            server.stdin.close()
            server.wait(SECONDS)
        finally:
            guard.cancel()
            server.kill()
    return {key: kept["trusted_hash"] for key, kept in state.items()}


def waits_for_trust(machine: Machine) -> bool:
    return any("until you trust them" in each["problem"] for each in machine.recollect("status")["problems"])


def test_the_closed_loop(machine: Machine) -> None:
    pond, garden = machine.project("pond"), machine.project("garden")
    folder = machine.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(config(machine))
    told = machine.recollect("init", "--agent", "codex", "--yes")
    assert "/hooks" in told["advice"][0]
    machine.given(lambda: codex(machine, pond, "Hello."))
    assert not (machine.memory / "daemon.sock").exists(), "Codex skips hooks that nobody trusted"
    assert waits_for_trust(machine)
    trusted = trust(machine, pond)
    assert len(trusted) == 6 and not waits_for_trust(machine)
    text = (folder / "hooks.json").read_text()
    (folder / "hooks.json").write_text(text.replace("exit 0", "exit  0"))
    assert set(trust(machine, pond, keep=False).values()).isdisjoint(trusted.values()), "its hash covers every byte"
    (folder / "hooks.json").write_text(text)
    assert machine.recollect("init", "--agent", "codex", "--yes")["changed"] == []

    assert "tabs for indentation" in machine.given(lambda: codex(machine, pond, RULE)), "said by the user himself"
    memory = machine.learnt("tabs indentation", pond)

    ask = "Please indent the pump module of this project: tabs or spaces?"
    machine.model.script = lambda asked: f"Tabs, as {memory} says."
    given = machine.given(lambda: codex(machine, pond, ask))
    assert "tabs for indentation" in given and memory[:8] in given, machine.logs()
    machine.cited(memory)
    machine.model.script = lambda asked: "Tabs."
    elsewhere = machine.given(lambda: codex(machine, garden, ask))
    assert "tabs for indentation" not in elsewhere and memory[:8] not in elsewhere

    assert machine.recollect("forget", "--memory", memory, "--reason", "no longer", "--yes")["tombstone"]
    after = machine.given(lambda: codex(machine, pond, ask))
    assert "tabs for indentation" not in after and memory[:8] not in after

    machine.recollect("init", "--agent", "codex", "--uninstall", "--yes")
    assert (folder / "config.toml").read_text() == config(machine), "the trust that Codex wrote is gone, too"
    assert not (folder / "hooks.json").exists()


def test_its_mcp_tools_are_listed_and_called(machine: Machine) -> None:
    pond = machine.project("pond")
    (machine.home / ".codex").mkdir()
    (machine.home / ".codex" / "config.toml").write_text(config(machine))
    machine.recollect("init", "--agent", "codex", "--yes")
    machine.recollect("remember", "The staging server is called tide-stg-2.", cwd=pond)
    machine.recollect("remember", "The staging server is called heron-9.", cwd=machine.project("garden"))
    tries: list[Asked] = []

    def script(asked: Asked) -> str | Call:
        tries.append(asked)
        if "tide-stg-2" in asked.text or len(tries) > 40:
            return "It is tide-stg-2."
        if "mcp__recollect" not in asked.tools:  # the server is still starting
            time.sleep(1)
            return Call("list_mcp_resources", {})
        return Call("search_memory", {"query": "staging server", "kinds": ["memory"]}, "mcp__recollect")

    machine.model.script = script
    given = machine.given(lambda: codex(machine, pond, "Where is staging?"))
    assert "tide-stg-2" in given and "heron-9" not in given
    offered = next(tool for tool in tries[-1].body["tools"] if tool.get("name") == "mcp__recollect")
    assert "forget_memory" in {each["name"] for each in offered["tools"]}
