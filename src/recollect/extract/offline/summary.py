"""Prose about a conversation: what was asked, what came of it, what it touched, what is open. Pure and bounded."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.extract.offline.proposals import is_proposal, refused
from recollect.extract.offline.statements import is_request
from recollect.extract.offline.units import TOOL, Unit, plan_title, units
from recollect.text import content_words, ended, unique, words
from recollect.types import MemoryKind, Message, Role, Statement

_PATH = re.compile(r"^[\w@.~/\\ -]*[\w-]+\.\w{1,8}$|^/[\w./-]+$")
_CHATTER = re.compile(
    r"^(?:let me|i'?ll|i will|i am going|i'?m going|now (?:i|let)|first,? (?:i|let)|next,? (?:i|let)|looking|"
    r"checking|running|reading|sure|of course|great|perfect|good|you'?re (?:right|welcome)|thanks|thank you|"
    r"understood|got it|okay|ok\b|done\b|sorry|hello|hi\b|here(?:'s| is| are)|would you|do you|shall i|should i|"
    r"want me|is there|what would|how (?:can|may) i|feel free|if you)",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"\?|\b(?:please|can you|could you|i want|i need|i'd like|let'?s|add|fix|make|write|create|"
    r"implement|build|help|find|check|look|explain|review|refactor|update|change|plan|draft|design|"
    r"investigate|debug|test|set up)\b",
    re.IGNORECASE,
)
_OBJECTS = re.compile(r"(?:(?:hm+|oh|ah|ok)[,.!]* )*(?:no|nope|nah|wait|stop|undo|nein|non)\b", re.IGNORECASE)
_TITLES = (
    (MemoryKind.CONSTRAINT, "Rules and limits"),
    (MemoryKind.PREFERENCE, "Preferences"),
    (MemoryKind.DECISION, "Decisions"),
    (MemoryKind.FACT, "Facts"),
    (MemoryKind.PROCEDURE, "How it is done"),
    (MemoryKind.LESSON, "Lessons"),
    (MemoryKind.OPEN_THREAD, "Open ends"),
)

_LEADS = {MemoryKind.DECISION: "decided", MemoryKind.LESSON: "learnt"}  # whoever said it


@dataclass(frozen=True, slots=True)
class Activity:
    """What the tool lines tell."""

    changed: tuple[str, ...] = ()  # files, most often touched first
    commands: tuple[str, ...] = ()  # that worked, most often used first
    failed: tuple[str, ...] = ()  # that never worked in the end
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    asks: tuple[str, ...] = ()  # in order
    outcome: tuple[str, ...] = ()  # the assistant's most telling sentences, but for proposals that the user turned down
    activity: Activity = field(default_factory=Activity)


def story(messages: Sequence[Message]) -> Story:
    found = units(messages)
    declined = refused(messages)
    said = [unit for unit in found if unit.message not in declined or not is_proposal(unit.text)]
    plans = [
        f"Implement the plan: {title}"
        for each in messages
        if each.role is Role.USER and (title := plan_title(each.text))
    ]
    return Story(tuple(_asks(found, plans)), tuple(_outcome(said)), activity(messages))


def activity(messages: Sequence[Message]) -> Activity:
    changed: Counter[str] = Counter()
    worked: Counter[str] = Counter()
    failed: dict[str, bool] = {}
    calls = 0
    for message in messages:
        if message.role is not Role.ASSISTANT:
            continue
        for tool, target, failure in TOOL.findall(message.text):
            calls += 1
            target = target.removesuffix(" (ok)").strip()
            if _PATH.match(target) and re.search(r"edit|write|create|patch|update|notebook", tool, re.IGNORECASE):
                changed[target] += 1
            elif re.search(r"bash|exec|shell|command|terminal|run", tool, re.IGNORECASE) and len(target) <= 120:
                failed[target] = bool(failure)
                worked[target] += not failure
    commands = [command for command, count in worked.most_common() if count and _is_telling(command)]
    broken = [command for command, still in failed.items() if still and not worked[command] and _is_telling(command)]
    return Activity(tuple(path for path, _ in changed.most_common(8)), tuple(commands[:6]), tuple(broken[:3]), calls)


def _is_telling(command: str) -> bool:
    """Looking around tells nothing; building, testing and running does."""
    first = re.sub(r"^(?:cd \S+ && |sudo |env |time )+", "", command).split(" ", 1)[0].rsplit("/", 1)[-1]
    return first not in {
        *("ls", "cat", "cd", "pwd", "echo", "head", "tail", "find", "grep", "rg", "sed", "awk", "wc", "which", "mkdir"),
        *("rm", "cp", "mv", "touch", "sleep", "true", "tree", "stat", "file", "ps", "kill", "export", "source", "less"),
    } and not command.startswith(("git status", "git diff", "git log", "git show"))


def _asks(found: Sequence[Unit], plans: Sequence[str]) -> list[str]:
    """What the user wanted: the plans that were handed over, the first real sentence of the user, and later requests.
    What objects to the agent's last step tells little of it."""
    asks = [_clip(plan, 200) for plan in plans]
    for unit in found:
        text = unit.text.rstrip(" :")
        if unit.role is not Role.USER or len(content_words(text)) < 2 or _OBJECTS.match(text):
            continue
        if len(words(text)) >= 4 or (not asks and is_request(text)):
            if not asks or _WANTED.search(text):
                asks.append(_clip(text, 200))
    return unique(asks, 0.6)[:5]


def _outcome(found: Sequence[Unit]) -> list[str]:
    """The assistant's sentences nearest to what the whole conversation is about, later ones first among equals."""
    said = [
        unit for unit in found if unit.role is Role.ASSISTANT and unit.form != "heading" and _is_substance(unit.text)
    ]
    if not said:
        return []
    bags = [content_words(unit.text) for unit in said]
    spread = Counter(word for unit in found for word in content_words(unit.text))
    last = said[-1].message
    scored = []
    for unit, bag in zip(said, bags, strict=True):
        weight = math.fsum(math.log1p(spread[word]) for word in bag) / (len(bag) + 6)
        scored.append((weight + (0.6 if unit.message == last else 0.3 * unit.message / max(last, 1)), unit))
    best = sorted(scored, key=lambda pair: (-pair[0], pair[1].message, pair[1].position))[:12]
    chosen = unique([_clip(unit.text, 240) for _, unit in best], 0.5)[:4]
    order = {_clip(unit.text, 240): (unit.message, unit.position) for unit in said}
    return sorted(chosen, key=lambda text: order[text])


def _is_substance(text: str) -> bool:
    return 5 <= len(words(text)) <= 60 and not _CHATTER.match(text) and not text.rstrip().endswith(("?", ":"))


def _clip(text: str, most: int) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def _sentence(text: str) -> str:
    """With a capital and a full stop; a name like `test_refund` stays as it is written."""
    plain = re.match(r"[^\W\d_]+(?=[\s,;:.!?'’]|$)", text)
    return ended(text[:1].upper() + text[1:] if plain else text)


def raw_memory(told: Story, statements: Sequence[Statement]) -> str:
    """Everything in detail, in sections; what is empty is left out."""
    sections = [("What was asked", [_sentence(ask) for ask in told.asks])]
    sections += [(title, [each.text for each in statements if each.kind is kind]) for kind, title in _TITLES]
    sections.append(("What came of it", [_sentence(text) for text in told.outcome]))
    touched = [f"`{path}`" for path in told.activity.changed]
    sections.append(("Files changed", [", ".join(touched)] if touched else []))
    sections.append(("Commands that worked", [f"`{command}`" for command in told.activity.commands]))
    sections.append(("Commands that kept failing", [f"`{command}`" for command in told.activity.failed]))
    return "\n\n".join(
        f"### {title}\n\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections if lines
    )


def rollout_summary(told: Story, statements: Sequence[Statement]) -> str:
    """A paragraph."""
    pieces = [f"{_verb(told).capitalize()}: {_sentence(told.asks[0])}"] if told.asks else []
    kinds = (MemoryKind.DECISION, MemoryKind.LESSON, MemoryKind.CONSTRAINT, MemoryKind.PREFERENCE)
    telling = [each.text for kind in kinds for each in statements if each.kind is kind][:3]
    pieces += [_clip(text, 200) for text in telling]
    pieces += [_sentence(text) for text in told.outcome[-2:] if text not in telling]
    if told.activity.changed:
        pieces.append(f"Changed {', '.join(f'`{path}`' for path in told.activity.changed[:4])}.")
    pieces += [f"Open: {_clip(each.text, 160)}" for each in statements if each.kind is MemoryKind.OPEN_THREAD][:2]
    return " ".join(unique(pieces, 0.75))


def memory_sentence(told: Story, statements: Sequence[Statement], project: str) -> str:
    """One sentence that tells this conversation from the others."""
    place = f" in {project}" if project else ""
    subject = told.asks[0] if told.asks else (statements[0].text if statements else "")
    subject = _clip(subject.rstrip(".!?… "), 140)
    results = {each.text: _LEADS[each.kind] for each in statements if each.kind in _LEADS}
    _, *others = unique([subject, *list(results)[:1], *told.outcome[-1:]])
    if not others and told.asks and told.asks[0].endswith("?"):
        return f"The user {_verb(told)}{place}: {subject}?"
    tail = f"; {results.get(others[0], 'the agent')}: {_clip(others[0].rstrip('.!?… '), 140)}" if others else ""
    return f"The user {_verb(told)}{place}: {subject}{tail}." if subject else ""


def _verb(told: Story) -> str:
    return "asked" if told.asks and is_request(told.asks[0]) else "said"


def slug(told: Story, statements: Sequence[Statement]) -> str:
    """A few words for a file name."""
    text = told.asks[0] if told.asks else " ".join(each.text for each in statements[:1])
    telling = [word for word in words(text) if content_words(word) and re.fullmatch(r"[^\W_][\w-]{1,20}", word)]
    return "-".join(dict.fromkeys(telling[:6]))[:60].strip("-")
