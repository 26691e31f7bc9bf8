"""What a session says by its structure: what was done, what was left, and what the person laid down or chose. Pure.

Events and authors come first (`Message.events`, `Message.parts`); of prose only the agent's closing words are read, and
what the person typed to be remembered. No model is asked, and nothing here depends on the language but the words that
tell what was put off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recollect.authors import TOOL_LINE
from recollect.standing import is_rule, is_standing, to_remember, typed_sentences
from recollect.text import blocks, content_words, ended, pairs, sentences, spaced, unique, words
from recollect.types import PERSON, Author, Happened, MemoryKind, Message, Role, Severity, Statement, Trust

_CLOSING = 2  # sentences of the agent's last words
_MOST_ASKS = 4
_MOST_TOLD = 8  # lines of a section
_LONGEST = 260  # characters of a sentence that is told
_MOST_COMMITS = 4
_MOST_LEFT = 5
_EDITS = re.compile(r"edit|write|patch|create|notebook", re.IGNORECASE)
_TESTS = re.compile(r"\b(?:tests?|pytest|jest|vitest|check|lint|build|tsc|cargo|mypy|ruff)\b")
_CHATTER = re.compile(
    r"^(?:let me|i'?ll|i will|i am going|i'?m going|now (?:i|let)|first,? |next,? |looking|checking|running|reading|"
    r"sure|of course|great|perfect|good|you'?re (?:right|welcome)|thanks|understood|got it|okay|ok\b|sorry|hello|hi\b|"
    r"would you|do you|shall i|should i|want me|feel free|if you|let's|no response requested|here(?:'s| is| are)\b|"
    r"reply with|ready when|that(?:'s| is| was) (?:the|just|a)|yes[,. ]|no[,. ]|short answer|"
    r"the (?:changes|following|summary)\b.{0,30}:?$|(?:two|three|four|some|a few) \w+,? )",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^(?:all )?(?:done|complete|completed|fixed|finished|committed|pushed|summary|ready|changes made)\W*$",
    re.IGNORECASE,
)
_PUT_OFF = re.compile(
    r"\b(?:not (?:\w+ ){0,3}yet|yet to be|remaining|next steps?|follow[- ]?ups?|deferred|postponed|uncommitted|"
    r"unpushed|still (?:needs?|fails?|failing|open|missing)|left (?:to do|open|out|over)|"
    r"manual(?:ly)? (?:test|check|verif)\w*|"
    r"(?:not|never|hasn't|haven't|wasn't|isn't) (?:been )?"
    r"(?:tested|verified|committed|pushed|implemented|done|merged|addressed|covered)|"
    r"out of scope|you(?:'ll| will) need to|won't (?:fix|be)|known (?:issue|limitation)s?)\b",
    re.IGNORECASE,
)
_DEALT_WITH = re.compile(
    r"\b(?:already|but now|no longer|no \S+ remain\w*|cleaned|resolved|addressed all)\b", re.IGNORECASE
)
_LISTS_LEFT = re.compile(  # a heading, or a line with a colon, above what is left
    r"\b(?:next (?:up|steps?)|remaining|what's left|what is left|still open|"
    r"open (?:items|questions|issues)|follow[- ]?ups?|"
    r"to-?dos?|not (?:done|covered|included|fixed)|deferred|postponed|known (?:issues|limitations)|left to do|"
    r"before (?:merging|deploying|you))\b",
    re.IGNORECASE,
)
_REPORT = re.compile(  # tells what was done
    r"^(?:i(?:'ve| have)? |we |now |also |both |all |the )?(?:\w+(?:ed|ten|ilt|ote|ade)\b|.{0,60}\b(?:is|are) now\b)|"
    r"\b(?:pass(?:es|ed)?|works now|is gone|was (?:added|fixed|removed|caused))\b",
    re.IGNORECASE,
)
_TODO = re.compile(r"(?:^|[/_.-])(?:todos?|backlog)(?:[/_.-]|$)", re.IGNORECASE)
_OWN_PLANS = re.compile(r"\.claude/plans/")  # what the client keeps for itself
_OFFER = re.compile(
    r"\b(?:would you like|do you want|want me to|shall i|should i|let me know|if you(?:'d| would)? (?:like|want))\b",
    re.IGNORECASE,
)
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
_SUBJECT = 2  # words that say what a question is about
_MOST_NOTED = 10
_LONGEST_CHOICE = 500
_MOST_STATED = 2
_PLAN_TITLE = re.compile(r"\AImplement the following plan:\s*>?\s*#* *([^\n]*)")


@dataclass(slots=True)
class _Told:
    """What the events of a session came to."""

    tasks: dict[str, bool] = field(default_factory=dict)  # what → is it open
    commits: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # pull requests
    edited: list[str] = field(default_factory=list)  # files, since the last commit
    todos: dict[str, None] = field(default_factory=dict)  # files that note what is to be done
    planned: bool = False  # a plan was put forward last, and not approved
    failing: dict[str, None] = field(default_factory=dict)  # commands whose last run failed
    interrupted: bool = False  # and nothing was done since


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation, taken apart once for all that is told of it."""

    messages: Sequence[Message]
    turns: Sequence[_Turn]
    told: _Told


def read(messages: Sequence[Message]) -> Session:
    return Session(messages, _turns(messages), _told(messages))


def outcome(session: Session) -> tuple[str, str]:
    """What was done, and what was left at the end; empty where nothing tells it."""
    told, turns = session.told, session.turns
    chosen = _telling(turns)
    done = [each for turn in chosen for each in turn.reports(_CLOSING if turn is turns[-1] else 1)]
    asked = unique(
        [turn.asked for turn in chosen if turn.asked] or [each.asked for each in turns if each.asked][:1], 0.7
    )
    pieces = [f"Asked: {'; '.join(_clip(each.rstrip('.:; '), 150) for each in asked)}."] if asked else []
    pieces += [ended(_clip(each)) for each in unique(done, 0.6)]
    if told.commits:
        more = f" and {len(told.commits) - _MOST_COMMITS} more" if len(told.commits) > _MOST_COMMITS else ""
        pieces.append(f"Committed: {'; '.join(_clip(each, 100) for each in told.commits[-_MOST_COMMITS:])}{more}.")
    pieces += [f"Pull request: {_clip(each, 100)}." for each in told.requests[-1:]]
    edited = [name for turn in turns for name in turn.edited]
    if edited and not told.commits:
        pieces.append(f"Edited {', '.join(_names(edited))}.")
    is_work = bool(done or told.commits or told.requests or edited)
    closing = turns[-1].said if turns else []
    return (" ".join(pieces) if is_work else ""), " ".join(_left(session.messages, told, closing))


def _telling(turns: Sequence[_Turn]) -> list[_Turn]:
    """The last turn, and those in which most was changed, in order."""
    changing = sorted(turns[:-1], key=lambda each: -len(set(each.edited)))[: _MOST_ASKS - 1]
    kept = [each for each in changing if each.edited and each.reports(1)]
    return [each for each in turns if each is turns[-1] or any(each is one for one in kept)]


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
            length = _length(sentence)
            if (asked := to_remember(sentence)) and length >= 5:
                noted.append(_stated(asked, each))
            elif is_rule(sentence) and 4 <= length <= 60:
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
    text = ended(_clip(text[:1].upper() + text[1:], 400))
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
    if "?" in answer or len(told) > _LONGEST_CHOICE or not content_words(answer):
        return ""
    return f"{question} {ended(answer)}" if len(content_words(_GENERIC.sub("", about))) >= _SUBJECT else ""


def requests(session: Session) -> list[str]:
    """What was asked for, in order: the first and the last of many."""
    found = unique([each.asked for each in session.turns if each.asked], 0.7)
    return found if len(found) <= _MOST_ASKS else [found[0], *found[1 - _MOST_ASKS :]]


def _asked(message: Message) -> str:
    """The plan that was handed over, or the first thing of substance that the person typed."""
    if (plan := _PLAN_TITLE.match(message.text)) and plan[1].strip():
        return f"Implement the plan: {plan[1].strip().removeprefix('Plan: ')}"
    own = " ".join(message.said(Author.TYPED).split())
    if _length(own) < 4 or own.startswith(("/", "!")):
        return ""
    return next((one for one in sentences(own) if _length(one) >= 3), own)


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
        ("Commits", [_clip(each, 500) for each in commits[-_MOST_TOLD:]]),
    )
    if not any(lines for title, lines in sections[1:]):
        return ""
    return "\n\n".join(
        f"### {title}\n\n" + "\n".join(f"- {_clip(line, 500)}" for line in lines) for title, lines in sections if lines
    )


def sentence(session: Session, project: str) -> str:
    """One sentence that tells this session from the others."""
    place = f" in {project}" if project else ""
    asked = next(iter(requests(session)), "").rstrip(".!?… ")
    came = next((each for turn in reversed(session.turns) for each in turn.reports(1)), "")
    came = (session.told.commits[-1] if session.told.commits else came).rstrip(".!?… ")
    if not asked:
        return f"The agent worked{place}: {_clip(came, 140)}." if came else ""
    return f"The user asked{place}: {_clip(asked, 140)}{f'; the agent: {_clip(came, 140)}' if came else ''}."


def slug(session: Session) -> str:
    """A few words for a file name."""
    asked = next(iter(requests(session)), "")
    telling = [word for word in words(asked) if content_words(word) and re.fullmatch(r"[^\W_][\w-]{1,20}", word)]
    return "-".join(dict.fromkeys(telling[:6]))[:60].strip("-")


def _left(messages: Sequence[Message], told: _Told, closing: Sequence[str]) -> Iterator[str]:
    tasks = [task for task, is_open in told.tasks.items() if is_open]
    if tasks:
        yield f"Open tasks: {'; '.join(_clip(each, 100) for each in tasks[:_MOST_LEFT])}."
    last = messages[-1] if messages else None
    asked = last.said(*PERSON).strip() if last is not None and last.role is Role.USER else ""
    if _length(asked) >= 3:
        yield f"Unanswered: {ended(_clip(' '.join(asked.split()), 200))}"
    elif told.planned:
        yield "The plan was put forward and not carried out."
    elif told.interrupted:
        yield "The person interrupted the last step."
    if told.failing:
        yield f"Failed last: {', '.join(f'`{_clip(each, 80)}`' for each in [*told.failing][-2:])}."
    if told.commits and told.edited:
        yield f"Not committed: {', '.join(_names(told.edited))}."
    if told.requests:
        yield f"Pull request open: {_clip(told.requests[-1], 100)}."
    if told.todos:
        yield f"Noted for later: {', '.join(_names([*told.todos]))}."
    put_off = [each for each in closing if _PUT_OFF.search(each) and not _DEALT_WITH.search(each)]
    put_off = [_clip(each) for each in [*_listed(messages), *put_off] if not _OFFER.search(each)]
    yield from map(ended, unique(put_off, 0.6)[:_MOST_LEFT])
    question = closing[-1] if closing and closing[-1].endswith("?") and last is not None else ""
    if question and last is not None and last.role is Role.ASSISTANT and not _OFFER.search(question):
        yield f"The agent's question was not answered: {_clip(question)}"


@dataclass(slots=True)
class _Turn:
    """What the person asked for, and what came of it."""

    asked: str = ""
    said: list[str] = field(default_factory=list)  # the agent's last words, by sentence
    edited: list[str] = field(default_factory=list)

    def reports(self, most: int) -> list[str]:
        """Sentences that tell what came of it, those that name something first."""
        told = [
            each
            for each in self.said
            if not _PUT_OFF.search(each) and not _OFFER.search(each) and not each.endswith(("?", "…"))
        ]
        return sorted(told, key=lambda each: (not _REPORT.search(each), "`" not in each))[:most]


def _turns(messages: Sequence[Message]) -> list[_Turn]:
    found: list[_Turn] = []
    spoken: Message | None = None

    def close() -> None:
        if spoken is not None and found:
            found[-1].said = list(_sentences(spoken.said(Author.AGENT)))

    for each in messages:
        if each.role is Role.USER:
            if (asked := _asked(each)) or each.said(*PERSON).strip() or not found:
                close()
                spoken = None
                found.append(_Turn(asked))
            continue
        found = found or [_Turn()]
        for part in each.parts:
            if part.author is Author.TOOL:
                told = _Told()
                _follow(told, part.text)
                found[-1].edited += [*told.edited, *told.todos]
        if each.said(Author.AGENT).strip() and (_is_alone(each) or spoken is None or not _is_alone(spoken)):
            spoken = each
    close()
    return found


def _told(messages: Sequence[Message]) -> _Told:
    told = _Told()
    for each in messages:
        if each.role is Role.USER and each.said(*PERSON).strip():
            told.interrupted = False
        for part in each.parts:
            if part.author is Author.TOOL:
                told.interrupted = False
                _follow(told, part.text)
        listed = [event for event in each.events if event.kind in (Happened.TASK, Happened.DONE)]
        if sum(event.text in told.tasks for event in listed) and len(listed) > 1:
            told.tasks.clear()  # a list replaces the one before it
        for event in each.events:
            match event.kind:
                case Happened.TASK:
                    told.tasks[event.text] = True
                case Happened.DONE:
                    told.tasks[_task(told, event.text)] = False
                case Happened.COMMIT:
                    told.commits.append(event.text.partition("\n")[0])
                    told.edited.clear()
                case Happened.PULL_REQUEST:
                    told.requests.append(event.text.partition("\n")[0])
                case Happened.INTERRUPT:
                    told.interrupted = True
                case _:
                    pass
    return told


def _task(told: _Told, name: str) -> str:
    """`#3` is the third that was opened."""
    number = int(name[1:]) if name[:1] == "#" and name[1:].isdecimal() else 0
    return [*told.tasks][number - 1] if 0 < number <= len(told.tasks) else name


def _follow(told: _Told, lines: str) -> None:
    """Files that were edited, and tests that failed when they were last run."""
    for line in lines.split("\n"):
        if not (call := TOOL_LINE.fullmatch(line.strip())):
            continue
        name, target, failed = call[1], call[2] or "", bool(call[3])
        told.planned = failed and (name == "ExitPlanMode" or told.planned)
        if _EDITS.search(name) and target and not failed and " " not in target:
            if _TODO.search(target):
                told.todos[target] = None
            elif not _OWN_PLANS.search(target):
                told.edited.append(target)
        elif "gh pr merge" in target and not failed:
            told.requests.clear()
        elif _TESTS.search(target):
            key = target.split(" 2>")[0].split(" | ")[0]
            if failed:
                told.failing[key] = None
            else:  # of several that are tried, the one that works counts
                told.failing.clear()


def _listed(messages: Sequence[Message]) -> Iterator[str]:
    """What the agent's last words list under a heading that says it is left."""
    spoken = [each for each in messages if each.role is Role.ASSISTANT and each.said(Author.AGENT).strip()]
    is_left = False
    for form, text in blocks(spoken[-1].said(Author.AGENT)) if spoken else ():
        plain = text.replace("**", "").strip()
        if form == "heading" or (form == "prose" and plain.endswith(":")):
            is_left = bool(_LISTS_LEFT.search(plain))
        elif is_left and form in ("item", "prose") and "|" not in plain and len(plain.split()) >= 2:
            yield plain


def _is_alone(message: Message) -> bool:
    return all(part.author is Author.AGENT for part in message.parts)


def _sentences(text: str) -> Iterator[str]:
    for form, piece in blocks(text):
        if form in ("prose", "item") and "|" not in piece:
            for sentence in sentences(piece):
                plain = sentence.replace("**", "").strip().rstrip(":").lstrip("✅❌✓✗ ")
                if _length(plain) >= 5 and not _CHATTER.match(plain) and not _BARE.match(plain):
                    yield plain


def _length(text: str) -> int:
    """In words; where none are parted by spaces, of about two characters each."""
    return len(spaced(text).split()) + len(pairs(text)) // 2


def _names(paths: Sequence[str]) -> list[str]:
    names = [*dict.fromkeys(path.rsplit("/", 1)[-1] for path in paths)]
    return [f"`{each}`" for each in names[:4]] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])


def _clip(text: str, most: int = _LONGEST) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"
