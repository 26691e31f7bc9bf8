"""Does what is remembered reach the agent, and nothing else?

`data/know/` holds projects that people wrote and labelled before anything was run: memories, the last sessions, and
prompts with the memories that each of them needs (`needs`) and those that would also be right (`fits`); half of the
prompts need nothing. Each prompt is a session of its own: the agent starts, the person says what stands before the
prompt, and then the prompt; hooks answer as they answer a real agent. A memory is visible if the agent read it whole.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from recollect import open_memory
from recollect.app import Memory
from recollect.artifacts.names import Kind
from recollect.config import load
from recollect.extract.values import outcome
from recollect.models.embed.catalog import folder
from recollect.store import artifacts, memories, stage1
from recollect.surfaces.hooks.answer import Hooks
from recollect.text import estimate_tokens
from recollect.types import MemoryKind, Remembered, Scope, Severity, Stage1, Trust, timestamp

DATA = Path(__file__).parent / "data" / "know"
NOW = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
_KINDS = {"rule": "constraint", "trap": "lesson", "task": "open_thread"}  # as people call them
_SEVERITIES = {"info": "none", "should": "prefer"}
_BEGINS = 40  # letters by which a line is told from others, though it was cut


@dataclass(slots=True)
class Tally:
    """Of the prompts of one project."""

    memories: int = 0
    prompts: int = 0
    needed: int = 0
    visible: int = 0  # of those needed, in the briefing or a block
    by_briefing: int = 0
    by_block: int = 0
    without_briefing: int = 0  # visible where no briefing was told
    lowered: int = 0  # prompts of which less was visible with a briefing than without one
    lines: int = 0  # told with a prompt
    right: int = 0
    quiet: list[bool] = field(default_factory=list)  # prompts that need nothing: was nothing told?
    outcomes: list[bool] = field(default_factory=list)  # prompts that ask where one was: are the last words visible?
    cut: int = 0  # lines of the briefing that are not whole
    tokens_of_briefing: int = 0
    tokens_of_blocks: int = 0


def run(data: Path, embedder: str, show: str) -> int:
    tallies = {}
    for path in sorted(data.glob("*.json")):
        project = json.loads(path.read_text(encoding="utf-8"))
        with _opened(project, embedder) as (memory, cwd):
            tallies[project["project"]] = _measured(memory, cwd, project, show == project["project"])
            served = memory.vectors.serving()
    print(f"embedder: {served.name if served else 'none'}\n")
    print(_table(tallies))
    return 0


@contextmanager
def _opened(project: Mapping[str, Any], embedder: str) -> Iterator[tuple[Memory, Path]]:
    """A home that holds the project's memories and the outcomes of its last sessions, and a folder of the project."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        cwd = Path(name, "code", project["project"])
        cwd.mkdir(parents=True)
        with open_memory(
            Path(name, "home"), clock=lambda: NOW, models_folder=str(folder(load())), embedder=embedder
        ) as memory:
            project_id = memory.intake.project_of(str(cwd)) or ""
            rows = sorted((_remembered(each, project_id) for each in project["memories"]), key=lambda row: row.sources)
            by_talk = {key: list(own) for key, own in groupby(rows, key=lambda row: row.sources[0][0])}
            with memory.database.write() as tx:
                memories.replace_sessions(tx, memory.owner, by_talk)
                for number, each in enumerate(project["sessions"]):
                    _remember_outcome(memory, tx, each, number, project["project"], project_id)
            memory.vectors.update()
            yield memory, cwd


def _remembered(row: Mapping[str, Any], project_id: str) -> Remembered:
    at = timestamp(NOW - timedelta(days=row["days_ago"]))
    return Remembered(
        sha256(row["text"].encode()).hexdigest()[:16],
        1,
        MemoryKind(_KINDS.get(row["kind"], row["kind"])),
        row["text"],
        Severity(_SEVERITIES.get(row["severity"], row["severity"])),
        Scope.PROJECT,
        project_id,
        at,
        at,
        ((f"talk-{row['days_ago']}@{at}", row["id"]),),
        trust=Trust(row["trust"]),
    )


def _remember_outcome(
    memory: Memory, tx: Any, told: Mapping[str, Any], number: int, project: str, project_id: str
) -> None:
    at = timestamp(NOW - timedelta(days=told["days_ago"], minutes=number))
    session = f"{number}-session"
    key = f"{session}@{at}"
    said = outcome(told["done"], told["left"])
    stage1.save(
        tx,
        memory.owner,
        [
            Stage1(
                key,
                "claude-code",
                session,
                project,
                project_id,
                at,
                at,
                2,
                "",
                at,
                "bench",
                1,
                "",
                said,
                "",
                told["title"],
            )
        ],
    )
    path = f"{session}.md"
    row = artifacts.Indexed(
        path,
        "",
        Kind.SUMMARY,
        session,
        key,
        session,
        "claude-code",
        project,
        project_id,
        at,
        at,
        "",
        told["title"],
        "",
        1,
        "",
    )
    artifacts.replace_sessions(tx, memory.owner, [key], [row])


def _measured(memory: Memory, cwd: Path, project: Mapping[str, Any], show: bool) -> Tally:
    texts = {each["id"]: _letters(each["text"]) for each in project["memories"]}
    tally = Tally(memories=len(texts), prompts=len(project["prompts"]))
    hooks = Hooks(memory, lambda work: None)
    last = min(project["sessions"], key=lambda each: each["days_ago"])
    for number, prompt in enumerate(project["prompts"]):
        agent = _Agent(hooks, memory, cwd, f"s{number}")
        briefing = agent.start()
        blocks = [*agent.say(prompt.get("before", ()), number), agent.prompt(prompt["text"])]
        other = _Agent(hooks, memory, cwd, f"t{number}")
        bare = [*other.say(prompt.get("before", ()), number + 1000), other.prompt(prompt["text"])]
        seen, told = _letters(briefing), _letters(" ".join(blocks))
        needs, right = prompt["needs"], {*prompt["needs"], *prompt["fits"]}
        lines = [name for name, text in texts.items() if text[:_BEGINS] in _letters(blocks[-1])]
        in_briefing = {name for name in needs if texts[name] in seen}
        in_blocks = {name for name in needs if texts[name] in told} - in_briefing
        alone = {name for name in needs if texts[name] in _letters(" ".join(bare))}
        tally.needed += len(needs)
        tally.by_briefing += len(in_briefing)
        tally.by_block += len(in_blocks)
        tally.visible += len(in_briefing | in_blocks)
        tally.without_briefing += len(alone)
        tally.lowered += not alone <= in_briefing | in_blocks
        if not prompt.get("sessions"):  # open threads are right there, too
            tally.lines += len(lines)
            tally.right += len(right & {*lines})
        tally.tokens_of_blocks += estimate_tokens(blocks[-1])
        if prompt.get("sessions"):
            tally.outcomes.append(_letters(last["left"] or last["done"])[: 2 * _BEGINS] in seen + told)
        elif not right:
            tally.quiet.append(not blocks[-1])
        if not number:
            begun = [text for text in texts.values() if text[:_BEGINS] in seen]
            tally.cut = sum(text not in seen for text in begun)
            tally.tokens_of_briefing = estimate_tokens(briefing)
            if show:
                print(briefing)
        if show:
            _show(prompt, texts, project, in_briefing | in_blocks, [] if prompt.get("sessions") else lines)
    hooks.close()
    return tally


class _Agent:
    """A session of an agent, as its hooks see it."""

    def __init__(self, hooks: Hooks, memory: Memory, cwd: Path, session: str) -> None:
        self._hooks, self._memory, self._cwd = hooks, memory, cwd
        self._event = {"session_id": f"{session}-{cwd.name}", "cwd": str(cwd)}

    def start(self) -> str:
        return self._told("SessionStart", source="startup")

    def prompt(self, text: str) -> str:
        return self._told("UserPromptSubmit", prompt=text)

    def say(self, before: Sequence[Mapping[str, str]], number: int) -> list[str]:
        """What was said already, with what the agent was told then; the transcript is read up to there."""
        if not before:
            return []
        file = self._cwd.parent.parent / "transcripts" / f"{self._event['session_id']}.jsonl"
        file.parent.mkdir(exist_ok=True)
        told = []
        for turn, each in enumerate(before):
            if each["role"] == "user":
                told.append(self.prompt(each["text"]))
            at = timestamp(NOW - timedelta(minutes=30 - turn))
            record = {
                "type": each["role"],
                "uuid": f"{number}-{turn}",
                "sessionId": self._event["session_id"],
                "timestamp": at,
                "cwd": str(self._cwd),
                "message": {"role": each["role"], "content": each["text"]},
            }
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")
            self._memory.ingest(file=file, source="claude-code")
        return told

    def _told(self, name: str, **more: str) -> str:
        answer = self._hooks.answer([name, "claude-code"], json.dumps({**self._event, **more}).encode())
        return json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else ""


def _letters(text: str) -> str:
    """What can be compared, however it was escaped."""
    return re.sub(r"[\W_]+", "", text).lower()


def _show(
    prompt: Mapping[str, Any],
    texts: Mapping[str, str],
    project: Mapping[str, Any],
    visible: set[str],
    lines: Sequence[str],
) -> None:
    said = {each["id"]: each["text"] for each in project["memories"]}
    faults = [f"  missing: {said[name]}" for name in prompt["needs"] if name not in visible]
    faults += [f"  wrong: {said[name]}" for name in lines if name not in (*prompt["needs"], *prompt["fits"])]
    if faults:
        print("\n".join([f"> {prompt['text']}", *faults]))


def _table(tallies: Mapping[str, Tally]) -> str:
    columns: dict[str, Callable[[Tally], str]] = {
        "memories": lambda t: str(t.memories),
        "prompts": lambda t: str(t.prompts),
        "needed": lambda t: str(t.needed),
        "visible": lambda t: _share(t.visible, t.needed),
        "by the briefing": lambda t: _share(t.by_briefing, t.needed),
        "by a block": lambda t: _share(t.by_block, t.needed),
        "without a briefing": lambda t: _share(t.without_briefing, t.needed),
        "lowered": lambda t: str(t.lowered),
        "lines": lambda t: str(t.lines),
        "right": lambda t: _share(t.right, t.lines),
        "silent": lambda t: _share(sum(t.quiet), len(t.quiet)),
        "outcomes": lambda t: f"{sum(t.outcomes)} of {len(t.outcomes)}",
        "cut": lambda t: str(t.cut),
        "tokens of the briefing": lambda t: f"{t.tokens_of_briefing:,}",
        "of a block": lambda t: f"{t.tokens_of_blocks / max(t.prompts, 1):.0f}",
    }
    rows = [["project", *columns], ["---"] * (len(columns) + 1)]
    rows += [[name, *(make(tally) for make in columns.values())] for name, tally in tallies.items()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _share(part: int, of: int) -> str:
    return f"{part / of:.2f}" if of else "–"
