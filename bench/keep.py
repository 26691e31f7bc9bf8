"""What is kept of real sessions, held against what readers would have kept.

`labels/keep.jsonl` says what two readers, who had no part in the software, would keep of each conversation, by ids of
messages; `labels/authors.jsonl` who wrote the paragraphs of messages; `answers/` what a strong model answered to the
rendered prompts, recorded once; `labels/verdicts.jsonl` how readers judged the lines, not knowing whose they were. The
sessions themselves are not here. The whole path runs: ingest into a home of its own, both strategies, grounding, trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from recollect import open_memory
from recollect.authors import judged
from recollect.extract import prompt
from recollect.extract.load import load
from recollect.extract.model import extraction
from recollect.extract.offline.strategy import told
from recollect.extract.schema import ExtractionOut
from recollect.extract.values import Extraction, Transcript, left_of
from recollect.redact import redact
from recollect.text import estimate_tokens
from recollect.types import STRICT, Author, Message

WHERE = (
    "The sessions are those that entireio/cli (one developer's), PackmindHub/context-evaluator and FSM1/cipher-box"
    " published with their repositories in January to March 2026; a folder with their .jsonl files is enough."
)
_HERE = Path(__file__).parent
_OFFLINE, _MODEL = "without a model", "a strong model"


@dataclass(slots=True)
class Tally:
    """Of one strategy in one project."""

    conversations: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)  # worth | half | junk | unjudged
    ungrounded: int = 0
    binds: Counter[bool] = field(default_factory=Counter)
    refs: Counter[str] = field(default_factory=Counter)  # of value 2 and 3: held | touched | missed
    done: Counter[bool] = field(default_factory=Counter)
    left: Counter[bool] = field(default_factory=Counter)


def run(sessions: Path, read: str | None) -> int:
    labels = {(each["session_key"], each["reader"]): each for each in _lines("labels/keep.jsonl")}
    verdicts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in _lines("labels/verdicts.jsonl"):
        verdicts[each["session_key"]].append(each)
    answers = {
        each["session_key"]: each for path in sorted((_HERE / "answers").glob("*.jsonl")) for each in _read(path)
    }
    found = {key: transcript for key, transcript in _transcripts(sessions) if (key, "first") in labels}
    missing = len({key for key, _ in labels}) - len(found)
    if missing:
        print(f"{missing} labelled conversations are not in {sessions}; the figures are without them.", file=sys.stderr)
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    tokens: list[tuple[int, int]] = []
    stale = 0
    for key, transcript in found.items():
        label = labels[key, "first"]
        made = {_OFFLINE: told(transcript.messages, label["project"])}
        tokens.append(_tokens(transcript))
        if answer := answers.get(key):
            stale += answer["prompt"] != _digest(rendered(transcript))
            made[_MODEL] = recorded(answer["answer"], transcript)
        for strategy, extraction_ in made.items():
            _count(tallies[strategy, label["project"]], extraction_, label, verdicts[key], with_refs=strategy == _MODEL)
            if read == label["project"]:
                _print(key, strategy, extraction_, label)
    _report(tallies, stale, len(answers))
    _report_tokens(tokens)
    _report_agreement(labels)
    _report_authors(sessions)
    return 0


def rendered(transcript: Transcript) -> str:
    """The prompt of a whole conversation, as the model gets it where nothing is remembered yet."""
    messages = [each.rewritten(redact) for each in transcript.messages]
    return prompt.load(prompt.EXTRACT) + "\n\n" + prompt.transcript(messages, range(1, len(messages) + 1))


def recorded(answer: dict[str, Any], transcript: Transcript) -> Extraction:
    """What becomes of an answer whose quotes are recorded as (message id, from, to)."""
    number = {each.uuid: n for n, each in enumerate(transcript.messages, 1)}
    text = {each.uuid: each.text for each in transcript.messages}
    memories = [
        {
            **memory,
            "evidence": [
                {"message": number[uuid], "quote": text[uuid][start:end]}
                for uuid, start, end in memory["evidence"]
                if uuid in number
            ],
        }
        for memory in answer["memories"]
    ]
    out = ExtractionOut.model_validate({**answer, "memories": memories})
    return extraction(out, transcript.messages, (), 1)


def _count(
    tally: Tally, made: Extraction, label: dict[str, Any], judged_: Sequence[Mapping[str, Any]], *, with_refs: bool
) -> None:
    tally.conversations += 1
    tally.ungrounded += made.ungrounded
    lines = {digest: verdict for each in judged_ for digest, verdict in each["lines"].items()}
    binds = {digest: verdict for each in judged_ for digest, verdict in each["binds"].items()}
    outcomes = {digest: verdict for each in judged_ for digest, verdict in each["outcomes"].items()}
    for statement in made.statements:
        digest = _digest(statement.text)
        tally.verdicts[lines.get(digest, "unjudged")] += 1
        if statement.severity in STRICT and digest in binds:
            tally.binds[binds[digest]] += 1
    if with_refs and judged_:
        for statement, verdict in zip(label["statements"], judged_[-1]["refs"], strict=False):
            if statement["value"] >= 2:
                tally.refs[verdict] += 1
    if verdict := outcomes.get(_digest("\n".join(left_of(made.rollout_summary)))):
        tally.done[verdict[0]] += 1
        tally.left[verdict[1]] += 1


def _report(tallies: Mapping[tuple[str, str], Tally], stale: int, of: int) -> None:
    columns = (
        "strategy",
        "project",
        "of",
        "kept",
        "worth",
        "half",
        "junk",
        "unjudged",
        "held",
        "binding",
        "done",
        "left",
    )
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for (strategy, project), each in sorted(tallies.items()):
        kept = sum(each.verdicts.values())
        row = [strategy, project, each.conversations, kept]
        row += [_share(each.verdicts[name], kept) for name in ("worth", "half", "junk")]
        row += [each.verdicts["unjudged"], _share(each.refs["held"], sum(each.refs.values()))]
        row += [_share(each.binds[True], sum(each.binds.values()))]
        row += [_share(counted[True], sum(counted.values())) for counted in (each.done, each.left)]
        print("| " + " | ".join(map(str, row)) + " |")
    print(
        f"\nheld: of the readers' statements of value 2 and 3. {stale} of {of} recorded answers are to another prompt."
    )
    dropped = sum(each.ungrounded for each in tallies.values())
    print(f"{dropped} lines of the model were dropped: nothing that they quote may say it.")


def _share(number: int, of: int) -> str:
    return f"{number} ({number / of:.0%})" if of else "–"


def _report_tokens(tokens: Sequence[tuple[int, int]]) -> None:
    print("\n| tokens of a conversation | p50 | p95 |\n| --- | --- | --- |")
    for name, values in zip(("its messages", "its prompt"), zip(*tokens, strict=True), strict=True):
        cuts = quantiles(values, n=20)
        print(f"| {name} | {cuts[9]:,.0f} | {cuts[18]:,.0f} |")


def _tokens(transcript: Transcript) -> tuple[int, int]:
    return sum(estimate_tokens(each.text) for each in transcript.messages), estimate_tokens(rendered(transcript))


def _report_agreement(labels: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """How far two readers agree, by the messages that their statements rest on."""
    counted: Counter[bool] = Counter()
    both = [key for key, reader in labels if reader == "second"]
    for key in both:
        one, other = (labels[key, reader]["statements"] for reader in ("first", "second"))
        for mine, theirs in ((one, other), (other, one)):
            among = {uuid for each in theirs for uuid in each["evidence"]}
            for each in mine:
                if each["value"] >= 2:
                    counted[not among.isdisjoint(each["evidence"])] += 1
    print(
        f"\nTwo readers of {len(both)} conversations: {_share(counted[True], sum(counted.values()))} of the statements"
    )
    print("of value 2 and 3 of one rest on messages that a statement of the other rests on, too.")


def _report_authors(sessions: Path) -> None:
    """Paragraphs that readers labelled, against what the form of the message tells."""
    counted: Counter[tuple[str, str]] = Counter()
    for text, known in labelled_prompts(sessions):
        counted.update(_compared(text, known))
    print("\n| written by | recall | taken for typed |\n| --- | --- | --- |")
    for author in ("typed", "pasted"):
        of = sum(number for (known, _), number in counted.items() if known == author)
        typed = counted[author, "typed"]
        print(f"| {author}, {of} paragraphs | {_share(counted[author, author], of)} | {_share(typed, of)} |")


def labelled_prompts(sessions: Path) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Prompts of real sessions; where the paragraphs of each begin, and by whom a reader says that they are."""
    wanted = {each["message"]: each for each in _lines("labels/authors.jsonl") if each["kind"] == "text"}
    for path in sorted(sessions.rglob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            record = json.loads(line) if b'"user"' in line else {}
            if (label := wanted.pop(str(record.get("uuid")), None)) and (text := _text(record)):
                starts = [start for start, _ in _paragraphs(text)]
                known: dict[int, str] = {}
                for author, first, last, *_ in label["authors"]:
                    known |= dict.fromkeys(range(first, last + 1), author)
                yield text, [(start, known.get(number, "")) for number, start in enumerate(starts)]


def _text(record: Mapping[str, Any]) -> str:
    """A message that is all words of a person's prompt; empty for others: structure tells who wrote those."""
    content = (record.get("message") or {}).get("content")
    texts = (
        [content] if isinstance(content, str) else [each.get("text", "") for each in content or [] if "text" in each]
    )
    text = "\n\n".join(each for each in texts if each.strip())
    return "" if text.startswith(("<", "Caveat", "Implement the", "Base directory", "This session")) else text


def _compared(text: str, known: Sequence[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    at = 0
    for author, length in judged(text):
        begin = at + len(text[at : at + length]) - len(text[at : at + length].lstrip())
        by = next((by for start, by in reversed(known) if start <= begin), "")
        at += length
        if by in (Author.TYPED, Author.PASTED):
            yield by, str(author)


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """As the readers had them: parted by blank lines, a fence in one piece."""
    begin, at, fenced = -1, 0, False
    for line in text.split("\n"):
        if line.strip().startswith("```"):
            fenced = not fenced
        if not line.strip() and not fenced:
            if begin >= 0:
                yield begin, text[begin:at]
            begin = -1
        elif begin < 0:
            begin = at
        at += len(line) + 1
    if begin >= 0:
        yield begin, text[begin:]


def _print(key: str, strategy: str, made: Extraction, label: Mapping[str, Any]) -> None:
    done, left = left_of(made.rollout_summary)
    print(f"\n## {key}, {strategy}\n\nDone: {done}\nLeft: {left}")
    for each in made.statements:
        print(f"- {each.kind}, {each.severity}, {each.trust}: {each.text}")
    for each in label["statements"]:
        print(f"  (a reader, value {each['value']}: {each['text']})")


def _transcripts(sessions: Path) -> Iterator[tuple[str, Transcript]]:
    with tempfile.TemporaryDirectory() as home:
        os.environ["RECOLLECT_HOME"] = home
        memory = open_memory()
        memory.ingest(folder=sessions)
        for talk in memory.conversations():
            transcript = load(memory.database, memory.owner, [talk])
            yield talk.session_key, Transcript(transcript.conversation, list[Message](transcript.messages))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _lines(name: str) -> list[dict[str, Any]]:
    return _read(_HERE / name)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
