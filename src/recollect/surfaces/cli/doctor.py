"""`recollect doctor`."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.app import open_memory
from recollect.config import AGENT_ID, Settings
from recollect.doctor import Fault, Finding, Report, set_aside_database
from recollect.errors import RecollectError, StoreDamaged
from recollect.surfaces.cli.common import count, echo, memory, options, print_json, settings
from recollect.surfaces.cli.serve import started, stopped
from recollect.types import timestamp, utc_now

if TYPE_CHECKING:
    from recollect.surfaces.daemon.place import Running

_SHOWN = 50


@click.command(
    "doctor",
    epilog="""\b
Examples:
  recollect doctor            says what is wrong, and mends nothing
  recollect doctor --fix""",
)
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
@options
def command(fix: bool, as_json: bool, agent_id: str | None) -> int:
    """Find what is wrong, and mend it.

    Files that were changed by hand or are gone, links that lead nowhere, leftovers, work that nobody does any more,
    jobs that failed, a stale MEMORY.md, what is ready in context/, hooks that lead nowhere, the database's integrity,
    permissions, disk space, a backlog. A canonical file that was changed by hand is kept beside its place
    (`….md.changed`); its conversation is written anew from the database. No model is asked. Exit status 1 when
    something is left to do.
    """
    from recollect.surfaces.installers.upkeep import troubles

    report, state = _examine(fix, agent_id)
    report.problems += [Finding(Fault.UNPLUGGED, each.problem, each.hint) for each in troubles(settings(agent_id))]
    if as_json:
        problems = [asdict(each) for each in report.problems]
        print_json({"files": report.files, "problems": problems, "kept": report.kept, **state})
    else:
        _show(report)
    return 1 if report.remaining else 0


def _examine(fix: bool, agent_id: str | None) -> tuple[Report, dict[str, Any]]:
    """A damaged database cannot mend itself: it is set aside, and a new one is made from the files. No daemon runs
    meanwhile: it would go on with the old one. Whatever happens, one that ran runs again."""
    try:
        with memory(agent_id) as opened:
            report = opened.doctor(fix=fix)
            damage = next((each for each in report.problems if each.kind is Fault.DAMAGED_DATABASE), None)
            if damage is None:
                status = opened.status()
                return report, {"tables": status.tables, "jobs": status.jobs}
    except StoreDamaged as error:
        damage = Finding(Fault.DAMAGED_DATABASE, error.message, "`recollect doctor --fix` rebuilds it from the files.")
        report = Report(problems=[damage])
    if not fix:
        return report, {"tables": {}, "jobs": {}}
    chosen = settings(agent_id)
    daemon = stopped(chosen.home)
    try:
        report, state = _rebuilt(chosen, agent_id, damage)
    finally:
        down = _again(chosen, daemon)
    report.problems += down
    return report, state


def _rebuilt(chosen: Settings, agent_id: str | None, damage: Finding) -> tuple[Report, dict[str, Any]]:
    """One database holds every owner's rows, so all of them come back."""
    kept = set_aside_database(chosen, timestamp(utc_now()))
    for tenant, agent in sorted(_owners(chosen.home) - {(chosen.config.tenant, chosen.config.agent_id)}):
        with open_memory(tenant=tenant, agent_id=agent) as other:
            other.reindex()
    with memory(agent_id) as opened:
        opened.reindex()
        report = opened.doctor(fix=True)
        status = opened.status()
    told = f"It was rebuilt from the files, and kept as {kept.name if kept else 'it was'}."
    report.problems.insert(0, replace(damage, hint=f"{told} `recollect ingest` reads the rest.", fixed=True))
    return report, {"tables": status.tables, "jobs": status.jobs}


def _owners(home: Path) -> set[tuple[str, str]]:
    """Tenants and agents, as folders tell."""
    roots = {"default": home, **_named(home / "tenants")}
    return {(tenant, agent) for tenant, root in roots.items() for agent in ("default", *_named(root / "agents"))}


def _named(folder: Path) -> dict[str, Path]:
    return {each.name: each for each in folder.glob("*") if re.fullmatch(AGENT_ID, each.name)}


def _again(chosen: Settings, daemon: Running | None) -> list[Finding]:
    """Starts a daemon that was stopped; what is wrong where it does not come up."""
    try:
        if daemon:
            started(chosen, daemon.agent or None)
    except RecollectError as error:
        return [Finding(Fault.FAILED_JOB, error.message, error.hint)]
    return []


def _show(report: Report) -> None:
    for each in report.problems[:_SHOWN]:
        echo(f"{'fixed  ' if each.fixed else 'problem'}  {each.what}")
        if not each.fixed or each.kind is Fault.DAMAGED_DATABASE:
            echo(f"         {each.hint}")
    if len(report.problems) > _SHOWN:
        echo(f"and {len(report.problems) - _SHOWN:,} more; --json lists all")
    for path in report.kept:
        echo(f"kept     {path}")
    fixed = len(report.problems) - report.remaining
    told = f"{count(report.files, 'file')} checked"
    if not report.problems:
        echo(f"{told}, no problems.")
    else:
        echo(f"{told}: {count(report.remaining, 'problem')} left, {fixed:,} fixed.")
