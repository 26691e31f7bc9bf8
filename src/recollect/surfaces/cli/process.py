"""`recollect process`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from recollect.artifacts.sanitize import line
from recollect.errors import UsageError
from recollect.surfaces.cli.common import author, count, counting, echo, embed, is_terminal, memory, options, print_json
from recollect.text import estimate_tokens, readable
from recollect.types import ConversationStatus

_MOST_SHOWN = 20  # memories that are retired, or hold again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.app import Memory
    from recollect.extract.values import Report


@click.command(
    "process",
    epilog="""\b
Examples:
  recollect process              conversations that fell silent in the last 30 days, at most 16
  recollect process --now        everything that was taken in, however short, old or recent
  recollect process --limit 3    at most three
  recollect process --now --limit 1 --dry-run    what the model would be sent about the next one
  recollect process --again --now    with a model that you named since, or your own agent, what was read without it
  recollect process --again --undo   what that retired holds again""",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many conversations.")
@click.option("--now", is_flag=True, help="Do not wait for silence; take short and old conversations too.")
@click.option(
    "--again",
    is_flag=True,
    help="Read conversations anew that were read without today's model, by another one or by older rules.",
)
@click.option("--undo", is_flag=True, help="With --again: read nothing; what the last retirement named holds again.")
@click.option("--yes", is_flag=True, help="Do not ask before a large backlog goes to a paid model.")
@click.option("--dry-run", is_flag=True, help="Print exactly what the model would be sent, and send nothing.")
@options
def command(
    limit: int | None,
    now: bool,
    again: bool,
    undo: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Extract memories from conversations that are ready (phase 1).

    Each conversation is done once; running it again does only what is new or changed. `--again` replaces what other
    models or rules made of a conversation; what a model has read is never read again without one. What it would not
    keep any more is retired: told to no agent, unless it was pinned, corrected, called right or used. It stays in its
    files and in `show`; `--again --undo` has all that the last run retired hold again, `pin` a single memory.
    """
    if undo and not again:
        raise UsageError("--undo goes with --again", hint="recollect process --again --undo")
    if undo:
        return _undo(as_json, agent_id)
    with memory(agent_id) as opened:
        if dry_run:
            return _print_questions(opened, limit, now, again, as_json)
        if not yes:
            _ask(opened, limit, now, again, as_json)
        with counting("extracting", as_json) as progress:
            report = opened.process(limit=limit, now=now, again=again, stopping=_stopping, progress=progress)
        if not as_json:
            _describe(report, opened, now)
        waits = embed(opened, quiet=as_json)
    if as_json:
        problems = [*report.problems, *([("", waits)] if waits else [])]
        print_json({**asdict(report), "problems": [{"key": key, "reason": why} for key, why in problems]})
    return 1 if report.failed or report.given_up else 0


def _undo(as_json: bool, agent_id: str | None) -> int:
    with memory(agent_id) as opened:
        restored = opened.restore(author=author(opened))
    if as_json:
        print_json({"restored": [(each.id, each.text) for each in restored]})
        return 0
    _list(f"{count(len(restored), 'memory holds', 'memories hold')} again", [(each.id, each.text) for each in restored])
    return 0


def _list(title: str, named: Sequence[tuple[str, str]]) -> None:
    """The first of these memories, by id and text."""
    echo(f"{title}{':' if named else '.'}")
    for name, text in named[:_MOST_SHOWN]:
        echo(f"  {name}  {line(text)}")
    if len(named) > _MOST_SHOWN:
        echo(f"  and {len(named) - _MOST_SHOWN:,} more; --json names all")


def _print_questions(opened: Memory, limit: int | None, now: bool, again: bool, as_json: bool) -> int:
    total = number = 0
    told: list[dict[str, object]] = []
    for key, questions in opened.questions(limit=limit, now=now, again=again):
        tokens = sum(map(estimate_tokens, questions))
        total, number = total + tokens, number + 1
        if as_json:
            told.append({"session_key": key, "tokens": tokens, "questions": questions})
        for text in () if as_json else questions:
            echo(f"=== {line(key)}, about {tokens:,} tokens\n\n{readable(text)}\n")
    if as_json:
        print_json(told)
    else:
        echo(f"{count(number, 'conversation')}, about {total:,} tokens. Nothing was sent.")
    return 0


def _ask(opened: Memory, limit: int | None, now: bool, again: bool, as_json: bool) -> None:
    """A year of history is not sent to a paid model by surprise."""
    config = opened.settings.config
    estimate = opened.estimate(limit=limit, now=now, again=again)
    if estimate is None or estimate.tokens <= config.confirm_above_tokens:
        return
    cost = f", about {estimate.dollars:,.2f} US dollars" if estimate.dollars else ""
    talks = count(estimate.conversations, "conversation")
    what = f"{talks}, about {estimate.tokens:,} tokens{cost}, to {estimate.model}"
    if as_json or not is_terminal():
        raise UsageError(f"this would send {what}", hint="Add --yes to go on, or --limit N to send less.")
    click.confirm(f"This sends {what}. Go on?", abort=True, err=True)


def _stopping(running: int) -> None:
    if running:
        answers = count(running, "answer")
        echo(f"stopping: waiting for {answers} already asked for; Ctrl-C again gives them up", err=True)


def _describe_agent(report: Report) -> None:
    if report.by_agent:
        echo(f"{count(report.by_agent, 'conversation')} of them read by your own agent.")
    if report.left_to_agent and not report.limited:
        why = f": {line(report.agent_waits)}" if report.agent_waits else ""
        now = "" if "limit" in why or "max_tokens" in why else " (`--now` does not wait)"
        echo(f"{count(report.left_to_agent, 'conversation')} left to your own agent{why}{now if why else ''}.")


def _describe(report: Report, opened: Memory, now: bool) -> None:
    if not report.claimed and not report.skipped:
        _describe_agent(report)
        waits = "no conversation fell silent since last time (`--now` does not wait for that)"
        if not now and opened.conversations(status=ConversationStatus.READY, limit=1):
            days = opened.settings.config.max_rollout_age_days
            waits = f"what is ready is older than {count(days, 'day')}, or waits for its next try (`--now` reads it)"
        echo(f"Nothing to process: {'all that was taken in is done' if now else waits}.")
        return
    found = count(report.memories, "memory", "memories")
    echo(
        f"{count(report.claimed, 'conversation')} processed: {report.succeeded:,} with {found},"
        f" {report.succeeded_no_output:,} without anything worth keeping, {report.failed:,} failed"
        + (f"; {report.skipped:,} left alone" if report.skipped else "")
        + (f"; {report.tokens:,} tokens" if report.tokens else "")
    )
    _describe_agent(report)
    if report.waiting:
        echo(f"{report.waiting:,} more to do: run it again, or with `--now` for all of them.")
    if report.limited:
        echo(f"STOPPED: the limit of your plan is reached. {line(report.limited)}")
        echo("  Nothing is asked before it resets; `recollect status` tells when, `recollect retry` tries sooner.")
    elif report.paused:
        echo(f"{count(report.paused, 'conversation')} paused: the tokens of the day are used up.")
    if report.ungrounded:
        dropped = count(report.ungrounded, "statement")
        echo(f"{dropped} of the model dropped: the messages they name do not say so.")
    if report.retired:
        _list(f"{count(len(report.retired), 'memory', 'memories')} retired", report.retired)
        echo("They are told to no agent any more. To undo it: recollect process --again --undo")
    for key, reason in report.problems[:20]:
        echo(f"  {line(key)}: {reason}", err=True)
    if report.failed and not report.given_up:
        echo("  They are tried again by themselves; `recollect status` tells when.", err=True)
    if report.given_up:
        talks = count(report.given_up, "conversation")
        echo(f"{talks} given up: mend the cause, then `recollect retry` takes them up again.", err=True)
