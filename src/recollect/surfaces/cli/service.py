"""`recollect service`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from recollect import processes
from recollect.config import HOME_VARIABLE, Settings, located
from recollect.surfaces.cli.common import json_option, print_json, settings
from recollect.surfaces.cli.serve import stopped

_UNIT = """\
[Unit]
Description=recollect: long-term memory for AI agents
StartLimitIntervalSec=60
StartLimitBurst=3

[Service]
ExecStart={command}
{home}
Restart=on-failure
RestartSec=5
Nice=5

[Install]
WantedBy=default.target
"""
_WHAT = {
    "install": (["daemon-reload"], ["enable", "--now"]),
    "remove": (["disable", "--now"], ["daemon-reload"]),
}


@click.command(
    "service",
    epilog="""\b
Examples:
  recollect service install           start with your login (systemd)
  recollect service install --print   show the file, write nothing
  recollect service remove""",
)
@click.argument("action", type=click.Choice(["install", "status", "remove"]))
@click.option("--print", "only_print", is_flag=True, help="Show the unit file; write nothing.")
@json_option
def command(action: str, only_print: bool, as_json: bool) -> int:
    """Keep the daemon running by systemd, as a unit of the user. Without it hooks start the daemon."""
    chosen = settings(None) if action == "install" else located()
    file = _file(chosen)
    if only_print:
        if as_json:
            print_json({"unit": str(file), "text": unit_text(_daemon(), str(chosen.home))})
        else:
            click.echo(unit_text(_daemon(), str(chosen.home)), nl=False)
        return 0
    if action == "install":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(unit_text(_daemon(), str(chosen.home)), encoding="utf-8")
        if _has_systemd():
            stopped(chosen.home)  # beside one that a hook started, the unit's would end at once
    ran = _systemctl(action, file) if action != "status" else []
    installed = file.is_file()
    active = installed and _is_active(file.name)
    if as_json:
        print_json({"unit": str(file), "installed": installed, "active": active, "to_run": ran})
        return 0
    click.echo(f"{file}: " + ("installed" if installed else "not installed") + (", active" if active else ""))
    if ran:
        click.echo("systemd does not answer here. Run this where it does:\n" + "\n".join(f"  {each}" for each in ran))
    return 0


def _file(chosen: Settings) -> Path:
    base = chosen.environ.get("XDG_CONFIG_HOME") or str(Path(chosen.user_home) / ".config")
    return Path(base) / "systemd" / "user" / "recollect.service"


def _daemon() -> list[str]:
    return processes.python("recollect", "serve", "--foreground")


def unit_text(command: Sequence[str], home: str) -> str:
    """Pure. Variables stand in ExecStart only: a `$` in the environment is one."""
    program, *arguments = (_escaped(each).replace("$", "$$") for each in command)
    return _UNIT.format(command=" ".join([f'"{program}"', *arguments]), home=_home_line(home))


def _home_line(home: str) -> str:
    return f'Environment="{HOME_VARIABLE}={_escaped(home)}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')


def removed(chosen: Settings) -> tuple[Path, list[str]] | None:
    """The unit that brought the daemon of this home back at each login, and what is left for the person to run; None:
    there was none."""
    file = _file(chosen)
    if not file.is_file() or _home_line(str(chosen.home)) not in file.read_text(encoding="utf-8", errors="replace"):
        return None
    return file, _systemctl("remove", file)


def _systemctl(action: str, file: Path) -> list[str]:
    """What is left for the person to run; a unit that is removed is gone."""
    unit = [file.name]
    calls = [["systemctl", "--user", *each, *(unit if "daemon-reload" not in each else [])] for each in _WHAT[action]]
    left = [" ".join(call) for call in calls if not _has_systemd() or _status(call) != 0]
    if action == "remove":
        file.unlink(missing_ok=True)
    return left


def _has_systemd() -> bool:
    return processes.program("systemctl", os.environ) is not None and bool(os.environ.get("XDG_RUNTIME_DIR"))


def _is_active(unit: str) -> bool:
    return _status(["systemctl", "--user", "is-active", unit]) == 0


def _status(call: Sequence[str]) -> int:
    """Return what `systemctl` ends with."""
    program = processes.program(call[0], os.environ)
    return processes.run([program, *call[1:]], os.environ, capture_output=True, timeout=30).returncode if program else 1
