"""The prompts of phase 1: files in the package, versioned by their names. A change of wording is a new file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from recollect.text import HIDDEN
from recollect.types import Author, Happened, Message, Remembered

EXTRACT = "extract_v3"
MERGE = "merge_v2"
COMPACTION = "compaction_v1"


@cache
def load(name: str) -> str:
    return resources.files("recollect.extract").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def transcript(messages: Sequence[Message], numbers: Sequence[int]) -> str:
    """The messages as data, each part with its author: whatever they contain, they can neither end the block nor look
    like another message or part."""
    told = (
        f"[m{number}] {each.timestamp[:16]}\n{_parts(each)}" for number, each in zip(numbers, messages, strict=True)
    )
    return "<transcript>\n" + "\n\n".join(told) + "\n</transcript>"


def known(memories: Sequence[Remembered], rules: str) -> str:
    """What the reader of the conversation knows already; empty if that is nothing."""
    lines = [
        f"{number}. ({each.kind}) {' '.join(_harmless(each.text).split())}" for number, each in enumerate(memories, 1)
    ]
    blocks = [f"<rules>\n{_harmless(rules)}\n</rules>"] if rules else []
    blocks += ["<memories>\n" + "\n".join(lines) + "\n</memories>"] if lines else []
    return "".join(f"{each}\n\n" for each in blocks)


def _parts(message: Message) -> str:
    told = [f"event: {_NAMES[each.kind]}{_quote(each.text)}" for each in message.events]
    for part in message.parts:
        text = part.text.strip()
        if part.author is Author.TOOL:
            text = "; ".join(_clipped(_harmless(line)) for line in text.split("\n"))
        elif part.author in (Author.PASTED, Author.CLIENT):
            text = _middle_out(text)
        told += [f"{_AUTHORS[part.author]}: {_harmless(text)}"] if text else []
    return "\n".join(told)


def _quote(text: str) -> str:
    return f": {_clipped(' '.join(_harmless(text).split()), 300)}" if text else ""


def _clipped(line: str, most: int = 110) -> str:
    return line if len(line) <= most else line[: most - 1] + "…"


def _middle_out(text: str) -> str:
    """The beginning and the end of what others wrote: where it is long, it is seldom read to say what matters."""
    return text if len(text) <= _LONGEST_PASTE else f"{text[: _LONGEST_PASTE - 600]}\n[…]\n{text[-500:]}"


def compaction(text: str) -> str:
    return f"<transcript>\n{_harmless(text)}\n</transcript>"


def parts(answers: Sequence[str]) -> str:
    return "<parts>\n" + "\n".join(_harmless(answer) for answer in answers) + "\n</parts>"


_TAG = re.compile(r"<(/?)(?=(?:transcript|parts|rules|memories)\b)", re.IGNORECASE)
_LONGEST_PASTE = 6000  # characters
_AUTHORS = {
    Author.TYPED: "person",
    Author.CHOSEN: "chosen",
    Author.PASTED: "pasted",
    Author.CLIENT: "client",
    Author.AGENT: "agent",
    Author.TOOL: "tools",
}
_NAMES = {
    Happened.ANSWER: "the person answered",
    Happened.REJECTED: "the person refused the call",
    Happened.INTERRUPT: "the person interrupted",
    Happened.PLAN: "the person approved the plan",
    Happened.TASK: "task open",
    Happened.DONE: "task done",
    Happened.COMMIT: "commit",
    Happened.PULL_REQUEST: "pull request opened",
    Happened.RULES: "file of rules edited",
    Happened.TITLE: "title",
}
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_HEAD = re.compile(  # wherever a reader may see a line begin
    rf"(?:^|(?<=[{_BREAKS}]))((?:[^\S{_BREAKS}]|[{HIDDEN}])*)"
    rf"(?:\[m(?=\d+\])|({'|'.join([*_AUTHORS.values(), 'event'])}):)",
    re.IGNORECASE,
)


def _harmless(text: str) -> str:
    return _HEAD.sub(lambda found: f"{found[1]}{f'{found[2]} :' if found[2] else '[ m'}", _TAG.sub(r"‹\1", text))
