"""The installer: what it adds, what it leaves alone, and that it can be taken out again."""

from __future__ import annotations

import json
import os
import pty
import shlex
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from recollect.app import open_memory
from recollect.config import load
from recollect.surfaces.daemon.work import Task, Work
from recollect.surfaces.daemon.worker import Worker
from recollect.surfaces.hooks import launcher
from recollect.surfaces.installers import agents, codex
from recollect.surfaces.installers import json_text as edit
from recollect.surfaces.installers.entries import Hook, Whose, whose
from recollect.surfaces.installers.files import apply, copies, uninstalling
from recollect.surfaces.installers.merge import with_hooks, with_server, without_hooks, without_server
from recollect.surfaces.installers.values import Refused
from recollect.types import utc_now
from tests.command import Done, run

EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact", "SessionEnd"}
NOTIFY = {"hooks": [{"type": "command", "command": "notify-send done", "timeout": 3}]}

SETTINGS = """\
{
    "$schema": "settings.json",
    "unknown": {"keep": [1, 2,   3]},
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "notify-send done"}]}
        ],
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": "check \\"$1\\"", "timeout": 5}]
            }
        ]
    },
    "model": "opus"
}"""

CONFIG = """\
# My own settings.
model = "gpt-5"   # the good one

[mcp_servers.files]
command = "files"  # keep

[tui]
theme = "dark"
"""


# Codex trusts a hook by its bytes: another one is skipped in silence by everybody who upgrades.
LINE = (
    """exec /bin/sh -c 'trap "exit 0" 0; h=${5:-${RECOLLECT_HOME:-$HOME/.recollect}}; case $h in /*) [ -O "$h" ] &&"""
    """ f=$h/hook && [ -f "$f" ] && [ ! -L "$f" ] && [ -O "$f" ] && (. "$f") 2>/dev/null;; esac' recollect"""
)


class Machine:
    """A home of a person, with nothing of recollect in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = home / ".claude" / "settings.json"
        self.servers = home / ".claude.json"
        self.config = home / ".codex" / "config.toml"
        self.hooks = home / ".codex" / "hooks.json"

    def has(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())

    def init(self, *arguments: str) -> Done:
        return run(self.home / ".recollect", "init", *arguments, "--json")

    def install(self, *arguments: str) -> dict[str, Any]:
        done = self.init("--yes", *arguments)
        assert done.status == 0, done.stdout
        found: dict[str, Any] = done.json
        return found

    def uninstall(self) -> dict[str, Any]:
        return self.install("--uninstall")

    def files(self) -> dict[str, bytes]:
        """All but recollect's own."""
        inside = (each for each in self.home.rglob("*") if each.is_file())
        names = ((str(each.relative_to(self.home)), each) for each in inside)
        return {name: each.read_bytes() for name, each in names if not name.startswith(".recollect")}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".codex").mkdir()
    yield Machine(tmp_path)


def own_commands(hooks: dict[str, Any]) -> dict[str, list[str]]:
    """event → commands of ours."""
    found: dict[str, list[str]] = {}
    for event, groups in hooks.items():
        for group in groups if event != "state" else []:
            for handler in group["hooks"]:
                if whose(handler["command"]) is Whose.OURS:
                    found.setdefault(event, []).append(handler["command"])
    return found


# ---- What is added, and what stays -----------------------------------------------------------------------------------


def test_a_machine_without_settings_gets_hooks_and_the_server_for_both_agents(machine: Machine) -> None:
    told = machine.install()
    assert told["agents"] == ["claude-code", "codex"]
    assert set(told["changed"]) == {
        str(each) for each in (machine.settings, machine.servers, machine.config, machine.hooks)
    }
    assert told["backups"] == []
    for file in (machine.settings, machine.hooks):
        document = json.loads(file.read_text())
        own = own_commands(document["hooks"])
        assert set(document) == {"hooks"} and set(own) == EVENTS and all(len(each) == 1 for each in own.values())
    server = json.loads(machine.servers.read_text())["mcpServers"]["recollect"]
    assert server["args"][-1] == "mcp" and Path(server["command"]).is_absolute()
    assert tomllib.loads(machine.config.read_text())["mcp_servers"]["recollect"]["args"][-1] == "mcp"


def test_timeouts_are_seconds_and_within_what_the_agents_allow(machine: Machine) -> None:
    machine.install()
    for file in (machine.settings, machine.hooks):
        hooks = json.loads(file.read_text())["hooks"]
        given = {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()}
        assert all(1 <= seconds <= 10 for seconds in given.values())
        assert given["UserPromptSubmit"] <= 30 and (file != machine.hooks or given["SessionEnd"] <= 3)


def test_hooks_are_lines_that_never_change_and_lead_to_this_installation(machine: Machine) -> None:
    machine.install()
    for file, agent in ((machine.settings, "claude-code"), (machine.hooks, "codex")):
        for event, (command,) in own_commands(json.loads(file.read_text())["hooks"]).items():
            assert command == LINE + f" {event} --agent {agent}"
    assert launcher.installed(machine.home / ".recollect") == launcher.own()


def test_the_users_own_hooks_order_keys_and_layout_stay(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    machine.install("--agent", "claude-code")
    text = machine.settings.read_text()
    document = json.loads(text)
    assert list(document) == ["$schema", "unknown", "hooks", "model"]
    assert list(document["hooks"])[:2] == ["Stop", "PreToolUse"]
    assert document["hooks"]["Stop"][0] == json.loads(SETTINGS)["hooks"]["Stop"][0], "ours comes behind it"
    kept = [line for line in SETTINGS.split("\n") if line.strip() not in ("]", "}", "],", "},")]
    changed = [line for line in kept if line not in text.split("\n") and line + "," not in text.split("\n")]
    assert changed == []
    assert not text.endswith("\n"), "as it was"
    assert not machine.config.exists()


def test_comments_and_tables_of_config_toml_stay(machine: Machine) -> None:
    machine.has(machine.config, CONFIG)
    machine.install("--agent", "codex")
    assert machine.config.read_text().startswith(CONFIG)
    assert set(tomllib.loads(machine.config.read_text())["mcp_servers"]) == {"files", "recollect"}


@pytest.mark.parametrize(
    "text", ["mcp_servers = { files = { command = 'x' } }\n", "[mcp_servers]\nfiles = {command = 'x'}\n"]
)
def test_servers_in_an_inline_table_are_added_to(machine: Machine, text: str) -> None:
    machine.has(machine.config, text)
    machine.install("--agent", "codex")
    assert set(tomllib.loads(machine.config.read_text())["mcp_servers"]) == {"files", "recollect"}
    machine.uninstall()
    assert machine.config.read_text() == text


def test_hooks_go_where_codex_users_keep_theirs(machine: Machine) -> None:
    text = CONFIG + '\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "notify"\n'
    machine.has(machine.config, text)
    machine.install("--agent", "codex")
    assert not machine.hooks.exists()
    hooks = tomllib.loads(machine.config.read_text())["hooks"]
    assert set(own_commands(hooks)) == EVENTS
    assert hooks["Stop"][0]["hooks"][0]["command"] == "notify"
    assert machine.install("--agent", "codex")["changed"] == []
    machine.uninstall()
    assert machine.config.read_text() == text


def test_hooks_stay_where_they_are_when_the_user_begins_another_file(machine: Machine) -> None:
    machine.has(machine.config, '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "notify"\n')
    machine.install("--agent", "codex")
    own = json.dumps({"hooks": {"Stop": [NOTIFY]}})
    machine.has(machine.hooks, own)
    assert machine.install("--agent", "codex")["changed"] == [] and machine.hooks.read_text() == own
    command = own_commands(tomllib.loads(machine.config.read_text())["hooks"])["Stop"][0]
    twice = {"hooks": [{"type": "command", "command": command}]}
    machine.has(machine.hooks, json.dumps({"hooks": {"Stop": [NOTIFY, twice]}}))
    machine.install("--agent", "codex")
    assert json.loads(machine.hooks.read_text()) == json.loads(own), "nothing runs twice"


def test_hooks_stay_in_hooks_json_although_codex_keeps_its_trust_in_config_toml(machine: Machine) -> None:
    machine.install("--agent", "codex")
    trusted = f'\n[hooks.state]\n\n[hooks.state."{machine.hooks}:stop:0:0"]\ntrusted_hash = "sha256:00"\n'
    with machine.config.open("a") as config:
        config.write(trusted)
    assert machine.install("--agent", "codex")["changed"] == []


def test_another_place_for_settings_is_found(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    claude, codex = machine.home / "c1", machine.home / "c2"
    claude.mkdir(), codex.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude))
    monkeypatch.setenv("CODEX_HOME", str(codex))
    machine.install()
    assert {each.name for each in claude.iterdir()} == {"settings.json", ".claude.json"}
    assert {each.name for each in codex.iterdir()} == {"config.toml", "hooks.json"}
    assert not machine.servers.exists() and not machine.settings.exists()


def test_another_home_of_recollect_is_told_to_hooks_and_servers(machine: Machine) -> None:
    other = machine.home / "elsewhere"
    assert run(other, "init", "--yes", "--json").status == 0
    for file in (machine.settings, machine.hooks):
        for (command,) in own_commands(json.loads(file.read_text())["hooks"]).values():
            assert str(other) in shlex.split(command)
    assert json.loads(machine.servers.read_text())["mcpServers"]["recollect"]["env"] == {"RECOLLECT_HOME": str(other)}
    assert tomllib.loads(machine.config.read_text())["mcp_servers"]["recollect"]["env"] == {
        "RECOLLECT_HOME": str(other)
    }


def test_an_agent_that_is_not_there_is_left_alone_unless_it_is_named(machine: Machine) -> None:
    (machine.home / ".codex").rmdir()
    assert machine.install()["agents"] == ["claude-code"]
    assert not (machine.home / ".codex").exists()
    assert machine.install("--agent", "codex")["agents"] == ["codex"]
    assert machine.hooks.exists()


# ---- Again, and older entries ----------------------------------------------------------------------------------------


def test_the_second_time_changes_nothing(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    machine.has(machine.config, CONFIG)
    machine.install()
    before = machine.files()
    told = machine.install()
    assert told["changed"] == [] and told["backups"] == [] and machine.files() == before


OLDER = (
    "recollect hook {event}",
    "/opt/old/bin/recollect hook {event} --agent claude-code",
    "/usr/bin/python3 -m recollect hook {event}",
    "/opt/old/bin/python3.11 -I -S /opt/old/lib/recollect/surfaces/hooks/hook.py {event}",
)


@pytest.mark.parametrize("older", OLDER)
def test_older_entries_are_brought_up_to_date_where_they_stand(machine: Machine, older: str) -> None:
    groups: dict[str, Any] = {
        event: [{"hooks": [{"type": "command", "command": older.format(event=event), "timeout": 60_000}]}, NOTIFY]
        for event in sorted(EVENTS)
    }
    groups["SubagentStop"] = [NOTIFY, {"hooks": [{"type": "command", "command": older.format(event="SubagentStop")}]}]
    machine.has(machine.settings, json.dumps({"hooks": groups}, indent=2))
    machine.install("--agent", "claude-code")
    hooks = json.loads(machine.settings.read_text())["hooks"]
    assert hooks.pop("SubagentStop") == [NOTIFY], "what is no longer wanted goes"
    for event in EVENTS:
        assert len(hooks[event]) == 2 and hooks[event][1] == NOTIFY
        (handler,) = hooks[event][0]["hooks"]
        assert handler["command"] == LINE + f" {event} --agent claude-code" and handler["timeout"] <= 10


def test_a_hook_that_stands_there_twice_fires_once(machine: Machine) -> None:
    group = {"hooks": [{"type": "command", "command": "recollect hook Stop"}, NOTIFY["hooks"][0]]}
    machine.has(machine.settings, json.dumps({"hooks": {"Stop": [group, group]}}))
    machine.install("--agent", "claude-code")
    hooks = json.loads(machine.settings.read_text())["hooks"]
    assert len(own_commands(hooks)["Stop"]) == 1
    assert [NOTIFY["hooks"][0] in each["hooks"] for each in hooks["Stop"]] == [True, True]


def test_what_somebody_built_on_a_hook_stays_and_gets_no_second_one(machine: Machine) -> None:
    built = "recollect hook Stop && notify-send done"
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": built}]}]}})
    machine.has(machine.settings, text)
    machine.install("--agent", "claude-code")
    (group,) = json.loads(machine.settings.read_text())["hooks"]["Stop"]
    assert [each["command"] for each in group["hooks"]] == [built]
    machine.uninstall()
    assert machine.settings.read_text() == text


@pytest.mark.parametrize(
    ("command", "owner"),
    [
        *((each.format(event="Stop"), Whose.OURS) for each in OLDER),
        ("'/home/a b/bin/recollect' hook Stop", Whose.OURS),
        ("python3 -E -P /bin/recollect hook Stop", Whose.OURS),
        (LINE + " Stop --agent codex", Whose.OURS),
        (LINE + " Stop --agent codex --home '/a b'", Whose.OURS),
        (LINE + " Stop --agent codex && notify-send done", Whose.MENTIONS),
        (LINE.replace('[ ! -L "$f" ] && ', "") + " Stop --agent codex", Whose.OURS),
        (LINE.replace("exit 0", "exit 1") + " Stop --agent codex", Whose.THEIRS),
        ("RECOLLECT_HOME=/x recollect hook Stop", Whose.MENTIONS),
        ("recollect hook Stop | tee log", Whose.MENTIONS),
        ("sh -c 'recollect hook Stop'", Whose.THEIRS),
        ("recollect search hook", Whose.THEIRS),
        ("my-recollect hook Stop", Whose.THEIRS),
        ("python3 ~/hooks/recollect.py Stop", Whose.THEIRS),
        ("echo 'open quote", Whose.THEIRS),
        ("", Whose.THEIRS),
        (None, Whose.THEIRS),
    ],
)
def test_own_commands_are_known_again(command: object, owner: Whose) -> None:
    assert whose(command) is owner


def test_another_server_of_that_name_is_not_taken_over(machine: Machine) -> None:
    text = '{"mcpServers": {"recollect": {"command": "npx", "args": ["recollect-notes"]}}}'
    machine.has(machine.servers, text)
    done = machine.init("--yes")
    assert done.status == 1 and "somebody else" in done.json["error"]["message"]
    assert machine.servers.read_text() == text and not machine.settings.exists()


# ---- Files that are not what they should be --------------------------------------------------------------------------

BROKEN = [
    '{"hooks": {',
    "{} trailing",
    '{"a": 1, // comment\n"b": 2}',
    "[]",
    '"text"',
    '{"hooks": []}',
    '{"hooks": {"Stop": {}}}',
]


@pytest.mark.parametrize("text", [*BROKEN, "\udcff", "[" * 100_000])
def test_a_settings_file_that_cannot_be_understood_is_refused_untouched(machine: Machine, text: str) -> None:
    machine.settings.write_bytes(text.encode(errors="surrogateescape"))
    before = machine.files()
    done = machine.init("--yes")
    assert done.status == 1 and str(machine.settings) in done.json["error"]["message"] and done.json["error"]["hint"]
    assert machine.files() == before, "the other agent's neither"


@pytest.mark.parametrize("depth", [100, 900, 950, 985, 5000])
def test_a_deep_file_is_changed_or_refused(machine: Machine, depth: int) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    machine.has(machine.settings, text)
    if machine.init("--yes").status == 0:
        assert machine.uninstall()["changed"]
    assert machine.settings.read_text() == text


@pytest.mark.parametrize("text", ["model = ", "[a\n", "hooks = 1\n", "mcp_servers = 3\n", "a = 1\na = 2\n"])
def test_a_config_toml_that_cannot_be_understood_is_refused_untouched(machine: Machine, text: str) -> None:
    machine.has(machine.config, text)
    before = machine.files()
    done = machine.init("--yes")
    assert done.status == 1 and str(machine.config) in done.json["error"]["message"]
    assert machine.files() == before


def test_links_stay_links(machine: Machine) -> None:
    real = machine.home / "dotfiles" / "claude.json"
    machine.has(real, SETTINGS)
    machine.settings.symlink_to(real)
    machine.install("--agent", "claude-code")
    assert machine.settings.is_symlink() and set(own_commands(json.loads(real.read_text())["hooks"])) == EVENTS
    machine.uninstall()
    assert machine.settings.is_symlink() and real.read_text() == SETTINGS


def test_a_link_to_a_file_that_we_made_stays_and_nothing_of_ours_is_left_behind_it(machine: Machine) -> None:
    real = machine.home / "dotfiles" / "claude.json"
    machine.settings.symlink_to(real)
    machine.install("--agent", "claude-code")
    assert real.exists()
    machine.uninstall()
    assert machine.settings.is_symlink() and not real.exists()


@pytest.mark.parametrize(
    ("file", "text", "arguments"),
    [
        ("servers", '{"mcpServers": {"recollect": {"command": "recollect", "args": ["mcp"], "env": null}}}', ()),
        ("config", '[mcp_servers.recollect]\ncommand = "recollect"\nargs = ["mcp"]\nenv = "x"\n', ()),
        ("config", 'hooks = "x"\n', ("--uninstall",)),
    ],
)
def test_an_entry_of_another_type_than_it_must_be_is_refused(
    machine: Machine, file: str, text: str, arguments: tuple[str, ...]
) -> None:
    if arguments:
        machine.install()
    machine.has(getattr(machine, file), text)
    before = machine.files()
    done = run(machine.home / "elsewhere", "init", "--yes", "--no-import", "--json", *arguments)
    assert done.status == 1 and done.json["error"]["kind"] == "Refused"
    assert getattr(machine, file).name in done.json["error"]["message"] and machine.files() == before


def test_hooks_and_history_are_one_agents(machine: Machine) -> None:
    done = machine.init("--yes", "--agent-id", "bob")
    assert done.status == 2 and 'agent_id = "bob"' in done.json["error"]["hint"] and machine.files() == {}
    machine.has(machine.home / ".recollect" / "config.toml", 'agent_id = "bob"\n')
    machine.install("--agent-id", "bob")
    machine.install("--uninstall", "--agent-id", "eve")


def test_backups_are_the_owners_alone_and_files_keep_their_mode(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    machine.settings.chmod(0o640)
    told = machine.install("--agent", "claude-code")
    (backup,) = map(Path, told["backups"])
    assert backup.parent == machine.settings.parent and backup.read_text() == SETTINGS
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(machine.settings.stat().st_mode) == 0o640
    assert stat.S_IMODE(machine.servers.stat().st_mode) == 0o600, "a new file"


# ---- What every command mends, and what is said where it cannot ------------------------------------------------------

EARLIER = "{python} -I -S {lib}/recollect/surfaces/hooks/hook.py {event} --agent {agent}{home}"
GONE = {"python": "/opt/gone/bin/python3.11", "lib": "/opt/gone/lib/python3.11/site-packages"}


def earlier(machine: Machine, *, home: str = "", **program: str) -> None:
    """Settings as an earlier release left them: plugged in, and trusted in Codex."""
    machine.install()
    for file, agent in ((machine.settings, "claude-code"), (machine.hooks, "codex")):
        text = file.read_text()
        for event in EVENTS:
            old = EARLIER.format(**{**GONE, **program}, event=event, agent=agent, home=home)
            text = text.replace(json.dumps(f"{LINE} {event} --agent {agent}"), json.dumps(old))
        file.write_text(text)
    assert "exec /bin/sh" not in text
    (machine.home / ".recollect" / launcher.NAME).unlink()
    trust(machine)


def trust(machine: Machine) -> None:
    """As Codex writes it when its user trusts what /hooks shows."""
    with machine.config.open("a") as config:
        config.write("\n[hooks.state]\n")
        for event in EVENTS:
            snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
            config.write(f'\n[hooks.state."{machine.hooks}:{snake}:0:0"]\ntrusted_hash = "sha256:0"\n')


def problems(machine: Machine, command: str = "status") -> list[str]:
    told = run(machine.home / ".recollect", command, "--json")
    return [each.get("problem") or each["what"] for each in told.json["problems"]]


def test_hooks_that_can_block_are_replaced_by_whatever_command_runs_first(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    machine.has(machine.config, CONFIG)
    earlier(machine)
    before = machine.files()
    done = run(machine.home / ".recollect", "conversations", "--json")
    assert done.json == [] and done.stderr.count("\n") == 1 and "/hooks" in done.stderr and ".;" not in done.stderr
    for file in (machine.settings, machine.hooks):
        text = before[str(file.relative_to(machine.home))].decode()
        for event, (command,) in own_commands(json.loads(file.read_text())["hooks"]).items():
            assert launcher.called(command) is not None
            text = text.replace(
                json.dumps(EARLIER.format(**GONE, event=event, agent=command.split()[-1], home="")), "X"
            )
            assert text.count("X") == 1 and file.read_text() != text
            text = text.replace("X", json.dumps(command))
        assert file.read_text() == text, "nothing else changed"
        assert any(copy.read_bytes() == before[str(file.relative_to(machine.home))] for copy in copies(file))
    assert launcher.installed(machine.home / ".recollect") == launcher.own()
    waiting = [each for each in problems(machine) if "trust" in each]
    assert len(waiting) == 1 and "Codex skips 6 hooks" in waiting[0], "a changed hook is skipped in silence"
    trust(machine)
    assert problems(machine) == []
    now = machine.files()
    assert run(machine.home / ".recollect", "conversations").stderr == "" and machine.files() == now
    machine.uninstall()
    assert machine.settings.read_text() == SETTINGS and machine.config.read_text() == CONFIG


def test_hooks_that_can_block_are_replaced_in_config_toml_too(machine: Machine) -> None:
    machine.has(machine.config, CONFIG + '\n[[hooks.Stop]]\nhooks = [{ type = "command", command = "notify-send" }]\n')
    before = machine.config.read_text()
    machine.install("--agent", "codex")
    text = machine.config.read_text()
    for event in EVENTS:
        old = EARLIER.format(**GONE, event=event, agent="codex", home="")
        text = text.replace(json.dumps(f"{LINE} {event} --agent codex"), json.dumps(old))
    text += f'\n[hooks.state."{machine.config}:stop:1:0"]\ntrusted_hash = "sha256:0"\n'
    text += f'\n[hooks.state."{machine.config}:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    machine.config.write_text(text)
    run(machine.home / ".recollect", "conversations")
    after = tomllib.loads(machine.config.read_text())["hooks"]
    assert list(after.pop("state")) == [f"{machine.config}:stop:0:0"], "the trust in theirs stays"
    assert len(after["Stop"]) == 2 and all(launcher.called(each[0]) for each in own_commands(after).values())
    assert not any("hold up" in each for each in problems(machine))
    machine.uninstall()
    assert tomllib.loads(machine.config.read_text())["hooks"].pop("Stop") == tomllib.loads(before)["hooks"]["Stop"]


def test_hooks_of_another_home_or_of_a_living_installation_keep_it(machine: Machine) -> None:
    other, living = machine.home / "other", machine.home / "living"
    program = launcher.Program(sys.executable, str(living / "recollect" / "surfaces" / "hooks" / "hook.py"))
    machine.has(Path(program.client), "")
    other.mkdir(mode=0o700)
    earlier(machine, home=f" --home {other}", python=program.python, lib=str(living))
    run(machine.home / ".recollect", "status")
    for command in own_commands(json.loads(machine.settings.read_text())["hooks"]).values():
        assert command[0].endswith(f" --home {other}")
    assert launcher.installed(other) == program
    assert any(f"lead to {other}" in each for each in problems(machine))


@pytest.mark.parametrize("theirs", ["{own} && notify-send done", "env X=1 {own}", "{own} ", "{own} --verbose"])
def test_what_is_not_byte_for_byte_ours_is_left_alone(machine: Machine, theirs: str) -> None:
    built = theirs.format(own=EARLIER.format(**GONE, event="Stop", agent="codex", home=""))
    machine.has(machine.settings, json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": built}]}]}}))
    before = machine.files()
    assert run(machine.home / ".recollect", "status").stderr == "" and machine.files() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write what is another user's")
def test_settings_and_launcher_of_another_user_are_left_alone(machine: Machine) -> None:
    earlier(machine)
    launcher.install(machine.home / ".recollect", launcher.Program("/nowhere/python", "/nowhere/hook.py"))
    for file in (machine.settings, machine.hooks, machine.home / ".recollect" / launcher.NAME):
        os.chown(file, 65534, 65534)
    before = machine.files()
    assert run(machine.home / ".recollect", "conversations").stderr == "" and machine.files() == before
    assert launcher.installed(machine.home / ".recollect") != launcher.own()
    assert sum("can hold up a prompt" in each for each in problems(machine)) == 2


def test_a_launcher_is_taken_over_from_an_installation_that_is_gone_and_from_no_other(machine: Machine) -> None:
    machine.install()
    trust(machine)
    home, client = machine.home / ".recollect", machine.home / "hook.py"
    client.touch()
    living = launcher.Program(sys.executable, str(client))
    launcher.install(home, living)
    assert run(home, "conversations").stderr == "" and launcher.installed(home) == living
    client.unlink()
    assert "gone" in run(home, "conversations").stderr
    assert launcher.installed(home) == launcher.own() and problems(machine) == []


@pytest.mark.parametrize("command", ["status", "health", "doctor"])
def test_hooks_that_lead_nowhere_are_told_and_init_mends_them(machine: Machine, command: str) -> None:
    machine.install()
    assert [each for each in problems(machine, command) if "trust" not in each] == []
    trust(machine)
    file = machine.home / ".recollect" / launcher.NAME
    for damage, told in (
        (file.unlink, "there is no"),
        (lambda: file.write_text("exit 2\n"), "not as recollect writes it"),
        (lambda: file.symlink_to(file.rename(file.parent / "logs" / "hook")), "is a link"),
        (
            lambda: machine.servers.write_text(
                '{"mcpServers": {"recollect": {"command": "/x/recollect", "args": ["mcp"]}}}'
            ),
            "/x/recollect is gone",
        ),
        (
            lambda: machine.servers.write_text(
                machine.servers.read_text().replace("/bin/recollect", "/bin/former/recollect")
            ),
            "/bin/former/recollect is gone",
        ),
    ):
        damage()
        found = problems(machine, command)
        assert found and all(told in each for each in found)
        machine.install()
        assert problems(machine, command) == []


def test_uninstall_takes_the_launcher_away_with_the_last_agent(machine: Machine) -> None:
    file = machine.home / ".recollect" / launcher.NAME
    machine.install()
    machine.install("--agent", "codex", "--uninstall")
    assert file.exists()
    machine.install("--agent", "claude-code", "--uninstall")
    assert not file.exists()


# ---- Taking it out ---------------------------------------------------------------------------------------------------

ODD = [
    SETTINGS,
    SETTINGS + "\n",
    SETTINGS.replace("    ", "\t"),
    SETTINGS.replace("\n", "\r\n"),
    "\ufeff" + SETTINGS,
    "{}",
    "{ }\n",
    "",
    "\n",
    '{"model":"opus"}',
    '{"hooks": {}}',
    '{\n  "hooks": {\n    "Stop": [\n    ]\n  }\n}\n',
    '{"hooks": {"Stop": [], "SessionEnd": [ ]}, "a": [ ]}',
    '{"a": "\\u00e9\\"}{", "a": 2}',
]


@pytest.mark.parametrize("text", ODD)
def test_uninstall_gives_back_the_bytes_that_were(machine: Machine, text: str) -> None:
    for file in (machine.settings, machine.servers):
        machine.has(file, text)
    machine.has(machine.hooks, text if "model" not in text and "a" not in text else '{"description": "x"}')
    machine.has(machine.config, CONFIG if text == SETTINGS else "")
    before = machine.files()
    machine.install()
    machine.uninstall()
    after = {name: data for name, data in machine.files().items() if "recollect-backup" not in name}
    assert after == before


def test_uninstall_removes_files_that_it_made(machine: Machine) -> None:
    for _ in range(2):  # the backups of the first time must not bring anything back
        machine.install()
        machine.uninstall()
        assert [name for name in machine.files() if "recollect-backup" not in name] == []


def test_a_file_that_an_agent_wrote_to_while_a_question_stood_open_is_not_removed(machine: Machine) -> None:
    machine.install()
    changes = [each for each in uninstalling(agents(load())) if each.file == machine.servers]
    assert [each.after for each in changes] == [None]
    machine.has(machine.servers, '{"account": "ada"}')
    with pytest.raises(Refused, match="changed by somebody else"):
        apply(changes, utc_now())
    assert machine.servers.read_text() == '{"account": "ada"}'


def test_uninstall_after_other_changes_takes_only_ours(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    machine.has(machine.config, CONFIG)
    machine.install()
    machine.settings.write_text(edit.put(machine.settings.read_text(), ("theme",), "dark"))
    with machine.config.open("a") as config:
        config.write("\n# later\n[later]\na = 1\n")
    machine.uninstall()
    assert json.loads(machine.settings.read_text()) == {**json.loads(SETTINGS), "theme": "dark"}
    assert machine.settings.read_text() == edit.put(SETTINGS, ("theme",), "dark"), "not a byte more"
    assert tomllib.loads(machine.config.read_text()) == {**tomllib.loads(CONFIG), "later": {"a": 1}}
    assert machine.config.read_text().startswith(CONFIG) and "# later" in machine.config.read_text()


def test_trust_in_our_hooks_goes_with_them_and_trust_in_others_moves_up(machine: Machine) -> None:
    machine.has(machine.config, CONFIG)
    machine.has(machine.hooks, json.dumps({"hooks": {"Stop": [NOTIFY]}}))
    machine.install("--agent", "codex")
    text = machine.hooks.read_text()
    machine.hooks.write_text(edit.put(text, ("hooks", "Stop", 2), NOTIFY))
    with machine.config.open("a") as config:
        config.write("\n[hooks.state]\n")
        for event in EVENTS:
            snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
            for group in range(3 if event == "Stop" else 1):
                config.write(f'\n[hooks.state."{machine.hooks}:{snake}:{group}:0"]\ntrusted_hash = "sha256:{group}"\n')
    machine.uninstall()
    state = tomllib.loads(machine.config.read_text())["hooks"]["state"]
    assert state == {
        f"{machine.hooks}:stop:0:0": {"trusted_hash": "sha256:0"},
        f"{machine.hooks}:stop:1:0": {"trusted_hash": "sha256:2"},
    }
    assert json.loads(machine.hooks.read_text()) == {"hooks": {"Stop": [NOTIFY, NOTIFY]}}


@pytest.mark.parametrize("text", [CONFIG, CONFIG.rstrip("\n"), CONFIG + "\n\n", CONFIG.replace("\n", "\r\n")])
def test_uninstall_gives_back_the_bytes_although_codex_wrote_its_trust(machine: Machine, text: str) -> None:
    machine.has(machine.config, text)
    machine.install("--agent", "codex")
    with machine.config.open("a") as config:
        config.write(f'\n[hooks.state]\n\n[hooks.state."{machine.hooks}:stop:0:0"]\ntrusted_hash = "sha256:0"\n')
    machine.uninstall()
    assert machine.config.read_bytes() == text.encode() and not machine.hooks.exists()


def test_uninstall_where_nothing_is_installed_changes_nothing(machine: Machine) -> None:
    machine.has(machine.settings, "{}")
    machine.has(machine.config, CONFIG)
    before = machine.files()
    assert machine.uninstall()["changed"] == [] and machine.files() == before


def test_purge_erases_the_home_and_nothing_else(machine: Machine) -> None:
    home = machine.home / ".recollect"
    assert run(home, "remember", "Use tabs.", cwd=machine.home).status == 0
    machine.has(machine.settings, SETTINGS)
    first = machine.install()["backups"]
    told = machine.install("--uninstall", "--purge")
    assert told["purged"] == str(home) and not home.exists()
    left = [str(machine.home / each) for each in machine.files() if each.endswith(".recollect-backup")]
    assert set(left) == {*first, *told["backups"]} and all(each in told["advice"][-1] for each in left)


def test_uninstall_takes_away_the_service_of_this_home_and_of_no_other(machine: Machine) -> None:
    home, unit = machine.home / ".recollect", machine.home / ".config" / "systemd" / "user" / "recollect.service"
    machine.install()
    assert run(home, "service", "install", "--json").json["unit"] == str(unit)
    run(machine.home / "other", "init", "--uninstall", "--yes", "--json")
    assert unit.exists()
    told = machine.install("--uninstall", "--purge")
    assert not unit.exists() and str(unit) in told["changed"] and not home.exists()


def test_purge_refuses_to_leave_an_agent_plugged_in(machine: Machine) -> None:
    machine.install()
    before = machine.files()
    done = machine.init("--uninstall", "--purge", "--yes", "--agent", "codex")
    assert done.status == 2 and (machine.home / ".recollect").exists() and machine.files() == before


def test_purge_refuses_a_home_that_is_not_ours(machine: Machine, tmp_path: Path) -> None:
    machine.install()
    before = machine.files()
    other = machine.home / "documents"
    machine.has(other / "letter.txt", "Dear")
    for home in (other, machine.home, Path("/")):
        done = run(home, "init", "--uninstall", "--purge", "--yes", "--json")
        assert done.status == 1 and done.json["error"]["kind"] == "StrangeHome"
    assert (other / "letter.txt").exists() and machine.settings.exists()
    assert {name: data for name, data in machine.files().items() if "letter" not in name} == before


def test_purge_never_erases_a_persons_own_home(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    person = machine.home / "person"
    (person / "memory").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))
    for home in (person, machine.home):
        done = run(home, "init", "--uninstall", "--purge", "--yes", "--json")
        assert done.status == 1 and "your own files" in done.json["error"]["message"]
    assert (person / "memory").exists()


# ---- Asking, showing, history ----------------------------------------------------------------------------------------


def test_print_shows_a_diff_and_touches_nothing(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    before = machine.files()
    done = run(machine.home / ".recollect", "init", "--print")
    assert done.status == 0 and machine.files() == before and not (machine.home / ".recollect").exists()
    added = [line for line in done.stdout.splitlines() if line.startswith("+")]
    assert f"+++ {machine.settings}" in added and any("mcpServers" in line for line in added)
    assert [line for line in done.stdout.splitlines() if line.startswith("-") and not line.startswith("---")] != added


def test_the_printed_diff_is_what_a_patch_takes(machine: Machine) -> None:
    machine.has(machine.settings, SETTINGS)
    diff = run(machine.home / ".recollect", "init", "--print", "--agent", "claude-code").stdout
    subprocess.run(["patch", "-p0", "-d", "/"], input=diff, text=True, check=True, capture_output=True)
    patched = machine.settings.read_text(), machine.servers.read_text()
    assert machine.install("--agent", "claude-code")["changed"] == []
    assert (machine.settings.read_text(), machine.servers.read_text()) == patched


def test_without_anybody_to_ask_it_wants_yes(machine: Machine) -> None:
    done = machine.init()
    assert done.status == 2 and "--yes" in done.json["error"]["hint"] and machine.files() == {}


def on_a_terminal(machine: Machine, answers: bytes, *arguments: str) -> str:
    """What `init` says to somebody who answers."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "RECOLLECT_HOME": str(machine.home / ".recollect"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-P", "-m", "recollect", "init", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, env=environ) as process:
        os.write(ours, answers)
        said = process.communicate(timeout=60)[0].decode()
    os.close(ours), os.close(theirs)
    assert process.returncode == 0, said
    return said


def test_it_asks_per_agent_and_a_no_is_a_no(machine: Machine) -> None:
    said = on_a_terminal(machine, b"n\ny\n")
    assert "Claude Code?" in said and "/hooks" in said
    assert not machine.settings.exists() and machine.hooks.exists()


def test_codex_users_are_told_how_to_trust_the_hooks(machine: Machine) -> None:
    (advice,) = machine.install("--agent", "codex")["advice"]
    assert "/hooks" in advice and "trust" in advice
    assert machine.install("--agent", "codex")["advice"] == []


def test_hooks_that_are_switched_off_are_told(machine: Machine) -> None:
    machine.has(machine.settings, '{"disableAllHooks": true}')
    machine.has(machine.config, "[features]\nhooks = false\n")
    for _ in range(2):
        told = " ".join(machine.install()["advice"])
        assert "disableAllHooks" in told and "hooks = false" in told


def test_servers_are_kept_where_an_old_claude_code_kept_them(machine: Machine) -> None:
    machine.has(machine.home / ".claude" / ".config.json", '{"numStartups": 3}')
    machine.install("--agent", "claude-code")
    assert not machine.servers.exists()
    assert "recollect" in json.loads((machine.home / ".claude" / ".config.json").read_text())["mcpServers"]


@pytest.fixture
def history(machine: Machine) -> Path:
    line = {
        "type": "user",
        "uuid": "u-1",
        "sessionId": "s-1",
        "timestamp": "2026-03-02T09:00:00.000Z",
        "cwd": str(machine.home),
        "message": {"role": "user", "content": "Always run the tests first."},
    }
    file = machine.home / ".claude" / "projects" / "-p" / "s-1.jsonl"
    machine.has(file, json.dumps(line) + "\n")
    return file


def test_the_first_run_takes_in_the_history_and_the_next_does_not_ask(machine: Machine, history: Path) -> None:
    assert machine.install("--no-import")["imported"] is None
    assert machine.install()["imported"]["entries"] == 1
    assert machine.install()["imported"] is None


def test_a_history_that_was_declined_is_left_alone_until_somebody_asks(machine: Machine, history: Path) -> None:
    os.utime(history, (0, time.time() - 60))
    config = machine.home / ".recollect" / "config.toml"
    machine.has(config, "[roots]\n")
    machine.install("--no-import")
    machine.install("--no-import")
    assert config.read_text().count("history_since") == 1 and config.read_text().endswith("\n[roots]\n")
    environ = {"HOME": str(machine.home), "RECOLLECT_EMBEDDER": "none"}
    with open_memory(config.parent, environ=environ) as memory:
        worker = Worker(memory)
        assert worker.do(Work(task=Task.SCAN)).entries == 0
        os.utime(history)  # its session goes on
        assert worker.do(Work(task=Task.SCAN)).entries == 1


def test_a_history_is_declined_whatever_ends_the_lines_of_config_toml(machine: Machine, history: Path) -> None:
    config = machine.home / ".recollect" / "config.toml"
    machine.has(config, 'log_level = "error"\r\n[roots]\r\n')
    machine.install("--no-import")
    text = config.read_bytes()
    assert text.startswith(b"history_since = ") and text.endswith(b'\nlog_level = "error"\r\n[roots]\r\n')


def test_vectors_that_have_to_wait_do_not_stop_it(
    machine: Machine, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "openai:any")
    monkeypatch.setenv("RECOLLECT_EMBEDDER_URL", "http://127.0.0.1:9/v1")
    imported = machine.install()["imported"]
    assert imported["entries"] == 1 and "vectors wait" in imported["problems"][0]["reason"]


def test_the_history_is_offered_with_its_size_and_how_long_it_takes(machine: Machine, history: Path) -> None:
    said = on_a_terminal(machine, b"y\ny\nn\n")
    assert f"Found 1 transcript of agents on this machine, {history.stat().st_size} B." in said
    assert "less than a minute" in said and "recollect ingest" in said
    assert "1 file read" not in said
    said = on_a_terminal(machine, b"y\nn\n")
    assert "1 file read" in said and "more than 30 days ago" in said


def test_history_that_no_run_looks_at_by_itself_is_offered(machine: Machine, history: Path) -> None:
    """Without a model, in the order of time; with nobody to ask, it is said."""
    assert "1 memory from 1 conversation" in on_a_terminal(machine, b"y\ny\ny\ny\n")
    (machine.home / ".recollect" / "recollect.db").unlink()
    (advice,) = [each for each in machine.install()["advice"] if "days ago" in each]
    assert "recollect process --now" in advice


# ---- Editing JSON ----------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
layouts = st.sampled_from([None, 1, 2, 4, "\t"])


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4), layouts, st.booleans(), st.booleans())
def test_what_is_put_in_can_be_cut_out_again(document: dict[str, Any], indent: Any, crlf: bool, ascii_: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_)
    text = text.replace("\n", "\r\n") if crlf else text
    document.pop("new", None)
    base = json.dumps(document, indent=indent, ensure_ascii=ascii_).replace("\n", "\r\n" if crlf else "\n")
    added = edit.put(base, ("new", "a"), [{"b": 1}])
    assert edit.value_of(added) == {**document, "new": {"a": [{"b": 1}]}}
    assert edit.put(added, ("new", "a"), [{"b": 1}]) == added or indent is None
    assert "\r\n" not in base or "\n" not in added.replace("\r\n", ""), "line ends as they are"
    assert edit.cut(added, ("new", "a", 0)) == base
    assert edit.cut(text, ("not", "there")) == text if "not" not in document else True


@given(st.lists(json_values, max_size=3), json_values, layouts)
def test_an_element_is_appended_and_taken_away(items: list[Any], value: Any, indent: Any) -> None:
    text = json.dumps({"list": items, "z": 1}, indent=indent)
    added = edit.put(text, ("list", len(items)), value)
    assert edit.value_of(added) == {"list": [*items, value], "z": 1}
    if items:
        assert edit.cut(added, ("list", len(items))) == text


names = st.sampled_from(["model", "a-b", "a b", "é", "mcp_servers", "hooks", "x.y", "features"])
toml_values = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=6) | st.lists(st.integers(0, 9), max_size=2),
    lambda inner: (
        st.dictionaries(names.filter(lambda name: name != "hooks"), inner, max_size=3)
        | st.lists(st.dictionaries(names, st.integers(), max_size=2), max_size=2)
    ),
    max_leaves=8,
)


@given(st.dictionaries(names, toml_values, max_size=5), st.sampled_from(["", "\n", "# end"]), st.booleans())
def test_any_config_toml_is_left_as_it_was_or_refused(document: dict[str, Any], end: str, crlf: bool) -> None:
    text = tomlkit.dumps(document) + end
    text = text.replace("\n", "\r\n") if crlf else text
    before = tomllib.loads(text)
    hooks = [Hook("Stop", "/bin/recollect hook Stop --agent codex", 10)]
    try:
        served = with_server(codex.CONFIG, text, "mcp_servers", {"command": "/bin/recollect", "args": ["mcp"]})
        added = with_hooks(codex.CONFIG, served, hooks)
    except ValueError:
        assert (
            not isinstance(before.get("mcp_servers", {}), dict)
            or not isinstance(before.get("hooks", {}), dict)
            or (before.get("hooks"))
        )
        return
    after = tomllib.loads(added)
    assert after["mcp_servers"].pop("recollect") == {"command": "/bin/recollect", "args": ["mcp"]}
    assert after["hooks"].pop("Stop") == [{"hooks": [{"type": "command", "command": hooks[0].command, "timeout": 10}]}]
    assert after == {"mcp_servers": {}, "hooks": {}, **before}
    bare = without_server(codex.CONFIG, without_hooks(codex.CONFIG, added), "mcp_servers")
    kept = {name: value for name, value in before.items() if value or name not in ("mcp_servers", "hooks")}
    said = tomllib.loads(bare)
    assert {name: value for name, value in said.items() if value or name not in ("mcp_servers", "hooks")} == kept


def test_every_agent_names_files_in_the_users_home_only(machine: Machine) -> None:
    from recollect.config import load

    for agent in agents(load()):
        assert all(file.is_relative_to(machine.home) for file in agent.files)
