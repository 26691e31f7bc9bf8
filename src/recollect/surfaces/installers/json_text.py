"""Changes one place of a JSON text and leaves every other byte as it is: order, indentation, line ends, last newline.

Pure. Functions take the whole text and give the whole text back. What is not JSON is `NotJson`; nothing is guessed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from recollect.surfaces.installers.merge import Path, Syntax

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^,\]\}\s]+")
_BOM = "\ufeff"
EMPTY = "{}\n"  # what a new file begins with


class NotJson(ValueError):
    """The text is not JSON."""


@dataclass(slots=True)
class _Node:
    """A value and where it stands in the text."""

    start: int  # of the value; of the member's name where it has one
    value: int  # where the value itself begins
    end: int
    members: dict[str, _Node] | None = None  # of an object; of two equal names the last counts
    elements: list[_Node] = field(default_factory=list)  # of an array or object, in the order of the text


def or_empty(text: str | None) -> str:
    return EMPTY if text is None or not text.strip() else text


def value_of(text: str) -> Any:
    """What the text says."""
    try:
        return json.loads(text.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error) or "nested too deeply") from error


def put(text: str, path: Path, value: Any) -> str:
    """The value stands at the path: in place of what stood there, else behind the last of its siblings.

    Objects on the way that do not exist are made. A path that ends in the length of an array appends to it.
    """
    value_of(text)
    node, depth = _parse(text), 0
    while depth < len(path) and (found := _child(node, path[depth])) is not None:
        node, depth = found, depth + 1
    for name in reversed(path[depth + 1 :]):
        assert isinstance(name, str), "an array is not made by the way"
        value = {name: value}
    if depth == len(path):
        return text[: node.value] + _render(text, value, _indent_at(text, node.start), node) + text[node.end :]
    return _insert(text, node, path[depth], value)


def cut(text: str, path: Path) -> str:
    """Without what stands at the path, and without the objects and arrays that this leaves empty below the root."""
    value_of(text)
    chain = [_parse(text)]
    for step in path:
        found = _child(chain[-1], step)
        if found is None:
            return text
        chain.append(found)
    while len(chain) > 2 and len(chain[-2].elements) == 1:  # the last of its siblings takes its parent with it
        chain.pop()
    parent, gone = chain[-2], chain[-1]
    place = parent.elements.index(gone)
    if len(parent.elements) == 1:
        return text[: parent.value + 1] + text[parent.end - 1 :]
    if place + 1 < len(parent.elements):
        return text[: gone.start] + text[parent.elements[place + 1].start :]
    return text[: parent.elements[place - 1].end] + text[gone.end :]


def _insert(text: str, parent: _Node, name: str | int, value: Any) -> str:
    key = f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(name, str) else ""
    line = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(text, parent.start)
    if parent.elements:
        last = parent.elements[-1]
        inner = _indent_at(text, last.start)
        if inner is None:  # all on one line
            return text[: last.end] + ", " + key + _render(text, value, None) + text[last.end :]
        return text[: last.end] + "," + line + inner + key + _render(text, value, inner) + text[last.end :]
    if outer is None:
        return text[: parent.value + 1] + key + _render(text, value, None) + text[parent.end - 1 :]
    inner = outer + _unit(text)
    filled = line + inner + key + _render(text, value, inner) + line + outer
    return text[: parent.value + 1] + filled + text[parent.end - 1 :]


def _render(text: str, value: Any, indent: str | None, old: _Node | None = None) -> str:
    """As the surroundings are written; what replaces something on one line stays on one line."""
    on_one_line = indent is None or (old is not None and old.elements and "\n" not in text[old.value : old.end])
    if on_one_line:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (("\r\n" if "\r\n" in text else "\n") + (indent or "")).join(lines)


def _unit(text: str) -> str:
    """One step of indentation."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent_at(text: str, place: int) -> str | None:
    """The white space before what begins a line; None when something else stands before it on its line."""
    before = text[text.rfind("\n", 0, place) + 1 : place]
    before = before.removeprefix(_BOM)
    return None if before.strip(" \t") else before


def _child(node: _Node, step: str | int) -> _Node | None:
    if isinstance(step, str):
        if node.members is None:
            raise NotJson(f"`{step}` is looked for in something that is no object")
        return node.members.get(step)
    return node.elements[step] if node.members is None and step < len(node.elements) else None


def _parse(text: str) -> _Node:
    try:
        return _value(text, _skip(text, len(_BOM) if text.startswith(_BOM) else 0))
    except RecursionError as error:
        raise NotJson("nested too deeply") from error


def _value(text: str, at: int, start: int | None = None) -> _Node:
    """The value that begins at `at`; the text is known to be JSON."""
    begin = at if start is None else start
    if text[at] not in "{[":
        found = (_STRING if text[at] == '"' else _SCALAR).match(text, at)
        assert found
        return _Node(begin, at, found.end())
    node = _Node(begin, at, at, {} if text[at] == "{" else None)
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        first, name = at, None
        if node.members is not None:
            found = _STRING.match(text, at)
            assert found
            name, at = json.loads(found[0]), _skip(text, _skip(text, found.end()) + 1)
        child = _value(text, at, first)
        node.elements.append(child)
        if node.members is not None and name is not None:
            node.members[name] = child
        at = _skip(text, child.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    node.end = at + 1
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found
    return found.end()


JSON = Syntax(value_of, put, cut)
