r"""Somebody's text in a Markdown file: shown as it was written, and inert. Pure and linear.

`escape_markdown` puts a backslash before whatever a Markdown reader or Obsidian would act on: HTML, images, embeds and
links, comments, tags, block ids, callouts, definitions, notes, math, code that is never closed. `unescape_markdown`
gives back exactly the text that it was. Two kinds of code stay as they are, because every reader agrees on where they
end: a span on one line, and a block between fences at the beginning of a line. A block whose language is not known, and
that an extension might run, is shown as text; a span that begins like a query is none.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from recollect.text import UNSEEN

_PUNCTUATION = re.escape(string.punctuation)
_ACTIVE = re.compile(
    r"`+|~{3,}|%{2,}"
    r"|\${2,}|\$(?![ \t])"  # math
    r"|<(?=[A-Za-z/!?%])"  # HTML, comments, templates
    r"|&(?=#?\w+;)"  # characters by name
    r"|!(?=\[)"  # images and embeds
    r"|\[(?=[\[!])|(?<=\[)\["  # links of a wiki, callouts
    r"|(?<=\])\("  # other links
    r"|(?<![\w#&/])#(?=[^\s#])"  # tags
    r"|(?<!\S)\^(?=[\w-]+[ \t]*$)|\^(?=\[)"  # ids of blocks, notes within a line
    rf"|\\(?=[{_PUNCTUATION}])"
)
_ACTIVE_LINE = re.compile(_ACTIVE.pattern.replace(rf"\\(?=[{_PUNCTUATION}])", rf"\\(?=[{_PUNCTUATION}n]|$)"))
_DEFINITION = re.compile(  # what a reader does not show; its label may go on in the next line
    r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*\[[^\]]*(?:\]:|\Z)"
)
_LOOK = re.compile(r"[`~%$<&!\[(#^\\]")
_TICKS = re.compile(r"`+")
_QUERY = re.compile(r"\s*\$?=")
_ESCAPED = re.compile(rf"\\([{_PUNCTUATION}])|(`+)")
_ESCAPED_LINE = re.compile(rf"\\([{_PUNCTUATION}n])|(`+)")
_FENCE = re.compile(r"(`{3,})([^`]*)|(~{3,})(.*)", re.DOTALL)
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_TEXT = "text "  # before a language that is not known
_LANGUAGES = frozenset(
    """asm awk bash bat batch c cfg clojure cmake console cpp cs csharp css csv cxx dart diff docker dockerfile
    dotenv elixir elm env erlang fish fsharp gherkin go golang gradle graphql groovy h haskell hcl hpp html http
    ini java javascript jinja jinja2 js json json5 jsonc jsonl jsx julia kotlin kt less log lua make makefile
    markdown md mjs nginx nim nix objc ocaml output patch perl php plain plaintext powershell prisma properties
    proto protobuf ps1 pwsh py pycon python python3 r rb regex rs rst ruby rust sass scala scss sh shell shell-
    session sol solidity sql svelte swift tcl terraform tex text tf toml ts tsx txt typescript vb vim vue wasm
    xml yaml yml zig zsh""".split()
)


def escape_markdown(text: str) -> str:
    """The text for the body of a file. It may begin anywhere but within a line."""
    if not _LOOK.search(text):
        return text
    lines = text.split("\n")
    made: list[str] = []
    for line, is_code, is_fence in _structure(lines):
        if is_fence:
            run, info = _parted(line)
            made.append(line if _is_known(info) else f"{run}{_TEXT}{info}")
        else:
            made.append(line if is_code else _escaped(line, _ACTIVE))
    return "\n".join(made)


def unescape_markdown(text: str) -> str:
    """The text that was escaped."""
    if not _LOOK.search(text):
        return text
    made: list[str] = []
    for line, is_code, is_fence in _structure(text.split("\n")):
        if is_fence:
            run, info = _parted(line)
            made.append(run + info.removeprefix(_TEXT))
        else:
            made.append(line if is_code else _unescaped(line, _ESCAPED))
    return "\n".join(made)


def escape_line(text: str) -> str:
    r"""The text within one line: a line break is `\n`."""
    return r"\n".join(_escaped(line, _ACTIVE_LINE) for line in text.split("\n"))


def unescape_line(text: str) -> str:
    return _unescaped(text, _ESCAPED_LINE)


def displayed(text: str) -> str:
    """Text that is not read back, for a page that a person opens: escaped, without signs that nobody sees."""
    return escape_markdown(UNSEEN.sub("", text))


def code(text: str) -> str:
    """Text as a span of code: a name that is no word."""
    text = " ".join(text.replace("`", " ").replace("|", "/").split())
    return f"`\\{text}`" if _QUERY.match(text) else f"`{text}`"


def _structure(lines: list[str]) -> Iterator[tuple[str, bool, bool]]:
    """Each line, whether it belongs to a block of code, and whether it opens one. A fence without an end opens none."""
    ends = _longest_ends(lines)
    fence = ""
    for number, line in enumerate(lines):
        if fence:
            yield line, True, False
            if _closes(line, fence):
                fence = ""
        elif (run := _parted(line)[0]) and ends[number].get(run[0], 0) >= len(run):
            fence = run
            yield line, True, True
        else:
            yield line, False, False


def _longest_ends(lines: list[str]) -> list[dict[str, int]]:
    """For each line, how long the longest fence of each kind is that may close a block below it."""
    found: list[dict[str, int]] = []
    longest: dict[str, int] = {}
    for line in reversed(lines):
        found.append(longest)
        if closing := _CLOSING.fullmatch(line):
            longest = longest | {closing[1][0]: max(longest.get(closing[1][0], 0), len(closing[1]))}
    return found[::-1]


def _closes(line: str, fence: str) -> bool:
    closing = _CLOSING.fullmatch(line)
    return closing is not None and closing[1][0] == fence[0] and len(closing[1]) >= len(fence)


def _parted(line: str) -> tuple[str, str]:
    """The fence that a line begins with, and what stands behind it."""
    fence = _FENCE.fullmatch(line) if line.startswith(("```", "~~~")) else None
    if fence is None:
        return "", ""
    return (fence[1], fence[2]) if fence[1] else (fence[3], fence[4])


def _is_known(info: str) -> bool:
    language = info.split(None, 1)[:1]
    return not info.startswith(_TEXT) and (not language or language[0].lower() in _LANGUAGES)


def _spans(line: str) -> list[tuple[int, int]]:
    """The spans of code on a line, from the first tick to the last."""
    runs = [found.span() for found in _TICKS.finditer(line)]
    last: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        last.setdefault(runs[number][1] - runs[number][0], []).append(number)
    spans: list[tuple[int, int]] = []
    number = 0
    while number < len(runs):
        start, inner = runs[number]
        same = last[inner - start]
        while same and same[-1] <= number:
            same.pop()
        if same and not _is_active(line[inner : runs[same[-1]][0]]):
            number = same[-1]
            spans.append((start, runs[number][1]))
        number += 1
    return spans


def _is_active(span: str) -> bool:
    """A bar parts the cells of a table, also within code."""
    return "|" in span or _QUERY.match(span) is not None


def _escaped(line: str, active: re.Pattern[str]) -> str:
    if not _LOOK.search(line):
        return line
    spans = _spans(line) if "`" in line else []
    parts, at = [], 0
    definition = _DEFINITION.match(line)
    for begin, end in (*spans, (len(line), len(line))):
        for found in active.finditer(line, at):
            if found.start() >= begin:
                break
            parts.append(line[at : found.start()])
            parts.append("".join(f"\\{sign}" for sign in found.group()))
            at = found.end()
        parts.append(line[at:end])
        at = end
    made = "".join(parts)
    if definition and (place := made.index("[")) >= 0 and not made.startswith("\\[", place - 1):
        made = f"{made[:place]}\\{made[place:]}"
    return made


def _unescaped(line: str, escaped: re.Pattern[str]) -> str:
    if "\\" not in line:
        return line
    parts, at = [], 0
    while found := escaped.search(line, at):
        parts.append(line[at : found.start()])
        at = found.end()
        if found[1]:
            parts.append("\n" if found[1] == "n" else found[1])
            continue
        close = _closing(line, found[2], at)
        parts.append(line[found.start() : close])
        at = close
    return "".join((*parts, line[at:]))


def _closing(line: str, run: str, at: int) -> int:
    """Where a span of code ends that began with these ticks; where they end, if it does not."""
    for found in _TICKS.finditer(line, at):
        if found.group() == run:
            return found.end()
    return at
