"""Secrets below what tells of them: in the columns of a table, an INSERT, a manifest of Kubernetes."""

import re
from typing import NamedTuple

from recollect.redact.judge import RULED, Finding, accept, heads, named, next_line
from recollect.redact.rules import WITHIN, Word, rx
from recollect.redact.values import Value

MANIFEST, VALUES = r"kind\W{1,4}Secret[^\w-]", r"\)\s{0,8}(?i:values)\s{0,8}\("
HERE = r"<<[-~]?\s?[\"'\\]?[A-Za-z]\w{0,20}[\"']?[^\n]{0,80}\n"
BELOW = (  # what cannot be the head of anything is left soon
    rf"{MANIFEST}|{VALUES}|{HERE}|[^\s:=,;|()]{{2,40}}(?: \w{{1,12}})?[ \t]{{0,20}}(?:[|\t\r\n]|[,;][\w\"]|  )"
)
_HEAD = (  # names alone, and what stands between them
    r"[ \t>]*+[\"'*`]*+[A-Za-z_][\w.()\"'*`/-]*+(?: [\w*`]++){0,3}+"
    r"(?:(?P<sep>[,;\t]| {2,})[\"']?\w[\w .()\"'/,;\t-]*)?[ \t]*+\r?"
)
_TUPLE = r"(\((?:'[^'\n]*'|[^()']|\([^()']*\))*+)\)[,\s]*"
_OTHER = r"\n---|\n(?:- )?apiVersion|\},?\s{0,80}\{\s{0,80}\\?\"apiVersion|kind: "  # where the next manifest begins
_DATA = r"(?:stringData|data)\\{0,3}[\"']?:[ \t]*(?:\{|\r?\n)"
_ENTRY = r"[\w./-]+(?:\\{0,3}[\"'])?:[ \t]*(?:[|>][+-]?\s+(?=[^\s:]+\s)|\\{0,3}[\"'])?(?P<v>[^\s\"'\\|>{}]{4,})"


class Column(NamedTuple):
    """Of a table, with a telling name."""

    word: Word
    need: int  # the least `oddness` of a cell
    find: str  # matches a row; group v is the cell
    at: int  # where in the row to begin


def _columns(text: str, start: int, end: int, sep: str, quote: str = '"') -> list[Column]:
    """The columns that tell, by the row of names between start and end."""
    parts = rx(r"\S+(?: \S+)*|\s+").findall(text[start:end]) if sep == " " else text[start:end].split(sep)
    cell, found, at = rf"(?:{quote}[^{quote}\n]*{quote}|[^{sep}])*+", [], start
    for number, part in enumerate(parts):
        head = _trim(text, at, at + len(part))
        names = [named(text, word.start()) for word in rx(WITHIN).finditer(text, head.start, head.end)]
        for word, _, last, extra in filter(None, names):
            find = r"(?<!\S)(?P<v>\S+(?: \S+)*)" if sep == " " else r"(?P<v>[ \t>*`\"']*\S+)\s*\Z"
            if sep not in " \n":
                rest = rf"(?:[{sep}]{cell}){{{len(parts) - 1 - number}}}\Z" if sep != "|" else "[|]" * (number == 0)
                find = rf"(?:{cell}[{sep}]){{{number}}}(?P<v>{cell})" + rest
            if last >= head.end and word.rule != "key":
                # "token" heads many a column
                need = {",": word.quoted, "\n": word.bare + 1}.get(sep, word.bare) if word.rule == "password" else 4
                found.append(Column(word, need + extra, find, at - start if sep == " " else 0))
        at += len(part) + (sep != " ")
    return found


def _trim(text: str, start: int, end: int) -> Value:
    """A cell without what surrounds its text."""
    inner = text[start:end].strip(" \t\r>*`\"'")
    start = text.find(inner, start, end)
    return Value(start, start + len(inner), False)


def _judge_row(text: str, columns: list[Column], start: int, end: int) -> list[Finding | None]:
    """What the cells of a row are; empty if it is no row of this table."""
    cells = [(one, rx(one.find).match(text, start + one.at, end)) for one in columns]
    return [
        accept(text, one.word.rule, _trim(text, *cell.span("v")), one.need, one.word.short)
        for one, cell in cells
        if cell
    ]


def judge_below(text: str, pos: int, done: int) -> tuple[list[Finding | None], int]:
    """Secrets below what tells of them: in a table, an INSERT, a manifest of Kubernetes. And where these end."""
    if rx(MANIFEST).match(text, pos):
        return _judge_manifest(text, pos, done)
    if rx(HERE).match(text, pos):
        return _judge_here(text, pos, done)
    found: list[Finding | None] = []
    if values := rx(VALUES).match(text, pos):
        start, at = text.rfind("(", max(done, pos - 600), pos) + 1, values.end() - 1
        columns = _columns(text, start, pos, ",", "'") if start else []
        while columns and (group := rx(_TUPLE).match(text, at)):
            found += _judge_row(text, columns, at + 1, group.end(1))
            at = group.end()
        return found, at
    start, end = text.rfind("\n", max(0, pos - 600), pos) + 1, text.find("\n", pos, pos + 600)
    if end < 0 or start < max(done, pos - 599):
        return found, done
    at, stop = next_line(text, end)
    piped = text.find("|", start, end) >= 0
    names = None if piped else rx(_HEAD).fullmatch(text, start, end)
    if not (heads(text, end) if piped else names):
        return found, done
    sep = "|" if names is None else (names["sep"] or "\n")[0]  # a name alone in its line has one cell
    columns = _columns(text, start, end, sep)
    while columns and at < len(text):
        if not rx(RULED).fullmatch(text, at, stop):
            row = _judge_row(text, columns, at, stop)
            if not row and (sep != " " or at == stop):
                break
            found += row
            if sep == "\n":
                break
        at, stop = next_line(text, stop)
    return found, max(done, at if found else start)


_READS = r"(?i)\b(?:chpasswd|passwd|sudo\b[^\n]* -\w*S|su|login|kinit|ftp|sftp|cryptsetup|\S*password-stdin|passphrase-fd|openconnect|openvpn|smbpasswd)\b|[>/][^\n]{0,60}(?:passw|auth|secret|cred|token|pass)"


def _judge_here(text: str, pos: int, done: int) -> tuple[list[Finding | None], int]:
    """The lines of a here-document for a command that reads a password, or for a file of them."""
    begin = rx(HERE).match(text, pos)
    word = rx(r"<<[-~]?\s?[\"'\\]?(\w+)").match(text, pos)
    start = text.rfind("\n", max(0, pos - 300), pos) + 1
    if not begin or not word or not rx(_READS).search(text, max(start, pos - 300), begin.end()):
        return [], done
    sure = rx(r"(?:passwd|luks\w*|cryptsetup|stdin|-fd)\b").search(text, max(start, pos - 300), pos)
    stop = rx(rf"(?m)^[ \t]*{word[1]}\b").search(text, begin.end(), begin.end() + 3000)
    end, found = stop.start() if stop else begin.end(), []
    for line in rx(r"(?m)^[ \t]*(?:user [\w.@-]+ |[\w.@-]{1,40}:)?(?P<v>[^\s:]\S{3,100})[ \t\r]*$").finditer(
        text, begin.end(), end
    ):
        value = Value(*line.span("v"), False)
        found.append(
            accept(text, "password", value, 2 if line.start() == value.start and not sure else 1, literal=True)
        )
    return found, max(done, end)


def _judge_manifest(text: str, pos: int, done: int) -> tuple[list[Finding | None], int]:
    """The data of a Secret, in YAML or JSON."""
    begin, end = text.rfind("apiVersion", max(done, pos - 8000), pos), min(len(text), pos + 8000)
    begin = begin if begin >= 0 else pos
    other = rx(_OTHER).search(text, pos + 4, end)
    end, reach, found = other.start() if other else end, begin, []
    for data in rx(_DATA).finditer(text, begin, end):
        if data.start() < reach:
            continue
        depth = data.start() - text.rfind("\n", begin, data.start())
        close = r"\}" if data.group()[-1] == "{" else rf"\n[^A-Za-z\n]{{0,{depth - 1}}}[A-Za-z]"
        last = re.compile(close).search(text, data.end() - 1, end)
        for entry in rx(_ENTRY).finditer(text, data.end() - 1, last.start() if last else end):
            found.append(accept(text, "secret", Value(*entry.span("v"), True), 1))
            reach = entry.end()
    return found, end
