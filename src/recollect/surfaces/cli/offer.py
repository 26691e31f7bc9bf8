"""What `init` says and asks about the person's own agent as the model, and where it writes down what they agreed to.

Nobody is asked to agree to everything at once: first to three sessions, whose projects are asked about one by one, then
to the newest week. All but a yes is a no: then the agent has nothing more to read, and what it wrote is undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from recollect.artifacts.sanitize import line
from recollect.errors import NotFound, UsageError
from recollect.extract.offer import agreed, installed, program_of
from recollect.extract.values import Report
from recollect.surfaces.cli.common import count, counting, echo, memory, only_for_people
from recollect.text import estimate_tokens, readable
from recollect.types import Timestamp, project_name, timestamp, utc_now

if TYPE_CHECKING:
    from recollect.app import Memory
    from recollect.asking import Estimate
    from recollect.config import Settings
    from recollect.types import Conversation

_TITLES = {"claude": "Claude Code", "codex": "Codex"}
_TRIED = 3  # sessions
_WEEK = timedelta(days=7)
_SHOWN = 8  # memories of a session

Say = Callable[[str], None]


def title(model: str) -> str:
    """As people call it."""
    own = model.split(":")[2:]
    return _TITLES[program_of(model)] + (f" with its model {own[0]}" if own else "")


# Without questions


def agree(agent_id: str | None, model: str, named: Sequence[str], say: Say) -> dict[str, Any]:
    """`init --model M --project P…`: writes it down. Nothing is sent yet."""
    only_for_people("agree to what is sent to a model", "init", "--model", model)
    if not named:
        hint = "Name each with --project: its folder, or its id as `recollect conversations` shows it."
        raise UsageError("which projects may it read?", hint=hint)
    with memory(agent_id) as opened:
        _require_offline(opened.settings)
        projects = [opened.project(each) for each in named]
        if unknown := [each for each in projects if not opened.conversations(project=each, limit=1)]:
            raise NotFound(
                f"no conversation of {', '.join(unknown)} is known", hint="`recollect ingest` takes them in."
            )
        write_agreed(opened.settings, model, {*agreed(opened.settings.config).get(model, ()), *projects}, _week_ago())
    with memory(agent_id) as opened:
        talks = opened.offer.due().get(model, [])
        cost = opened.cost(model, talks)
        names = ", ".join(map(project_name, projects))
        say(f"{title(model)} may read {names} from now on: {_words(cost)} to begin with.")
        say("It does so when nobody uses an agent; `recollect process --now` does not wait.")
    return {"model": model, "projects": projects, "estimate": asdict(cost)}


def undo(agent_id: str | None, named: Sequence[str], say: Say) -> dict[str, Any]:
    """`init --model offline`: takes the consent back, and what the agent wrote."""
    only_for_people("undo what a model wrote", "init", "--model", "offline")
    with memory(agent_id) as opened:
        _require_offline(opened.settings)
        projects = [opened.project(each) for each in named]
        for model, names in agreed(opened.settings.config).items():
            left = names - {*projects} if projects else ()
            write_agreed(opened.settings, model, left, opened.settings.config.agreed_since)
    with memory(agent_id) as opened:
        report = opened.without_agent(projects)
    say(f"{count(report.stored, 'conversation')} read without a model again; nothing is sent to one any more.")
    for key, why in report.problems:
        say(f"  {line(key)}: {why}")
    return {"model": "offline", "projects": projects, "undone": report.stored, "failed": report.failed}


def _require_offline(settings: Settings) -> None:
    if settings.config.model != "offline":
        where = settings.origins["model"]
        raise UsageError(
            f"`model` is {settings.config.model} ({where}), which reads every project", hint="Change it there."
        )


def write_agreed(settings: Settings, model: str, projects: Collection[str], begin: str) -> None:
    """The consent, in config.toml, where a person sees and changes it. No project: it goes."""
    import tomlkit

    from recollect.surfaces.installers.files import write

    file = settings.home / "config.toml"
    before = file.read_bytes().decode() if file.exists() else None
    document = tomlkit.parse(before or "")
    table = {**document.get("agreed_projects", {})}
    table.pop(model, None)
    if projects:
        table[model] = sorted(projects)
    for key in ("agreed_projects", "agreed_since"):
        document.pop(key, None)
    rest = tomlkit.dumps(document)
    lines = [f"agreed_projects = {_inline(table)}\n"] if table else []
    lines += [f'agreed_since = "{begin}"\n'] if table and begin else []
    write(file, before, "".join(lines) + rest)  # first: behind a table they would belong to that


def _inline(table: Mapping[str, Sequence[str]]) -> str:
    import json

    told = (f"{json.dumps(model)} = {json.dumps([*names], ensure_ascii=False)}" for model, names in table.items())
    return "{" + ", ".join(told) + "}"


def _week_ago() -> Timestamp:
    return timestamp(utc_now() - _WEEK)


# With questions


def offer(agent_id: str | None) -> None:
    """Tells what the person's own agent could read and what that takes; asks; shows a trial; asks on."""
    with memory(agent_id) as opened:
        settings, config = opened.settings, opened.settings.config
        models = installed(settings)
        talks = opened.offer.open() if config.enabled and config.model == "offline" and models else []
        if not talks or agreed(config):
            return
        _tell(opened, models[0], talks)
        if not _wants(opened, models[0], talks):
            echo("Nothing is sent. `recollect init` asks again; `recollect status` tells what is missed.")
            return
        tried, answers = _choose(talks, models[0])
    if not tried:
        echo("Nothing is sent.")
        return
    own = [each for each in models if program_of(each) == program_of(models[0])]
    try:
        _go_on(agent_id, own, talks, tried, answers)
    except BaseException:  # Ctrl-C, too: nobody said yes to the end
        for model in own:
            write_agreed(settings, model, (), "")
        raise


def _go_on(
    agent_id: str | None,
    models: Sequence[str],
    talks: Sequence[Conversation],
    tried: Sequence[Conversation],
    answers: Mapping[str, bool],
) -> None:
    """From the trial to the newest week. `answers`: what was said of which project; nobody is asked twice."""
    projects = {each for each, answer in answers.items() if answer}
    model, seconds = _trial(agent_id, models, tried)
    refused = {each for each, answer in answers.items() if not answer}
    newest = [each for each in talks if each.last_message_at >= _week_ago() and each not in tried]
    week = [each for each in newest if each.project_id not in refused]
    minutes = f"about {_minutes(seconds * len(week))} at this pace"
    others = [project for project in dict.fromkeys(each.project_id for each in week) if project not in projects]
    echo(
        f"The newest week: {count(len(week), 'more conversation')} in {count(len(others), 'more project')}, {minutes}."
    )
    if not click.confirm("Have it read the newest week, too, and what comes from now on?", default=False):
        undo(agent_id, (), echo)
        return
    for project in others:
        if _may_read(project, sum(each.project_id == project for each in week), model):
            projects.add(project)
    with memory(agent_id) as opened:
        write_agreed(opened.settings, model, projects, _week_ago())
    _read_week(agent_id, model)


def _tell(opened: Memory, model: str, talks: Sequence[Conversation]) -> None:
    week = [each for each in talks if each.last_message_at >= _week_ago()]
    most = opened.settings.config.max_tokens_per_day
    echo(f"\n{title(model)}, your own agent, can read what you said with agents. It finds more than is found without a")
    echo("model, and tells it better; your plan pays.")
    echo(f"  all of it:       {_words(opened.cost(model, talks))}")
    echo(f"  the newest week: {_words(opened.cost(model, week))}")
    echo(
        "It gets no tools, hooks or servers and leaves no session behind; it works when nobody uses an agent, stops at"
    )
    echo(f"the first sign of your plan's limit and after {most:,} tokens a day. You agree per project.")
    echo("`recollect init --model offline` undoes all that it wrote.")


def _words(cost: Estimate) -> str:
    talks = count(cost.conversations, "conversation")
    return f"{talks}, about {cost.tokens:,} tokens, {_minutes(cost.seconds)}"


def _minutes(seconds: float) -> str:
    return f"{max(seconds / 60, 1):,.0f} min"


def _wants(opened: Memory, model: str, talks: Sequence[Conversation]) -> bool:
    """A trial? It may be seen before what would be sent."""
    while True:
        question = f"Try it on your {_TRIED} newest sessions (s shows what would be sent)?"
        answer = click.prompt(question, type=click.Choice(["y", "n", "s"]), default="n")
        if answer != "s":
            return bool(answer == "y")
        for text in opened.asked_about(model, talks[0]):
            echo(f"=== {line(talks[0].session_key)}, about {estimate_tokens(text):,} tokens\n\n{readable(text)}\n")


def _may_read(project: str, number: int, model: str) -> bool:
    what = f"{line(project_name(project))} ({count(number, 'conversation')})"
    return click.confirm(f"May {_TITLES[program_of(model)]} read {what}?", default=False)


def _choose(talks: Sequence[Conversation], model: str) -> tuple[list[Conversation], dict[str, bool]]:
    """The newest sessions, of projects that the person agrees to; and what they said of each project."""
    answers: dict[str, bool] = {}
    chosen: dict[str, Conversation] = {}  # by session
    for each in talks:
        if len(chosen) == _TRIED:
            break
        if each.project_id not in answers:
            number = sum(one.project_id == each.project_id for one in talks)
            answers[each.project_id] = _may_read(each.project_id, number, model)
        if answers[each.project_id]:
            chosen.setdefault(each.session_id, each)
    return [*chosen.values()], answers


def _trial(agent_id: str | None, models: Sequence[str], tried: Sequence[Conversation]) -> tuple[str, float]:
    """Shows these conversations as they are read without a model and with one. Which model did it, and how many seconds
    a conversation took."""
    keys = [each.session_key for each in tried]
    projects = {each.project_id for each in tried}
    with memory(agent_id) as opened:
        opened.read_without_model(keys)
        without = [opened.told_of(key) for key in keys]
        settings = opened.settings
    done, seconds, model = Report(), 0.0, models[0]
    for model in models:
        for other in models:
            write_agreed(settings, other, projects if other == model else (), timestamp(utc_now()))
        with memory(agent_id) as opened, counting("reading", False) as progress:
            opened.offer.revive(tried)
            started = time.monotonic()
            done = opened.read_by_agent(model, keys, progress=progress)
            seconds = time.monotonic() - started
            beside = [opened.told_of(key) for key in keys]
        if not done.failed or done.stored:
            break
    for talk, before, after in zip(tried, without, beside, strict=True):
        echo(f"\n{line(project_name(talk.project_id))}, {talk.last_message_at[:16]}")
        _show("without a model", *before)
        _show(f"with {title(model)}", *after)
    echo(f"\n{title(model)}: {count(done.stored, 'conversation')}, {done.tokens:,} tokens, {seconds / 60:.1f} min.")
    if done.limited:
        echo(f"STOPPED: the limit of your plan is reached. {line(done.limited)}")
    for key, why in [] if done.limited else done.problems:
        echo(f"  {line(key)}: {why}")
    return model, seconds / max(len(keys), 1)


def _show(who: str, summary: str, texts: Sequence[str]) -> None:
    echo(f"  {who}:")
    for each in [f"({line(summary)[:300]})", *(f"- {line(text)}" for text in texts[:_SHOWN])]:
        echo(f"    {each}")
    if len(texts) > _SHOWN:
        echo(f"    and {len(texts) - _SHOWN} more")


def _read_week(agent_id: str | None, model: str) -> None:
    with memory(agent_id) as opened:
        report = Report()
        with counting("reading", False) as progress:
            opened.have_agent_read(report, limit=None, now=True, again=False, progress=progress)
        opened.consolidate(now=True)
        missed = opened.offer.missed()
    echo(f"{title(model)} read {count(report.by_agent, 'conversation')}: {report.tokens:,} tokens.")
    if why := report.limited or report.agent_waits:
        echo(f"STOPPED: {line(why)}")
    if report.left_to_agent:
        echo(f"{count(report.left_to_agent, 'conversation')} are left; it goes on by itself when nobody uses an agent.")
    if missed.older:
        older = count(missed.older, "older conversation")
        echo(
            f"{older} of these projects: `recollect process --again --now` has it read them, and tells the cost first."
        )
