"""`recollect show`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import click

from recollect.artifacts.ledger import shortened
from recollect.artifacts.lineage import Revision, Said, Shown, Talk, Type
from recollect.artifacts.sanitize import line
from recollect.occasions import joined
from recollect.surfaces.cli.common import author, count, day_and_time, echo, memory, options, print_json
from recollect.types import Hand, Trust, project_name

_LONGEST = 200
_TRUST = {
    Trust.SAID: "said by the person",
    Trust.CHOSEN: "chosen by the person",
    Trust.FOUND: "found by the agent",
    Trust.NOTED: "in an agent's words",
    Trust.PASSED_ON: "passed on by the person",
}
_HANDS = {
    Hand.PERSON: "noted by a person",
    Hand.AGENT: "noted by an agent",
    Hand.PIPELINE: "read in a conversation",
}


@click.command(
    "show",
    epilog="""\b
Examples:
  recollect show m-k3v7q2                    the memory whose id begins so, with every revision
  recollect show m-k3v7q2hx4tnwz5ra-r1       the same; with --json the record is of that revision
  recollect show 5f2c9a70                    a session, by the beginning of its id
  recollect show memory/2026-03-28T22-34-06.792Z--qgyxbr4twjuii5ya--summary.md
  recollect show last --json""",
)
@click.argument("name", metavar="ID")
@options
def command(name: str, as_json: bool, agent_id: str | None) -> int:
    """Show a memory, conversation or message and where it comes from.

    ID is a memory's id, a session id or key, the number of a conversation, a message's id, the path or token of a file,
    or `last`; the beginning is enough where it is unique. The lineage goes down to the line of the agent's transcript.
    Looking is no use: a memory is used when an agent cites it, or you call it right.
    """
    with memory(agent_id) as opened:
        shown = opened.show(name, author(opened).project)
    if as_json:
        lineage = {
            "revisions": [asdict(each) for each in shown.revisions],
            "conversations": [asdict(each) for each in shown.conversations],
        }
        print_json({"type": shown.type, "id": shown.id, **shown.record, "lineage": lineage})
        return 0
    if shown.type in (Type.CONVERSATION, Type.SESSION):
        for talk in shown.conversations:
            _talk(talk)
            _learnt(each for each in shown.revisions if _states(each, talk))
            echo(f"  {count(talk.messages, 'message')}: recollect open {line(talk.session_key)} --transcript")
        return 0
    _title(shown)
    for talk in shown.conversations:
        _talk(talk)
        for entry in talk.entries:
            _entry(entry)
    return 0


def _title(shown: Shown) -> None:
    echo(f"{shown.type} {line(shown.id)}")
    if shown.type is not Type.MEMORY:
        _learnt(shown.revisions)
        return
    for each in shown.revisions:
        held = "called wrong" if shown.record["called_wrong"] else "holds now"
        held = "retired" if shown.record["retired"] else held
        mark = (held if each.current else "superseded") + (", pinned" if each.pinned else "")
        told = f"{_HANDS[Hand(each.hand)]}, {_TRUST[Trust(each.trust)]}"
        echo(f"  r{each.revision} {day_and_time(each.valid_from)}  {_kind(each)} ({mark}), {told}")
        echo(f"     {shortened(each.text, _LONGEST)}")
        if each.occasions:
            echo(f"     matters when: {shortened(joined(each.occasions), _LONGEST)}")
    record = shown.record
    if record["user"]:
        echo(f"  belongs to the user {line(record['user'])} of a chat")
    used = f", used {count(record['uses'], 'time')}" if record["uses"] else ""
    echo(f"  first seen {day_and_time(record['created_at'])}{used}")
    if retired := record["retired"]:
        echo(f"  retired on {retired['at'][:10]}: {shortened(retired['why'], _LONGEST)}")
    if record["verdict"]:
        echo(f"  {_verdict(record['verdict'], record['called_wrong'])}")


def _verdict(told: Mapping[str, Any], stands: bool) -> str:
    """What a person thought of it; of which revision, where that is not how it is any more."""
    word = "right" if told["opinion"] == "ok" else "wrong"
    which = "" if stands or told["opinion"] == "ok" else f"r{told['revision']} was " if told["revision"] else "was "
    why = f": {shortened(told['text'], _LONGEST)}" if told["text"] else ""
    return f"{which}called {word} on {told['at'][:10]}{why}"


def _kind(each: Revision) -> str:
    severity = "" if each.severity == "none" else f", {each.severity}"
    return f"{each.kind}{severity}, {each.scope}" + (f" {line(project_name(each.scope_id))}" if each.scope_id else "")


def _learnt(revisions: Iterable[Revision]) -> None:
    for each in revisions:
        echo(f"  {each.id}-r{each.revision}  {_kind(each)}: {shortened(each.text, _LONGEST)}")


def _states(revision: Revision, talk: Talk) -> bool:
    return any(each["session_key"] == talk.session_key for each in revision.sources)


def _talk(talk: Talk) -> None:
    times = f"{day_and_time(talk.first_message_at)} to {day_and_time(talk.last_message_at)}"
    echo(f"conversation {line(talk.session_key)}")
    echo(f"  {times}, {talk.source}, {line(project_name(talk.project_id) or talk.project)}, {talk.status}")
    if talk.user:
        echo(f"  of the user {line(talk.user)} of a chat")
    if talk.sentence:
        echo(f"  {shortened(talk.sentence, _LONGEST)}")
    if talk.left:
        echo(f"  left: {shortened(talk.left, _LONGEST)}")
    for file in talk.files:
        echo(f"  {file.kind:<10} {file.path}" + ("" if file.current else " (superseded)"))


def _entry(entry: Said) -> None:
    echo(f"  {entry.role} {day_and_time(entry.timestamp)} {line(entry.uuid)}")
    echo(f"     {shortened(entry.text, _LONGEST)}")
    if entry.path:
        echo(f"     {entry.path}:{entry.line}")
    at = f":{entry.origin.line}" if entry.origin.line else ""
    echo(f"     {line(entry.origin.file)}{at} (byte {entry.origin.offset:,})")
