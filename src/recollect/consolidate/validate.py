"""What a result must be before it counts. Pure: the same rules for an agent, an answer and our own files.

Citations are `[session_key]` for a conversation and `^m-…` for a memory. A source belongs to a project when its
conversation took place there, or when it states a memory of that project; to the user-wide summary when it states a
user-wide memory, or had no project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from recollect.consolidate import render
from recollect.consolidate.offline import SUMMARY_TOKENS
from recollect.consolidate.selection import Selection
from recollect.near import Near, weigh
from recollect.text import content_words, estimate_tokens
from recollect.types import Remembered, Scope
from recollect.workspace import FILE_LIMIT

_HELD = 0.9  # a line that holds so much of a statement states it
_SHORTEST = 3  # statements of fewer words are too common to tell whose they are
_LABEL = re.compile(r"\((?:[a-z ]+, )*\d{4}-\d\d-\d\d\)|^- \d{4}-\d\d-\d\d:")


class Standard:
    """The rules for one selection. `memories` are the current ones that the chosen conversations state."""

    def __init__(self, selection: Selection, memories: Sequence[Remembered]) -> None:
        self.paths = render.project_paths(selection, memories)
        self._rows = [each.row for each in selection.chosen]
        self._memories = memories
        self._projects = {path: project_id for project_id, path in self.paths.items()}
        self._by_id = {render.memory_name(memory.id): memory for memory in memories}
        self._chosen = {render.source_name(each.row.session_key): each.row.session_key for each in selection.chosen}
        self._removed = {render.source_name(key) for key in selection.removed}
        self._homes: dict[str, set[str | None]] = {row.session_key: {row.project_id or None} for row in self._rows}
        for memory in memories:
            if memory.scope is not Scope.CONVERSATION:
                for key, _ in memory.sources:
                    self._homes[key].add(memory.scope_id or None)
        words = [content_words(memory.text) for memory in memories]
        self._statements: Near[Remembered] = Near(weigh(words), _HELD)
        for memory, said in zip(memories, words, strict=True):
            if memory.scope is Scope.PROJECT and len(said) >= _SHORTEST:
                self._statements.add(said, memory)
        self._own: dict[str | None, list[frozenset[str]]] = {}
        self._news: dict[str, set[str]] = {}  # a conversation that is added → its name and those of what it states
        added = set(selection.added)
        for memory in memories:
            for key, _ in memory.sources:
                if key in added and memory.scope is not Scope.CONVERSATION:
                    name = render.source_name(key)
                    self._news.setdefault(name, {name}).add(render.memory_name(memory.id))

    @property
    def required(self) -> tuple[str, ...]:
        return (render.HANDBOOK, render.SUMMARY, *self.paths.values())

    def problems(self, files: Mapping[str, str]) -> list[str]:
        """Everything that is wrong with a result; nothing: it counts."""
        found = [f"{path} is missing" for path in self.required if not files.get(path, "").strip()]
        for path in sorted(files):
            found += self.problems_of(path, files[path])
        return found

    def problems_of(self, path: str, text: str) -> list[str]:
        if path not in self.required:
            return [f"{path} is none of the files to keep"]
        if len(text.encode("utf-8", "replace")) > FILE_LIMIT:
            return [f"{path} has more than {FILE_LIMIT} bytes"]
        found = []
        if path != render.HANDBOOK and (tokens := estimate_tokens(text)) > SUMMARY_TOKENS:
            found.append(f"{path} has {tokens} tokens, and {SUMMARY_TOKENS} are the most")
        found += self._citations(path, text)
        if path != render.HANDBOOK:
            found += self._leaks(path, text)
        return found

    def missing(self, text: str) -> list[str]:
        """Conversations that are added and state what holds beyond them, of which a text cites nothing."""
        cited = {*_names(text, list(self._chosen)), *render.MEMORY.findall(text)}
        return [name for name, names in self._news.items() if not names & cited]

    def idleness(self, files: Mapping[str, str]) -> list[str]:
        """What is wrong with a model's result though no line of it is: nothing of what is new is in it."""
        missing = self.missing("\n".join(files.values()))
        if not missing or len(missing) < len(self._news):
            return []
        return [f"nothing of what is new is cited, such as [{missing[0]}]"]

    def _citations(self, path: str, text: str) -> Iterator[str]:
        for name in _names(text, [*self._chosen, *self._removed]):
            if name in self._removed:
                yield f"{path} still cites [{name}], which was removed"
            elif name not in self._chosen:
                yield f"{path} cites [{name}], which is not among the sources"
            elif path != render.HANDBOOK and self._projects.get(path) not in self._homes[self._chosen[name]]:
                yield f"{path} cites [{name}], a source of another project"
        for name in dict.fromkeys(render.MEMORY.findall(text)):
            memory = self._by_id.get(name)
            if memory is None:
                yield f"{path} cites ^{name}, which is no current memory of the sources"
            elif path != render.HANDBOOK and not _may_stand(memory, self._projects.get(path)):
                yield f"{path} cites ^{name}, which belongs elsewhere"

    def _leaks(self, path: str, text: str) -> Iterator[str]:
        project_id = self._projects.get(path)
        for line in _statements(text):
            for said, memory in self._statements.within(content_words(line)):
                if not _may_stand(memory, project_id) and not self._is_known(said, project_id):
                    name = render.cite_memory(memory.id)
                    yield f"{path} states {name} of {render.one_line(memory.scope_id)}: {line[:120]!r}"

    def _is_known(self, said: frozenset[str], project_id: str | None) -> bool:
        """Does the summary's own scope say the same?"""
        return any(len(said & own) >= _HELD * len(said) for own in self._own_words(project_id))

    def _own_words(self, project_id: str | None) -> list[frozenset[str]]:
        """What was said in the conversations of a project (None: of none), and its memories."""
        if project_id not in self._own:
            texts = [memory.text for memory in self._memories if _may_stand(memory, project_id)]
            for row in self._rows:
                if (row.project_id or None) == project_id:
                    texts += [row.rollout_summary, row.memory_sentence, *_statements(row.raw_memory)]
            self._own[project_id] = [content_words(text) for text in texts]
        return self._own[project_id]


def _may_stand(memory: Remembered, project_id: str | None) -> bool:
    """In the summary of the project (None: the user-wide one)?"""
    return memory.scope is Scope.USER or (memory.scope is Scope.PROJECT and memory.scope_id == project_id)


def _names(text: str, known: Sequence[str]) -> list[str]:
    """Conversations that a text cites, each once: in the form of a citation, or by a known name of any form."""
    odd = [name for name in known if not render.SOURCE.fullmatch(f"[{name}]") and f"[{name}]" in text]
    return list(dict.fromkeys([*render.SOURCE.findall(text), *odd]))


def _statements(text: str) -> Iterator[str]:
    """Lines without citations and labels; one that goes on in the next is taken together with it."""
    run = ""
    for line in render.MEMORY.sub("", render.SOURCE.sub("", text)).splitlines():
        if run and (not line.strip() or line.lstrip()[0] in "-*+#>|" or line.lstrip()[0].isdigit()):
            yield run
            run = ""
        run = f"{run} {_LABEL.sub('', line).strip()}".strip()
    if run:
        yield run
