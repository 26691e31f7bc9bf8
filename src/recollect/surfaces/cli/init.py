"""`recollect init`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.config import Settings, located
from recollect.errors import ConfigError, RecollectError, UsageError
from recollect.home import strangers
from recollect.surfaces.cli.common import count, counting, embed, memory, only_for_people, options, print_json, size
from recollect.surfaces.cli.common import settings as load_settings
from recollect.surfaces.cli.serve import stopped
from recollect.surfaces.cli.service import removed
from recollect.surfaces.hooks import launcher
from recollect.surfaces.hooks.client import AGENTS
from recollect.types import ConversationStatus, timestamp, utc_now

if TYPE_CHECKING:
    from recollect.app import Memory
    from recollect.surfaces.installers.files import Change
    from recollect.surfaces.installers.values import Agent

_BYTES_PER_SECOND = 25e6  # of transcripts, on a small machine; `recollect bench ingest` measures this one


class StrangeHome(RecollectError):
    """The folder does not look like one of recollect, so it is not erased."""


@dataclass(slots=True)
class Result:
    """The JSON of `init`."""

    agents: list[str] = field(default_factory=list)  # that were looked at
    changed: list[str] = field(default_factory=list)  # files
    backups: list[str] = field(default_factory=list)  # files
    advice: list[str] = field(default_factory=list)  # what the user has to do now
    diff: str = ""  # with --print
    imported: dict[str, Any] | None = None  # the report of `ingest`
    purged: str = ""  # the folder that was erased


@click.command(
    "init",
    epilog="""\b
Examples:
  recollect init                       asks about every agent found on this machine
  recollect init --print               shows what would change, and changes nothing
  recollect init --agent codex --yes   without a question
  recollect init --uninstall           takes it out again; memory stays
  recollect init --uninstall --purge   and erases all memory
  recollect init --model cli:claude:haiku --project ~/shop   your own agent reads that project from now on
  recollect init --model offline       undoes all that your own agent wrote""",
)
@click.option(
    "--agent", "names", type=click.Choice(AGENTS), multiple=True, help="Only this agent. [default: all that are found]"
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--print", "only_print", is_flag=True, help="Show the changes as a diff; change nothing.")
@click.option("--uninstall", is_flag=True, help="Take recollect out of the agents' settings.")
@click.option("--purge", is_flag=True, help="With --uninstall: erase everything under RECOLLECT_HOME, too.")
@click.option("--import/--no-import", "import_", default=True, help="Offer the history found on this machine.")
@click.option(
    "--model",
    metavar="NAME",
    help="Only this: agree to `cli:claude` or `cli:codex` as the model, or undo that with `offline`.",
)
@click.option("--project", "projects", multiple=True, metavar="P", help="With --model: the project, by folder or id.")
@options
def command(
    names: tuple[str, ...],
    yes: bool,
    only_print: bool,
    uninstall: bool,
    purge: bool,
    import_: bool,
    model: str | None,
    projects: tuple[str, ...],
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Plug recollect into the agents on this machine: hooks and the MCP server.

    Your own settings stay as they are: entries are added, files are backed up first, and a file that cannot be
    understood is refused. Running it again changes nothing, or brings older entries up to date.
    """
    if model is not None or projects:
        return _choose_model(model, projects, as_json, agent_id)
    return _plug(names, yes, only_print, uninstall, purge, import_, as_json, agent_id)


def _choose_model(model: str | None, projects: tuple[str, ...], as_json: bool, agent_id: str | None) -> int:
    from recollect.config import value_of
    from recollect.surfaces.cli.offer import agree, undo

    if model is None:
        raise UsageError("--project goes with --model")
    say = _Speaker(as_json)
    if model == "offline":
        told = undo(agent_id, projects, say)
    else:
        value_of("agreed_projects", {model: []}, "`--model`")
        told = agree(agent_id, model, projects, say)
    if as_json:
        print_json(told)
    return 1 if told.get("failed") else 0


def _plug(
    names: tuple[str, ...],
    yes: bool,
    only_print: bool,
    uninstall: bool,
    purge: bool,
    import_: bool,
    as_json: bool,
    agent_id: str | None,
) -> int:
    from recollect.surfaces.installers import agents
    from recollect.surfaces.installers.files import copies, diff, installing, obstacles, uninstalling
    from recollect.surfaces.installers.upkeep import is_plugged_in

    if purge and (not uninstall or (names and set(names) != set(AGENTS))):  # one that stays plugged in brings it back
        raise UsageError("--purge goes with --uninstall, and with every agent")
    if uninstall and not only_print:
        only_for_people("take recollect away", "init", "--uninstall", *(["--purge"] if purge else []))
    if not (yes or only_print) and (as_json or not sys.stdin.isatty()):
        raise UsageError("there is nobody to ask", hint="Add --yes, or --print to see what would change.")
    settings, say = _settings(agent_id, uninstall), _Speaker(as_json)
    if purge and not only_print:
        _require_own_home(settings)
    known = agents(settings)
    chosen = [each for each in known if each.name in names] if names else _found(known, everything=uninstall)
    result = Result(agents=[each.name for each in chosen])
    changes = uninstalling(chosen) if uninstall else installing(chosen)
    if only_print:
        result.changed = [str(each.file) for each in changes]
        result.diff = "".join(diff(each) for each in changes)
        click.echo(result.diff if not as_json else "", nl=False)
    else:
        _act(changes, result, say, yes=yes, uninstall=uninstall)
        if not uninstall:
            _launch(settings, chosen)
            _advise(result, say, obstacles(chosen))
        elif not is_plugged_in(settings):
            launcher.remove(settings.home)
        if uninstall and len(chosen) == len(known):
            _stop(settings, result, say)
        if purge:
            _purge(settings, result, say, yes=yes)
            left = [str(copy) for each in known for file in each.files for copy in copies(file)]
            if left:  # they are the person's, and all there is if anything went wrong
                _advise(
                    result, say, ["Copies of your settings are left; delete them when all is well: " + ", ".join(left)]
                )
        elif not uninstall:
            _offer_history(agent_id, result, say, yes=yes, offered=import_)
            if not yes:
                from recollect.surfaces.cli.offer import offer

                offer(agent_id)
    if not chosen:
        say("No agent was found. Looked for " + ", ".join(str(sign) for each in known for sign in each.signs) + ".")
        say("`recollect init --agent claude-code` sets one up all the same.")
    if as_json:
        print_json({name: getattr(result, name) for name in Result.__slots__})
    return 0


def _settings(agent_id: str | None, uninstall: bool) -> Settings:
    """What is taken out needs no configuration. What is plugged in is one agent's: hooks and server name none."""
    try:
        chosen = load_settings(agent_id)
    except ConfigError:
        if uninstall:
            return located()
        raise
    if not uninstall and chosen.config.agent_id != load_settings(None).config.agent_id:
        hint = f'Set agent_id = "{agent_id}" in config.toml, then run init.'
        raise UsageError("hooks know one agent per home", hint=hint)
    return chosen


@dataclass(frozen=True, slots=True)
class _Speaker:
    """Speaks to people; silent where a program listens."""

    quiet: bool

    def __call__(self, text: str) -> None:
        if not self.quiet:
            click.echo(text)


def _found(known: Sequence[Agent], *, everything: bool) -> list[Agent]:
    return [each for each in known if everything or any(sign.exists() for sign in each.signs)]


def _act(changes: Sequence[Change], result: Result, say: _Speaker, *, yes: bool, uninstall: bool) -> None:
    """Asks per agent, writes, and tells what is to be done now."""
    from recollect.surfaces.installers.files import apply

    agreed: list[Change] = []
    for agent in dict.fromkeys(each.agent.name for each in changes):
        own = [each for each in changes if each.agent.name == agent]
        verb = "Take recollect out of" if uninstall else "Plug recollect into"
        files = ", ".join(str(each.file) for each in own)
        if yes or click.confirm(f"{verb} {own[0].agent.title}? It changes {files}", default=True):
            agreed += own
    result.backups = [str(each) for each in apply(agreed, utc_now())]
    result.changed = [str(each.file) for each in agreed]
    for each in agreed:
        say(f"{'Removed' if each.after is None else 'Changed'} {each.file}")
    for backup in result.backups:
        say(f"  before: {backup}")
    if not changes and result.agents:
        say("Nothing of recollect is in the settings." if uninstall else "Everything is set up already.")
    if not uninstall:
        advice = {each.agent.title: each.agent.advice for each in agreed}
        _advise(result, say, [f"{title}: {said}" for title, said in advice.items()])


def _launch(settings: Settings, chosen: Sequence[Agent]) -> None:
    """Make the home, and have hooks call this installation."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if chosen:
        launcher.install(settings.home, launcher.own())


def _advise(result: Result, say: _Speaker, advice: Sequence[str]) -> None:
    result.advice += advice
    for each in advice:
        say(each)


def _offer_history(agent_id: str | None, result: Result, say: _Speaker, *, yes: bool, offered: bool) -> None:
    """On the first run: what agents wrote on this machine so far. What is declined, the daemon leaves alone, too."""
    from recollect.surfaces.cli.ingest import as_dict, describe, progress

    with memory(agent_id) as opened:
        if not opened.settings.config.enabled or opened.conversations(limit=1):
            return
        files, length = opened.intake.waiting()
        if not files:
            return
        seconds = length / _BYTES_PER_SECOND
        about = f"about {max(seconds / 60, 1):.0f} min" if seconds > 50 else "less than a minute"
        say(f"Found {count(files, 'transcript')} of agents on this machine, {size(length)}.")
        if not offered or not (yes or click.confirm(f"Take them in now? It takes {about}", default=True)):
            _leave_history(opened.settings)
            say("They are left alone; `recollect ingest` takes them in later.")
            return
        with progress(say.quiet) as report_to:
            report = opened.ingest(**report_to)
        result.imported = as_dict(report, embed(opened, quiet=say.quiet))
        if not say.quiet:
            describe(opened, report, everything=True)
            say("Memories are made of them in the background; `recollect process` does it now.")
        _offer_older(opened, result, say, yes=yes)


def _offer_older(opened: Memory, result: Result, say: _Speaker, *, yes: bool) -> None:
    """What is older than runs look at by themselves is read where the person wants it."""
    days = opened.settings.config.max_rollout_age_days
    until = timestamp(utc_now() - timedelta(days=days))
    ready = [each for each in opened.conversations(status=ConversationStatus.READY) if each.last_message_at < until]
    if not ready:
        return
    what = f"{count(len(ready), 'conversation')} ended more than {days} days ago"
    if yes:
        _advise(result, say, [f"{what}: `recollect process --now` reads those, too."])
    elif click.confirm(f"{what}. Learn from those, too, now and without a model?", default=True):
        with counting("extracting", say.quiet) as progress:
            done = opened.read_without_model([each.session_key for each in ready], progress=progress)
        say(f"{count(done.memories, 'memory', 'memories')} from {count(done.stored, 'conversation')}.")


def _leave_history(settings: Settings) -> None:
    """Written down where a person can change it."""
    from recollect.surfaces.installers.files import write

    if not settings.config.history_since:
        file = settings.home / "config.toml"
        before = file.read_bytes().decode() if file.exists() else None
        line = f'history_since = "{timestamp(utc_now())}"\n'  # first: behind a table it would belong to that
        write(file, before, line + (before or ""))


def _require_own_home(settings: Settings) -> None:
    """A folder that holds anything else, or a person's own, is never erased."""
    home, person = settings.home.resolve(), Path(settings.user_home).resolve()
    if home == person or home in person.parents:
        raise StrangeHome(f"{settings.home} is not erased: it holds your own files")
    if strange := strangers(home) if home.is_dir() else []:
        raise StrangeHome(
            f"{settings.home} does not look like a folder of recollect: {', '.join(strange[:5])}",
            hint="Nothing was changed. Move what is yours out of it, or leave --purge away.",
        )


def _stop(settings: Settings, result: Result, say: _Speaker) -> None:
    """Nobody calls the daemon any more, and no login brings it back: it would make a home anew, and take all in."""
    if unit := removed(settings):
        file, left = unit
        result.changed.append(str(file))
        say(f"Removed {file}")
        _advise(result, say, [f"systemd does not answer here. Run this where it does: {each}" for each in left])
    stopped(settings.home)


def _purge(settings: Settings, result: Result, say: _Speaker, *, yes: bool) -> None:
    if not settings.home.exists():
        say(f"There is no {settings.home}.")
        return
    if not yes and not click.confirm(f"Erase {settings.home} and all memory in it, for good?", default=False):
        return
    stopped(settings.home)
    shutil.rmtree(settings.home.resolve())
    if settings.home.is_symlink():
        settings.home.unlink()
    result.purged = str(settings.home)
    say(f"Erased {settings.home}")
    if settings.config.database:
        _advise(result, say, ["PostgreSQL still holds what was in its database; drop it where it runs."])
