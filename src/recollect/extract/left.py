"""What a session left at its end: what nobody answered, finished, committed or checked, and what the agent says is
open. Pure. Events, calls and the plan that was handed over come first; of prose the report of the last turn is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recollect.authors import TOOL_LINE
from recollect.extract.session import (
    COMMIT,
    COMMITS,
    FAILED,
    LINE,
    OFFER,
    PUT_OFF,
    Session,
    clip,
    is_report,
    length,
    names,
    report_sentences,
)
from recollect.text import blocks, ended, sentences, unique, unix_lines, words
from recollect.types import PERSON, Author, Message, Role

_MOST = 5
_MOST_CHECKS = 2
_DEALT_WITH = re.compile(
    r"\b(?:already|but now|no longer|no \S+ remain\w*|(?<!be )cleaned|resolved|addressed all|unrelated|pre-existing)\b",
    re.IGNORECASE,
)
_LISTS_LEFT = re.compile(  # a heading, or a line with a colon, above what is left
    r"\b(?:next (?:up|steps?)|remaining|what's left|what is left|still open|open (?:items|questions|issues)|"
    r"follow[- ]?ups?|to-?dos?|not (?:done|covered|included|fixed)|deferred|postponed|known (?:issues|limitations)|"
    r"left to do|before (?:merging|deploying|you)|nächste schritte|offen|prochaines étapes|reste à faire|"
    r"próximos (?:pasos|passos)|pendientes?|осталось)\b|下一步|残り|次のステップ",
    re.IGNORECASE,
)
_FINDINGS = re.compile(  # a heading above what a review asks for
    r"\b(?:(?:must|should|to) fix|recommend\w*|suggest\w*|priority|action items|improvements?|empfehl\w*|recomm\w+|"
    r"sugerencias|рекомендации)\b|建议|推奨",
    re.IGNORECASE,
)
_CHECKS = re.compile(  # the heading of a plan's section on how to know that it works
    r"(?:\d+[.)]? )?(?:manual |how to )?(?:(?:verif|prüf|überprüf|vérif|comprob|провер)\w*|validation$|testing|"
    r"test plan|checks?)\b|验证|検証",
    re.IGNORECASE,
)
_BY_HAND = re.compile(
    r"\b(?:manual\w*|visual\w*|by hand|browser|click\w*|navigate|manuell\w*|von hand|navegador|вручную)\b|手动|手動",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"\b(?:which|or|welche[rs]?|oder|quelle?s?|ou|cuál|qual|какой)\b|还是|それとも", re.IGNORECASE)
_PLAN = re.compile(r"\AImplement the following plan:")
_CODE = re.compile(r"`([^`\n]+)`")
_ASKS = re.compile(r"^ask|question|_ask", re.IGNORECASE)  # tools; not `Task`
_USUAL = frozenset({"test", "tests", "lint", "typecheck", "build"})  # checks that a hook may run, and a report names
_RUNNERS = frozenset({"run", "npx", "cd"})


def left(session: Session) -> str:
    """Empty where nothing tells it."""
    return " ".join(unique([*_by_events(session), *_by_words(session)], 0.7))


def _by_events(session: Session) -> Iterator[str]:
    told = session.told
    if tasks := [task for task, is_open in told.tasks.items() if is_open]:
        yield f"Open tasks: {'; '.join(clip(each, 100) for each in tasks[:_MOST])}."
    yield from _unfinished(session)
    if told.failing:
        yield f"Failed last: {', '.join(f'`{clip(each, 80)}`' for each in [*told.failing][-2:])}."
    if told.commits and told.edited:
        yield f"Not committed: {names(told.edited)}."
    elif told.edited and not _is_committed(session):
        yield f"No commit in this session: {names(told.edited)}."
    if checks := [*_unchecked(session)]:
        yield f"Not run, of the plan's checks: {ended('; '.join(checks[:_MOST_CHECKS]))}"
    if told.requests:
        yield f"Pull request open: {clip(told.requests[-1], 100)}."
    if told.todos:
        yield f"Noted for later: {names([*told.todos])}."


def _unfinished(session: Session) -> Iterator[str]:
    """The last request, if nobody answered it, or if the session ends in the middle of a step."""
    last = session.messages[-1] if session.messages else None
    if last is None:
        return
    asked = " ".join(last.said(*PERSON).split()) if last.role is Role.USER else ""
    if length(asked) >= 3:
        yield f"Unanswered: {ended(clip(asked, 200))}"
    elif session.told.planned:
        yield "The plan was put forward and not carried out."
    elif session.told.interrupted:
        yield "The person interrupted the last step."
    elif last.role is Role.ASSISTANT and (call := TOOL_LINE.fullmatch(last.text.rpartition("\n")[2].strip())):
        if _ASKS.search(call[1]) and call[2]:
            yield f"The agent's question was not answered: {ended(clip(call[2], 240))}"
        elif not is_report(last.said(Author.AGENT)) and any(each.is_change or each.said for each in session.turns):
            yield f"Not finished: {ended(clip(_last_request(session), 200))}"


def _last_request(session: Session) -> str:
    """What the person said last. What they pasted is another's text, and is not told: the files it led to are."""
    sent = (each for each in reversed(session.messages) if each.role is Role.USER and each.said(*PERSON, Author.PASTED))
    own = " ".join(next(sent, session.messages[-1]).said(*PERSON).split()) if session.turns else ""
    edited = session.turns[-1].edited
    step = f"the last step ({names(edited)})" if edited else "the last step"
    return next((each for each in sentences(own) if length(each) > 2), own) or step


def _is_committed(session: Session) -> bool:
    """Whether anything speaks of a commit that no event tells."""
    if COMMIT in session.told.failing:
        return False
    typed = (each.text for each in session.messages if each.role is Role.USER and "<bash-input>" in each.text)
    return any(COMMITS.search(line[:LINE]) for line in (*_calls(session.messages), *typed))


def _calls(messages: Sequence[Message]) -> Iterator[str]:
    """What was called and did not fail: the targets."""
    for each in messages:
        for part in each.parts:
            if part.author is Author.TOOL:
                found = (TOOL_LINE.fullmatch(line.strip()) for line in part.text.split("\n"))
                yield from (call[2] or "" for call in found if call and not call[3])


def _unchecked(session: Session) -> Iterator[str]:
    """The checks of the plan that was handed over which no call made: commands that were not run, and those by hand."""
    plan = next((each.text for each in session.messages if _PLAN.match(each.text)), "")
    plan = re.sub(r"(?m)^>[ \t]?", "", unix_lines(plan)) if plan else ""
    if not plan:
        return
    is_check, ran = False, [set(re.split(r"[\s/]+", call)) for call in _calls(session.messages)]
    told = {word for turn in session.turns for word in words(turn.report)} & _USUAL
    for form, text in blocks(plan):
        if form == "heading":
            is_check = bool(_CHECKS.search(text))
        elif is_check and form in ("item", "prose", "code"):
            text = text.partition("#")[0] if form == "code" else text
            commands = [text] if form == "code" else _CODE.findall(text)
            wanted = [_words(each) for each in commands if len(each.split()) > 1]
            is_missed = any(not any(command <= call for call in ran) and not command & told for command in wanted)
            if is_missed or (_BY_HAND.search(text) and not wanted and length(text) > 2):
                yield clip(text.replace("**", "").strip().rstrip(".:"), 140)


def _words(command: str) -> set[str]:
    """What a call must hold to be this command, however it is wrapped."""
    return set(re.split(r"[\s/]+", " ".join(command.split()[:4]))) - _RUNNERS


def _by_words(session: Session) -> Iterator[str]:
    """What the report of the last turn says is open, or asks."""
    last = session.turns[-1] if session.turns else None
    report = last.report if last is not None else ""
    is_change = any(turn.edited for turn in session.turns)
    lists = [_LISTS_LEFT] if is_change else [_LISTS_LEFT, _FINDINGS]
    put_off = [each for each in report_sentences(report) if PUT_OFF.search(each) and not each.endswith("?")]
    open_ = [*_listed(report, lists), *_marked(report), *put_off]
    open_ = [clip(each) for each in open_ if not OFFER.search(each) and not _DEALT_WITH.search(each)]
    yield from map(ended, unique(open_, 0.6)[:_MOST])
    if question := _question(session, report):
        yield f"The agent's question was not answered: {clip(question)}"


def _listed(report: str, lists: Sequence[re.Pattern[str]]) -> Iterator[str]:
    """The items of lists whose heading says that they are left, those of the last list first."""
    found: list[list[str]] = []
    is_left = False
    for form, text in blocks(report):
        plain = text.replace("**", "").strip()
        if form == "heading" or (form == "prose" and (plain.endswith(":") or text.startswith("**"))):
            is_left = length(plain) <= 12 and any(pattern.search(plain) for pattern in lists)
            found += [[]] if is_left else []
        elif is_left and form in ("item", "prose") and "|" not in plain and length(plain) >= 2:
            found[-1].append(plain)
    for each in reversed(found):
        yield from each


def _marked(report: str) -> Iterator[str]:
    """Lines that are marked as failed, or as boxes that nobody ticked."""
    for line in report.split("\n"):
        plain = line.replace("**", "").strip(" \t-*")
        if plain.startswith((*FAILED, "[ ]")) and "|" not in plain and length(plain) >= 3:
            yield plain.lstrip("".join(FAILED) + "[ ]️")


def _question(session: Session, report: str) -> str:
    """What the session ends with, if it asks for a decision. An offer to do more asks for none."""
    last = session.messages[-1] if session.messages else None
    if last is None or last.role is not Role.ASSISTANT:
        return ""
    told = [(form, text.replace("**", "").strip()) for form, text in blocks(report) if form in ("prose", "item")]
    options: list[str] = []
    while told and told[-1][0] == "item":
        options.insert(0, told.pop()[1])
    if not told:
        return ""
    asked = sentences(told[-1][1])[-1] if told[-1][1] else ""
    if len(options) > 1 and (OFFER.search(asked) or asked.endswith("?")):
        return f"{asked} {' / '.join(clip(each.rstrip('?'), 80) for each in options[:4])}?"
    is_question = asked.endswith(("?", "？")) and not options and length(asked) >= 4
    return asked if is_question and (_CHOICE.search(asked) or not OFFER.search(asked)) else ""
