"""A memory changed, or a conversation was erased: the workspace says so at once, without a consolidation.

Only items that cite the memory are touched, and each becomes the line that the memory has now, or goes where a person
called it wrong. What else an item said comes back with the next consolidation, which is due.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Set

from recollect.consolidate import render
from recollect.text import content_words
from recollect.types import Remembered
from recollect.workspace import READ_LIMIT, Workspace

_BEGINS = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s|#|\||```")


def restated(text: str, memory: Remembered, *, wrong: bool = False) -> str:
    """The text with the memory as it is now, wherever it is cited. Pure."""
    name = render.memory_name(memory.id)
    line = f"- {render.one_line(memory.text)} ({render.label(memory)}) {render.cite_memory(memory.id)}\n"
    line = "" if wrong else line
    return "".join(line if name in render.MEMORY.findall(item) else item for item in _items(text))


def cited(text: str) -> set[str]:
    """Names of the conversations and memories that a text cites."""
    return {*render.SOURCE.findall(text), *render.MEMORY.findall(text)}


def struck(text: str, known: Set[str]) -> str:
    """The text without items that cite what is not `known` by its name, or nothing: whose words those are nobody can
    tell. A heading goes that has no item left, or a word that none of its items has. Pure."""
    kept: list[str] = []
    for item in reversed(list(_items(text))):
        if item.startswith("# "):
            kept.append(item)
        elif item.startswith("#"):
            below = "".join(reversed(kept)).partition("\n#")[0]
            if below.strip() and not below.startswith("#") and content_words(item) <= content_words(below):
                kept.append(item)
        elif names := cited(item):
            kept += [item] if names <= known else []
        elif not item.strip() and kept and kept[-1].strip():
            kept.append(item)
    return "".join(reversed(kept))


def restate(workspace: Workspace, *memories: Remembered, wrong: Collection[str] = ()) -> int:
    """How many files changed; those of other people never do. `wrong` are ids of what was called so. ToolRefused and
    OSError when one could not be."""
    changed, now = 0, {render.memory_name(each.id): each for each in memories}
    with workspace.alone():
        for path in workspace.files():
            if render.is_raw(path) or render.is_kept(path):
                before = after = workspace.read(path)
                for each in now.keys() & set(render.MEMORY.findall(before)):
                    after = restated(after, now[each], wrong=now[each].id in wrong)
                changed += after != before and workspace.write(path, after, limit=READ_LIMIT)
    return changed


def _items(text: str) -> Iterator[str]:
    """List items and paragraphs as a whole, everything else line by line; together they are the text."""
    item = ""
    for line in text.splitlines(keepends=True):
        if item and (not line.strip() or _BEGINS.match(line)):
            yield item
            item = ""
        item += line
        if not line.strip() or line.startswith("#"):
            yield item
            item = ""
    if item:
        yield item
