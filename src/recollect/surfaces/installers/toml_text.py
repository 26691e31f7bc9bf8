"""Adds a table to a TOML text and takes it away again, with every other byte as it was.

Pure. A change is tried on the lines of the text first and held against what it should say; where that cannot be done
(inline tables, dotted keys) tomlkit does it, which keeps comments but may move some with the table that they follow.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import suppress
from tomllib import loads
from typing import TYPE_CHECKING, Any

from recollect.surfaces.installers.merge import Path

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_HEADER = re.compile(r"\s*\[\[?(?P<name>.*?)\]\]?\s*(#.*)?")


def parse(text: str) -> TOMLDocument:
    import tomlkit  # it costs 30 ms, and every command looks at settings
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from error


def _dumps(document: Any) -> str:
    import tomlkit

    return tomlkit.dumps(document)


def put(text: str, path: Path, value: Any) -> str:
    """The value stands at the path: in place of what stood there, else in a table, or behind its last element."""
    if len(path) <= 3 and _at(loads(text), path) is None and isinstance(path[-1], int) == (len(path) == 3):
        return _appended(text, path, value)
    *way, last = path
    if _at(loads(text), tuple(way)) is None:
        way, last, value = way[:-1], way[-1], {last: value}
    document: Any = parse(text)
    _at(document, tuple(way))[last] = value
    return _dumps(document)


def _appended(text: str, path: Path, value: Any) -> str:
    """With a table, or with elements of an array of tables, at the end; in its place where that cannot be."""
    table, name, more = str(path[0]), str(path[1]), [value] if len(path) == 3 else value
    wanted = loads(text)
    parent = wanted.setdefault(table, {})
    parent[name] = [*parent.get(name, []), *more] if isinstance(more, list) else more
    line = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else line if text.endswith("\n") else line * 2
    candidate = text + gap + _dumps({table: {name: more}}).replace("\n", line)
    if _says(candidate, wanted):
        return candidate
    document: Any = parse(text)
    if isinstance(more, list) and name in document[table]:
        document[table][name].extend(more)
    else:
        document[table][name] = more
    return _dumps(document)


def without(text: str, path: Path) -> str:
    """Without what stands at the path, nor the tables and arrays that this leaves empty."""
    while len(path) > 2 and len(_at(loads(text), path[:-1])) == 1:  # the last of its siblings takes its parent with it
        path = path[:-1]
    text = _without(text, path)
    for end in range(len(path) - 1, 0, -1):
        if _at(loads(text), path[:end]) in ({}, []):
            text = _without(text, path[:end])
    return text


def _without(text: str, path: Path) -> str:
    wanted = copy.deepcopy(loads(text))
    del _at(wanted, path[:-1])[path[-1]]
    for candidate in _cuts(text, path):
        if _says(candidate, wanted) or _says(candidate, _pruned(wanted, path)):
            return candidate
    document: Any = parse(text)
    del _at(document, path[:-1])[path[-1]]
    return _dumps(document)


def _cuts(text: str, path: Path) -> Iterator[str]:
    """The text without the lines of each table of that name, with its blank line and what lies below it."""
    own = tuple(step for step in path if isinstance(step, str))
    lines = text.splitlines(keepends=True)
    headers = [(number, name) for number, line in enumerate(lines) if (name := _name(line))]
    for place, (start, name) in enumerate(headers):
        if name != own:
            continue
        end = next((at for at, other in headers[place + 1 :] if other[: len(own)] != own or other == own), len(lines))
        while not lines[end - 1].split("#")[0].strip():  # comments and blank lines belong to what follows
            end -= 1
        if start and not lines[start - 1].strip():
            start -= 1
        yield "".join(lines[:start] + lines[end:])


def _name(line: str) -> tuple[str, ...]:
    """Of the table that a line opens; empty when it opens none."""
    if not (found := _HEADER.fullmatch(line)):
        return ()
    with suppress(ValueError):
        name: list[str] = []
        inner: Any = loads(f"[{found['name']}]")
        while inner:
            ((step, inner),) = inner.items()
            name.append(step)
        return tuple(name)
    return ()


def _at(document: Any, path: Path) -> Any:
    """What stands at a path; None when nothing does."""
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError):
            return None
    return document


def _pruned(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """Without empty parents: a table that is named nowhere but in the names of others goes with the last of them."""
    document = copy.deepcopy(document)
    for end in range(len(path) - 1, 0, -1):
        if _at(document, path[:end]) in ({}, []):
            del _at(document, path[: end - 1])[path[end - 1]]
    return document


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return loads(text) == wanted
    except ValueError:
        return False
