"""From a message to the sentences that its author really said.

What a person pasted (quotes, mails, logs, pages, code) is somebody else's voice, and what is addressed to an AI inside
such text is not the user's wish: both are left out here, so that nothing later can mistake them for the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from recollect.authors import TOOL_LINE
from recollect.blocks import without_memories
from recollect.text import blocks, sentences
from recollect.types import Role


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, a list item, or a whole message of somebody who does not use full stops."""

    text: str
    form: str  # prose | item | heading
    under: str = ""  # the line that introduces the list it is an item of


_DIALOGUE = re.compile(
    r"^[ \t]*(?:\*\*)?(?:user|human|agent|assistant|ai|system|model|bot|customer|support|"
    r"interviewer)(?:\*\*)?:(?:\*\*)?\s",
    re.MULTILINE | re.IGNORECASE,
)
_DOCUMENT = 6_000  # characters: what is longer than this was pasted, but for what its author says of themselves
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'd|i've|we|we're|we've|my|our|me|us|please)\b", re.IGNORECASE)
_LONGEST = 2_000  # characters of a sentence that are looked at

_TAG = re.compile(r"<([A-Za-z][\w-]{0,40})(?: [^<>\n]{0,300})?>")
_FRAME = re.compile(
    r"^[ \t]*[-=~*_#]{3}(?:(?:[-=~*#]*+_|[-=~*_#]*+[ \t]*\w)[^\n]*[-=~*_#]{3}|[-=~*_#]*+[ \t]*(?:begin|"
    r"start)\b[^\n]*)[ \t]*$.*?(?:^[ \t]*[-=~*_#]{3,}.*?$|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_SPEECH = re.compile(
    r"[\"“„«](?=[^\"“”„«»]*\s[^\"“”„«»]*\s[^\"“”„«»]*\s[^\"“”„«»]*\s[^\"“”„«»]*\s)[^\"“”„«»]{25,}[\"”“»]"
)
_QUOTED = re.compile(  # what is not `closed` is passed over whole: nothing that begins inside it is a quote either
    r"(?<![\w'’])['‘](?:(?=(?:[^'\s]*+\s){5})(?:(?P<closed>(?:[^'\n]|(?<=\w)'(?=\w)){25,}?['’](?!\w))"
    r"|(?:[^'\n]++|(?<=\w)'(?=\w))*+)|[^'\s]*+)"
)
_PASTES = re.compile(
    r"\b(?:wrote|writes|says|said|sent|told me|posted|replied|answered|e-?mail(?:ed)?|mail|message|slack|chat|"
    r"thread|readme|docs|documentation|page|article|post|review(?:er)?|comment|ticket|log|logs|output|error|trace|"
    r"traceback|stack trace|response|got this|got back|paste[ds]?|pasting|quote|letter|"
    r"transcript)\b[^.!?]{0,60}:\s*$",
    re.IGNORECASE,
)
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_OWN_VOICE = re.compile(
    r"^\s*(?:i|i'm|im|i'd|we|we're|my|our|can|could|would|please|pls|so|anyway|what|why|how|do|does|is|are|should|"
    r"that|that's|thats|ok|okay|but|and|no|yes|also|now|not|let's|lets|any|thoughts|maybe|honestly|fix|draft|reply|"
    r"translate|summari[sz]e|explain|don't|dont|ignore|use|make|write|the)\b",
    re.IGNORECASE,
)
_LOG = re.compile(
    r"^\s*(?:\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE)\b|Traceback |"
    r"File \"|at \S+ ?\(|\$ |>>> |\.\.\. |%\s|npm (?:ERR|error|warn)|[\d.]+ npm |(?:\w*(?:Error|Exception|Warning)|"
    r"error(?:\[\w+\])?|warning|fatal|panic|note|help): |E  |[+-]{3} [ab/]|@@ |diff --git|=>|\|.*\|\s*$|"
    r"\d+ ?[-+│|:] |[#*=_~-]{4,}|[\w.-]+@[\w.-]+[:~$]|(?:GET|POST|PUT|DELETE|PATCH|HEAD) /\S* (?:HTTP|\d{3}))"
)
_GLYPHS = re.compile(
    r"[\u2500-\u259f\u2800-\u28ff❯➜✗✓✔✘⎿●⏺→←↑↓⇒│┃╭╰🐳]|=>|::|&&|\|\||;\s*$|\{\s*$|\}\s*+(?:;\s*)?$|</\w+>|\w\(\)|:\d+:\d+"
)
_ODD = re.compile(r"[^\w ,.'’\"?!-]|[\d_]")  # neither letters nor what stands between words
_NUMBER = re.compile(r"(?<!\w)\d[\d.:]*(?![\w/])")  # an address, a port or a version among words is a value
_CALL = re.compile(r"\b[\w.]+\(\)")  # so is the name of a function
_SAYS = 3  # words of letters alone
_PLAN = re.compile(r"\AImplement the following plan:[ \t]*\r?\n\s*(?:#+ +[^\n]*)?")  # as a client hands one over
_CODE = re.compile(r"`[^`]*`|https?://\S+")
_CHATLOG = re.compile(r"^\s*(?:\*\*)?[A-Za-z][\w .-]{0,24}(?:\*\*)?\s*(?:\(\d[\d:apm ]*\)|\[\d[\d:apm ]*\])?:\s+\S")
_MAIL = re.compile(r"(?:From|To|Cc|Date|Sent|Subject|Reply-To): \S")
_TO_AI = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}\b(?:instruction|prompt|guidance|rule|guardrail|"
    r"polic)|\b(?:AI|language model|LLM|assistant|chatbot|agent|bot)s?\b[^.\n]{0,30}\b(?:reading this|"
    r"must (?:store|remember|save|record|always)|should (?:store|remember|save|record))|\b(?:note|message|"
    r"attention|dear|hey|hello)[^.\n]{0,12}\b(?:AI|language model|LLM|assistant|chatbot)|^[ \t]*(?:system|"
    r"assistant|user)[ \t]*:\s|<\|?(?:system|im_start)|\b(?:save|store|record|write|commit|add) (?:this |"
    r"it )?(?:in)?to (?:your |the |long-term )?memory\b.{0,60}\bthat\b|\bnew (?:system )?instructions?\s*:|"
    r"\byou are now\b|\bas an ai\b"
)


@cache
def _to_ai() -> Any:
    """RE2: every sentence is held against it."""
    import re2

    return re2.compile(f"(?im){_TO_AI}")


def units(text: str) -> list[Unit]:
    """What a user says in a message, in order."""
    found: list[Unit] = []
    head = ""
    for form, sentence in own_words(text, Role.USER):
        found.append(Unit(sentence, form, head if form == "item" else ""))
        if form != "item":
            head = sentence if sentence.endswith(":") or form == "heading" else ""
    return found


_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]")  # what comes along when a text is copied
_SPACE = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_EMPHASIS = re.compile(  # `__init__`, `*args` and `src/**/x` have none
    r"(?<![\w*`/])(\*{1,3})(?=[\w`\"'“(])([^*\n]++)(?<=[\w`\"'”).,:;!?…])\1(?![\w*`/])|"
    r"(?<![\w`/])(_{1,3})(?=[\w`\"'“(][^_\n]* )([^_\n]++)(?<=[\w`\"'”).,:;!?…])\3(?![\w`/])"
)


@lru_cache(maxsize=256)  # several readers ask about the same message
def own_words(text: str, role: Role) -> tuple[tuple[str, str], ...]:
    """(form, sentence) of what the author says in their own voice."""
    text = _FENCED.sub("\n\n", _SPACE.sub(" ", _UNSEEN.sub("", without_memories(text))))
    text = _EMPHASIS.sub(lambda found: found[2] or found[4], text)
    if role is Role.USER:
        text = _PLAN.sub("", text)
        spoken = list(_DIALOGUE.finditer(text))
        if len(spoken) > 1:
            text = text[: spoken[0].start()]  # somebody else's conversation
        text = _FRAME.sub("\n\n", text)
        text = _without_tags(text)
        text = _QUOTED.sub(lambda found: "“…”" if found["closed"] else found[0], _SPEECH.sub("“…”", text))
    pieces = list(_without_pastes(text) if role is Role.USER else _prose(text))
    if role is Role.USER and len(text) > _DOCUMENT:
        pieces = [(form, piece) for form, piece in pieces if _FIRST_PERSON.search(piece)]
    return tuple(
        (form, sentence[:_LONGEST])
        for form, piece in pieces
        if not _to_ai().search(piece)
        for sentence in sentences(piece)
        if any(letter.isalpha() for letter in sentence) and sentence.count("“…”") < 2 and sentence.strip(". ") != "“…”"
    )


def _without_tags(text: str) -> str:
    """What stands between a tag and its end was pasted; a lone `<T>` is part of a sentence."""
    kept, at = [], 0
    unclosed = set()
    for tag in _TAG.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        kept.append(text[at : tag.start()])
        at = end + len(tag[1]) + 3
    return "\n\n".join([*kept, text[at:]])


def _prose(text: str) -> Iterator[tuple[str, str]]:
    lines = "\n".join(line for line in text.splitlines() if not TOOL_LINE.fullmatch(line.strip()))
    for form, piece in blocks(lines):
        if form in ("prose", "item", "heading") and not is_machine(piece):
            yield form, piece


def is_machine(line: str) -> bool:
    """Output, code or a trace rather than somebody's sentence."""
    if _LOG.match(line):
        return True
    line = _CODE.sub("code", line)
    if sum(word.strip(",.;!?").isalpha() for word in line.split()) >= _SAYS:
        line = _CALL.sub("name", line)
        glyphs = len(_GLYPHS.findall(line))
        line = _NUMBER.sub("number", line)
    else:
        glyphs = len(_GLYPHS.findall(line))
    odd = len(_ODD.findall(line))
    return glyphs > 1 or (glyphs == 1 and len(line.split()) < 8) or (len(line) > 24 and odd > 0.28 * len(line))


def _without_pastes(text: str) -> Iterator[tuple[str, str]]:
    """A paragraph that announces a paste, and what follows it until the author speaks again."""
    pasting = False
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        if pasting and _OWN_VOICE.match(paragraph):
            pasting = False
        if pasting:
            continue
        said = [line for line in lines if not is_machine(line)]
        machine = len(lines) - len(said)
        if len(lines) > 2 and (machine * 2 > len(lines) or (machine > 1 and machine * 3 >= len(lines))):
            continue  # a log, a screen
        if sum(bool(_MAIL.match(line)) for line in lines) > 1:
            pasting = True
            continue
        talk = [line for line in said if _CHATLOG.match(line) and not line.lstrip().startswith(("-", "*", "•"))]
        if len(talk) >= 2 and len(talk) * 2 >= len(said):
            continue  # a chat of others
        announced = next((number for number, line in enumerate(said) if _PASTES.search(line)), None)
        if announced is not None:
            pasting = True
            rest = said[announced + 1 :]
            said = said[: announced + 1] + [line for line in rest if _OWN_VOICE.match(line) and len(rest) == 1]
        yield from _prose("\n".join(said))
