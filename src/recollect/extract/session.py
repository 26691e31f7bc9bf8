"""A session, taken apart once: its turns with the agent's report on each, and what its events came to. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recollect.authors import TOOL_LINE
from recollect.text import COMMON, blocks, pairs, sentences, spaced, words
from recollect.types import PERSON, Author, Happened, Message, Role

_LONGEST = 260  # characters of a sentence that is told
_WHOLE = 20  # words of a whole report
_MOST_NAMES = 5
LINE = 400  # characters of a call's line that are looked at
COMMIT = "git commit"
FAILED = ("❌", "✗", "✘", "☐")  # how an agent marks what did not succeed
_EDITS = re.compile(r"edit|write|patch|create|notebook", re.IGNORECASE)
_TESTS = re.compile(r"\b(?:tests?|pytest|jest|vitest|check|lint|build|tsc|cargo|mypy|ruff)\b")
_CHATTER = re.compile(
    r"^(?:let me|i'?ll|i will|i am going|i'?m going|now (?:i|let)|first,? |next,? |looking|checking|running|reading|"
    r"sure|of course|great|perfect|good|you'?re (?:right|welcome)|thanks|understood|got it|okay|ok\b|sorry|hello|hi\b|"
    r"would you|do you|shall i|should i|want me|feel free|if you|let's|no response requested|here(?:'s| is| are)\b|"
    r"previously|reply with|ready when|that(?:'s| is| was) (?:the|just|a)|yes[,. ]|no[,. ]|short answer|"
    r"the (?:changes|following|summary)\b.{0,30}:?$|(?:two|three|four|some|a few) \w+,? )",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^(?:all )?(?:done|complete|completed|fixed|finished|committed|pushed|summary|ready|changes made)\W*$",
    re.IGNORECASE,
)
_ASIDE = re.compile(  # a heading, or the label of a line: what is told there explains, and was not done
    r"(?:the |example |key |root )?(?:problems?|issues?|bugs?|causes?|before|after|why|how|examples?|usage|behaviou?r|"
    r"flow|insights?|notes?|options?|background|context|analysis|ursache|vorher|nachher|warum|wie|beispiel|problème|"
    r"avant|après|pourquoi|comment|exemple|causa|problema|antes|después|por qué|cómo|ejemplo|причина|"
    r"проблема|原因|问题|問題)\b",
    re.IGNORECASE,
)
_TITLE = re.compile(r"^(?:summary|update|result)s?\b[^:]{0,20}: ", re.IGNORECASE)
_LABEL = re.compile(r"([^:.`]{2,40}):\s")
PUT_OFF = re.compile(
    r"\b(?:not (?:\w+ ){0,3}yet|yet to be|remaining|next steps?|follow[- ]?ups?|"
    r"(?:is|are|was|were|still|left) (?:deferred|postponed|uncommitted|unpushed|unstaged)|"
    r"temporary|placeholder|coming soon|tomorrow|"
    r"still (?:needs?|fails?|failing|open|missing)|left (?:to do|open|out|over)|"
    r"manual(?:ly)? (?:test|check|verif)\w*|"
    r"(?:not|never|hasn't|haven't|wasn't|isn't) (?:been )?"
    r"(?:tested|verified|committed|pushed|implemented|done|merged|addressed|covered)|"
    r"out of scope|you(?:'ll| will) need to|won't (?:fix|be)|known (?:issue|limitation)s?)\b",
    re.IGNORECASE,
)
OFFER = re.compile(
    r"\b(?:would you like|do you want|want me to|shall i|should i|let me know|if you(?:'d| would)? (?:like|want)|"
    r"you (?:can|could) also)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(  # tells what was done
    r"^(?:i(?:'ve| have)? |we |now |also |both |all |the )?(?:\w+(?:ed|ten|ilt|ote|ade)\b|.{0,60}\b(?:is|are) now\b)|"
    r"\b(?:pass(?:es|ed)?|works now|is gone|was (?:added|fixed|removed|caused))\b|"
    r"(?: —| –| -|:) (?:now\b|\w+(?:ed|ten|ilt|ote|ade)\b)",
    re.IGNORECASE,
)
_NAMES = re.compile(r"`|\w\.\w|[a-z][A-Z]|\w_\w|\w\(\)")  # something of the project
_STATUS = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|lint\w*|hooks?)\b|^(?:[0-9a-f]{7,} - |commit)|\b(?:is|are) (?:complete|in place|done)\b",
    re.IGNORECASE,
)
_BLOCKED = re.compile(r"\b(?:commit|hook)\b[^.\n]{0,40}\b(?:blocked|fail(?:s|ed|ing)|rejected)\b", re.IGNORECASE)
_IN_PLACE = re.compile(r"\bsed -i\b.*? ([^\s'\"|;&]+)$")  # an edit by the shell
_TODO = re.compile(r"(?:^|[/_.-])(?:todos?|backlog)(?:[/_.-]|$)", re.IGNORECASE)
_OWN_PLANS = re.compile(r"\.claude/plans/")  # what the client keeps for itself
_PLAN_TITLE = re.compile(r"\AImplement the following plan:\s*>?\s*#* *([^\n]*)")
_LEAVES = re.compile(r"/[\w-]+\s*")  # a command to the client, like `/exit`
COMMITS = re.compile(r"\bgit(?: -\S+(?: [^-\s]\S*)?)* commit\b|^/?[\w:-]*\bcommit$")  # by a shell, or by a skill
_SAVES = re.compile(rf"{COMMITS.pattern}|\bgit push\b|\bgh pr (?:create|merge)\b")
_CORRECTS = re.compile(
    r"^(?:no|nope|nein|non|нет|不|wait)\b|\b(?:revert|undo|wrong|incorrect|not correct|should (?:still|not)|"
    r"rückgängig|falsch|annule|deshaz|неправильно)\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Turn:
    """What the person asked for, and what came of it."""

    asked: str = ""
    report: str = ""  # the agent's words on what came of it
    said: list[str] = field(default_factory=list)  # these, by sentence, without what explains
    edited: list[str] = field(default_factory=list)
    is_saved: bool = False  # a commit, a push or a pull request was part of it
    is_overturned: bool = False  # the next request takes it back, or puts it right

    @property
    def is_change(self) -> bool:
        return bool(self.edited) or self.is_saved

    def reports(self, most: int) -> list[str]:
        """Sentences that tell what came of it: those that tell of a change, and name something, before others."""
        found = [
            each
            for each in self.said
            if not PUT_OFF.search(each) and not OFFER.search(each) and not each.endswith(("?", "…", "？"))
        ]
        telling = [each for each in found if _REPORT.search(each)]
        ranked = sorted(telling or found[:most], key=lambda each: (is_status(each), not _NAMES.search(each)))[:most]
        return [each for each in found if each in ranked]


@dataclass(slots=True)
class Told:
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
    """A conversation, read once for all that is told of it."""

    messages: Sequence[Message]  # without the commands to the client that end it
    turns: Sequence[Turn]
    told: Told


def read(messages: Sequence[Message]) -> Session:
    end = len(messages)
    while end and messages[end - 1].role is Role.USER and _LEAVES.fullmatch(messages[end - 1].text):
        end -= 1
    return Session(messages[:end], _turns(messages[:end]), _told(messages[:end]))


def _turns(messages: Sequence[Message]) -> list[Turn]:
    found: list[Turn] = []
    report: Message | None = None
    is_stale = False  # something was changed after the report
    for each in messages:
        if each.role is Role.USER:
            asked = _asked(each)
            if asked or each.said(*PERSON, Author.PASTED).strip() or not found:
                if changed := next((turn for turn in reversed(found) if turn.is_change), None):
                    changed.is_overturned = changed.is_overturned or bool(_CORRECTS.search(asked))
                found.append(Turn(asked))
                report, is_stale = None, False
            continue
        found = found or [Turn()]
        is_stale = _follows(found[-1], each) or is_stale
        if each.said(Author.AGENT).strip() and _reports_more(each, report, is_stale):
            report, is_stale = each, False
            found[-1].report = each.said(Author.AGENT)
    for turn in found:
        prose = [] if turn.is_change else list(report_sentences(turn.report, ("prose",)))
        turn.said = prose or list(report_sentences(turn.report))
    return found


def _follows(turn: Turn, message: Message) -> bool:
    """Note what the calls of a message changed, and return whether they changed anything."""
    calls = "\n".join(part.text for part in message.parts if part.author is Author.TOOL)
    told = Told()
    _follow(told, calls)
    turn.edited += [*told.edited, *told.todos]
    is_saving = any(event.kind in (Happened.COMMIT, Happened.PULL_REQUEST) for event in message.events)
    is_saving = is_saving or any(map(_is_saving, calls.split("\n")))
    turn.is_saved = turn.is_saved or is_saving
    return is_saving or bool(told.edited or told.todos)


def _reports_more(message: Message, report: Message | None, is_stale: bool) -> bool:
    """A message without calls tells what came of a turn, the last of them, but for a remark behind a whole report."""
    if report is None or not _is_alone(report):
        return True
    return _is_alone(message) and (is_stale or _is_whole(message) or not _is_whole(report))


def _is_whole(report: Message) -> bool:
    return length(report.said(Author.AGENT)) >= _WHOLE


def _is_saving(line: str) -> bool:
    call = TOOL_LINE.fullmatch(line.strip())
    return bool(call and not call[3] and _SAVES.search((call[2] or "")[:LINE]))


def _asked(message: Message) -> str:
    """The plan that was handed over, or the first thing of substance that the person typed."""
    if (plan := _PLAN_TITLE.match(message.text)) and plan[1].strip():
        return f"Implement the plan: {plan[1].strip().removeprefix('Plan: ')}"
    own = " ".join(message.said(Author.TYPED).split())
    if length(own) < 4 or own.startswith(("/", "!")):
        return ""
    return next((one for one in sentences(own) if length(one) >= 3), own)


def _is_alone(message: Message) -> bool:
    """Is it without calls?"""
    return all(part.author is Author.AGENT for part in message.parts)


def is_report(text: str) -> bool:
    """Does it tell of a change?"""
    return any(_REPORT.search(each) for each in report_sentences(text))


def is_status(sentence: str) -> bool:
    """Does it tell of checks and commits, rather than of the work?"""
    return bool(_STATUS.search(sentence)) and ("`" not in sentence or sentence.startswith("Commit"))


def report_sentences(text: str, forms: Sequence[str] = ("prose", "item", "heading")) -> Iterator[str]:
    """What a report says, without what explains, what chats and what only leads to a list or to code."""
    is_aside = False
    for form, piece in blocks(text):
        plain = piece.replace("**", "").strip()
        if form == "heading" or (form == "prose" and plain.endswith(":") and length(plain) <= 6):
            is_aside = bool(_ASIDE.match(plain))
        if form not in forms or "|" in piece or is_aside:
            continue
        for sentence in [_TITLE.sub("", piece)] if form == "heading" else sentences(piece):
            plain = sentence.replace("**", "").strip().lstrip("✅✓ ")
            leads = plain.endswith(":") and (not _NAMES.search(plain) or words(plain)[-1] in COMMON)
            if leads or (form == "heading" and not _REPORT.search(plain)):
                continue
            plain = plain.rstrip(":")
            if plain.startswith(FAILED) or ((label := _LABEL.match(plain)) and _ASIDE.match(label[1])):
                continue
            if length(plain) >= 5 and not _CHATTER.match(plain) and not _BARE.match(plain):
                yield plain


def _told(messages: Sequence[Message]) -> Told:
    told = Told()
    waiting: list[str] = []  # what the last commit took, until the agent says whether it went through
    for each in messages:
        if each.role is Role.ASSISTANT and (own := each.said(Author.AGENT)):
            if waiting and _BLOCKED.search(own[:_LONGEST]):
                told.commits.pop()
                told.edited = waiting + told.edited
                told.failing[COMMIT] = None
            waiting = []
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
                    told.failing.pop(COMMIT, None)
                    waiting, told.edited = told.edited, []
                case Happened.PULL_REQUEST:
                    told.requests.append(event.text.partition("\n")[0])
                case Happened.INTERRUPT:
                    told.interrupted = True
                case _:
                    pass
    return told


def _task(told: Told, name: str) -> str:
    """`#3` is the third that was opened."""
    number = int(name[1:]) if name[:1] == "#" and name[1:].isdecimal() else 0
    return [*told.tasks][number - 1] if 0 < number <= len(told.tasks) else name


def _follow(told: Told, lines: str) -> None:
    """Files that were edited, and tests that failed when they were last run."""
    for line in lines.split("\n"):
        if not (call := TOOL_LINE.fullmatch(line.strip())):
            continue
        name, target, failed = call[1], (call[2] or "")[:LINE], bool(call[3])
        told.planned = failed and (name == "ExitPlanMode" or told.planned)
        for file in () if failed else _edited(name, target):
            if _TODO.search(file):
                told.todos[file] = None
            elif not _OWN_PLANS.search(file):
                told.edited.append(file)
        if _EDITS.search(name) or target.startswith("apply_patch "):
            continue
        if "gh pr merge" in target and not failed:
            told.requests.clear()
        elif _TESTS.search(target):
            key = target.split(" 2>")[0].split(" | ")[0]
            if failed:
                told.failing[key] = None
            else:  # of several that are tried, the one that works counts
                told.failing.clear()


def _edited(name: str, target: str) -> list[str]:
    """Files that a call edited, as its line tells."""
    if in_place := _IN_PLACE.search(target):
        files = [in_place[1]]
    elif name == "apply_patch" or target.startswith("apply_patch "):
        files = target.removeprefix("apply_patch ").split(", ")
    else:
        files = [target] if _EDITS.search(name) and target and " " not in target else []
    return [each for each in files if not each.endswith("…")]


def length(text: str) -> int:
    """In words; where none are parted by spaces, of about two characters each."""
    return len(spaced(text).split()) + len(pairs(text)) // 2


def names(paths: Sequence[str]) -> str:
    """Files by their names, the first ones."""
    told = [*dict.fromkeys(path.rsplit("/", 1)[-1] for path in paths)]
    shown = [f"`{each}`" for each in told[:_MOST_NAMES]]
    return ", ".join(shown + ([f"{len(told) - _MOST_NAMES} more"] if len(told) > _MOST_NAMES else []))


def clip(text: str, most: int = _LONGEST) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"
