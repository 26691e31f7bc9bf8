"""What a session says by its structure: what was done, what was left, and what the person laid down or chose. Pure.

Events and authors come first (`Message.events`, `Message.parts`); of prose only the agent's reports are read, and what
the person typed to be remembered. No model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.extract.left import left
from recollect.extract.session import Session, Turn, clip, is_status, length, names
from recollect.standing import is_rule, is_standing, to_remember, typed_sentences
from recollect.text import content_words, ended, marks_of, unique, words
from recollect.types import Happened, MemoryKind, Message, Role, Severity, Statement, Trust

_MOST_ASKS = 5
_MOST_REQUESTS = 4
_MOST_TURNS = 5
_MOST_TOLD = 8  # lines of a section
_MOST_COMMITS = 4
_ABOUT_RESULT = re.compile(  # an answer fills the place of its first word, so that both together are a sentence
    r"(?:.*[.,:;] )?(?:for .*, )?(?:how|which|where|what|when)\b", re.IGNORECASE | re.DOTALL
)
_ABOUT_WORK = re.compile(r"\b(?:next|areas?|proceed|discuss|reproduce|this todo|questions)\b", re.IGNORECASE)
_NO_CHOICE = re.compile(
    r"(?:you decide|up to you|next|done|yes\b|no$|ok\b|continue|proceed|work on|skip|both$|"
    r"(?:option|variant|choice|plan)? ?(?:\w|\d+|one|two|three)\b(?:$|[.:;)])|more questions|all of)",
    re.IGNORECASE,
)
_GENERIC = re.compile(r"\b(?:approach|option|direction|design|way|style|format|kind|prefer\w*|best)s?\b", re.IGNORECASE)
_NAMES_THING = re.compile(
    r"\b(?:which|what) (?!(?:of|should|is|are|do|does|would|happens)\b)[^\W\d_]", re.IGNORECASE
)  # one word may answer it: "Which database …?"
_SUBJECT = 2  # words that say what a question is about
_MOST_NOTED = 10
_LONGEST_CHOICE = 500
_MOST_STATED = 2


def outcome(session: Session) -> tuple[str, str]:
    """What was done, and what was left at the end; empty where nothing tells it."""
    turns, commits = session.turns, session.told.commits
    telling = _telling(turns)
    most = 3 if len(telling) == 1 else 2 if len(telling) == 2 else 1
    done = [each for turn in telling if not turn.is_overturned for each in turn.reports(most)]
    done = [each for each in done if not is_status(each)] or done[-1:]
    asked = _asked(turns, telling)
    rest = left(session)
    requested = "; ".join(clip(each.rstrip(".:; "), 120) for each in asked)
    pieces = [f"Asked: {ended(requested)}"] if asked else []
    pieces += [ended(clip(each, 200)) for each in unique(done, 0.6) if clip(each, 40).rstrip("…") not in rest]
    if commits := unique(commits):
        more = f" and {len(commits) - _MOST_COMMITS} more" if len(commits) > _MOST_COMMITS else ""
        pieces.append(f"Committed: {'; '.join(clip(each, 100) for each in commits[-_MOST_COMMITS:])}{more}.")
    pieces += [f"Pull request: {clip(each, 100)}." for each in session.told.requests[-1:]]
    edited = [name for turn in turns for name in turn.edited]
    if edited and not commits:
        pieces.append(f"Edited {names(edited)}.")
    is_work = bool(done or commits or session.told.requests or edited)
    return (" ".join(pieces) if is_work else ""), rest


def _asked(turns: Sequence[Turn], telling: Sequence[Turn]) -> list[str]:
    """What they were asked for, and what the session began with. "Yes, do it" names nothing: what was asked before it
    does."""
    found: list[str] = []
    named = ""
    for turn in turns:
        names_subject = len(marks_of(turn.asked)) > _SUBJECT
        if names_subject and not named:
            found.append(turn.asked)
        named = turn.asked if names_subject else named
        if any(turn is one for one in telling):
            found.append(named)
    return unique(filter(None, found or [turn.asked for turn in turns][:1]), 0.7)[:_MOST_ASKS]


def _telling(turns: Sequence[Turn]) -> list[Turn]:
    """Those that changed something: the last one, and those that edited most, in order. If none did, the last one."""
    changing = [turn for turn in turns if turn.is_change] or [turn for turn in turns if turn.said][-1:]
    most = sorted(changing[:-1], key=lambda turn: -len(set(turn.edited)))[: _MOST_TURNS - 1]
    return [turn for turn in changing if turn is changing[-1] or any(turn is one for one in most)]


def statements(messages: Sequence[Message]) -> list[Statement]:
    """What the person asked to be remembered, the standing rules that they typed, and what they chose when they were
    asked; at most two of each of the last. Nothing of it binds: that it was typed is told by its form alone."""
    noted: list[Statement] = []
    rules: list[Statement] = []
    choices: list[Statement] = []
    for each in messages:
        if each.role is not Role.USER:
            continue
        for sentence in typed_sentences(each):
            count = length(sentence)
            if (asked := to_remember(sentence)) and count >= 5:
                noted.append(_stated(asked, each))
            elif is_rule(sentence) and 4 <= count <= 60:
                rules.append(_stated(sentence, each))
        for event in each.events:
            if event.kind is Happened.ANSWER and (chosen := _choice(event.text)):
                choices.append(Statement(MemoryKind.DECISION, chosen, entries=(each.uuid,), trust=Trust.CHOSEN))
    return [*_newest(noted, _MOST_NOTED), *_newest(rules, _MOST_STATED), *_newest(choices, _MOST_STATED)]


def _newest(found: Sequence[Statement], most: int) -> list[Statement]:
    """The last statements, at most so many; one that repeats another in other words replaces it."""
    told = {each.text: each for each in found}
    kept = unique([*reversed(told)], 0.6)[:most]
    return [each for text, each in told.items() if text in kept]


def _stated(text: str, message: Message) -> Statement:
    text = ended(clip(text[:1].upper() + text[1:], 400))
    kind = MemoryKind.PREFERENCE if is_standing(text) else MemoryKind.FACT
    severity = Severity.PREFER if kind is MemoryKind.PREFERENCE else Severity.NONE
    return Statement(kind, text, severity, entries=(message.uuid,), trust=Trust.SAID)


def _choice(told: str) -> str:
    """A question that names what it is about, with an answer that names what it is to be. Empty for others: a later
    session cannot use "Option A", "Yes", or what chooses among things that nothing names."""
    question, _, answer = (each.strip() for each in told.partition(" → "))
    answer = answer.partition(";")[0].replace("(Recommended)", "").strip()
    about = question.partition("?")[0][-_LONGEST_CHOICE:]
    if not _ABOUT_RESULT.match(about) or _ABOUT_WORK.search(about) or _NO_CHOICE.match(answer):
        return ""
    if "?" in answer or len(told) > _LONGEST_CHOICE:
        return ""
    named = len(content_words(_GENERIC.sub("", about)))
    is_whole = named >= _SUBJECT and len(content_words(answer)) >= (1 if _NAMES_THING.search(about) else 2)
    return f"{question} {ended(answer)}" if is_whole else ""


def requests(session: Session) -> list[str]:
    """What was asked for, in order: the first and the last of many."""
    found = unique([each.asked for each in session.turns if each.asked], 0.7)
    return found if len(found) <= _MOST_REQUESTS else [found[0], *found[1 - _MOST_REQUESTS :]]


def account(session: Session) -> str:
    """The story for who wants more of it: what was asked, answered and refused, and the commits with their reasons.
    Empty where nothing was done."""
    happened = [event for each in session.messages for event in each.events]
    commits, answers, refused = (
        [event.text for event in happened if event.kind is kind]
        for kind in (Happened.COMMIT, Happened.ANSWER, Happened.REJECTED)
    )
    said = [sentence for turn in session.turns for sentence in turn.reports(1)]
    sections = (
        ("What was asked", requests(session)),
        ("What was answered", answers[:_MOST_TOLD]),
        ("What was refused", [each for each in refused if each][:_MOST_TOLD]),
        ("What came of it", unique(said, 0.6)[-_MOST_TOLD:]),
        ("Commits", [clip(each, 500) for each in commits[-_MOST_TOLD:]]),
    )
    if not any(lines for title, lines in sections[1:]):
        return ""
    return "\n\n".join(
        f"### {title}\n\n" + "\n".join(f"- {clip(line, 500)}" for line in lines) for title, lines in sections if lines
    )


def sentence(session: Session, project: str) -> str:
    """One sentence that tells this session from the others."""
    place = f" in {project}" if project else ""
    asked = next(iter(requests(session)), "").rstrip(".!?… ")
    came = next((each for turn in reversed(session.turns) for each in turn.reports(1)), "")
    came = (session.told.commits[-1] if session.told.commits else came).rstrip(".!?… ")
    if not asked:
        return f"The agent worked{place}: {clip(came, 140)}." if came else ""
    return f"The user asked{place}: {clip(asked, 140)}{f'; the agent: {clip(came, 140)}' if came else ''}."


def slug(session: Session) -> str:
    """A few words for a file name."""
    asked = next(iter(requests(session)), "")
    telling = [word for word in words(asked) if content_words(word) and re.fullmatch(r"[^\W_][\w-]{1,20}", word)]
    return "-".join(dict.fromkeys(telling[:6]))[:60].strip("-")
