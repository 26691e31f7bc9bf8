"""Consolidation by a language model: an agent with five tools in a staging folder, or one structured answer.

Either way the result is a mapping of files that nobody has published yet, without secrets and NUL characters. The
agent works on a copy; what it may write is listed, and what breaks a rule is refused while it can still correct it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from recollect.config import Config
from recollect.consolidate import render
from recollect.consolidate.offline import SUMMARY_TOKENS
from recollect.consolidate.prompts import ANSWER, WORK, prompt
from recollect.consolidate.selection import Selection, latest_first
from recollect.consolidate.validate import Standard
from recollect.markdown import displayed, unescape_markdown
from recollect.models.base import Answer, Failure, LanguageModel, Limits, ModelFailed, Tool, ToolRefused
from recollect.redact import redact
from recollect.text import estimate_tokens
from recollect.types import Remembered, Scope
from recollect.workspace import FILE_LIMIT, READ_LIMIT, Workspace

_PAGE = 40_000  # characters that one call of read_file returns
_NAMED = 10  # problems, or conversations, that an answer to a call lists


class ProjectSummary(BaseModel):
    project_id: str = Field(description="exactly as the content gives it")
    summary: str = Field(description="what a new session in this project should know, as Markdown")


class Consolidated(BaseModel):
    handbook: str = Field(description="everything that is known, by project and topic, every line with its source")
    summary: str = Field(description="only what holds in every project")
    projects: list[ProjectSummary]


@dataclass(frozen=True, slots=True)
class Task:
    """What there is to consolidate."""

    selection: Selection
    memories: Sequence[Remembered]  # current ones that the chosen conversations state
    standard: Standard
    kept: Mapping[str, str]  # handbook and summaries as they are
    raw: Mapping[str, str]  # raw memories and rollout summaries of the union


def prompt_name(model: LanguageModel) -> str:
    return WORK if model.has_tools else ANSWER


def consolidate(model: LanguageModel, task: Task, staging: Workspace, config: Config) -> Answer[dict[str, str]]:
    """The files of the result. ModelFailed when there is none."""
    if model.has_tools:
        return _work(model, task, staging, config)
    return _answer(model, task, config)


def clean(text: str) -> str:
    """What a model wrote, as it may be stored: no secrets, no NUL, nothing that an editor fetches or hides, valid text
    that ends in a line break."""
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    text = displayed(unescape_markdown(text)).replace("\\^m-", "^m-")  # our own citations stay block ids
    return redact(text).strip() + "\n" if text.strip() else ""


# With tools


def _work(model: LanguageModel, task: Task, staging: Workspace, config: Config) -> Answer[dict[str, str]]:
    for path, text in {**task.raw, **task.kept}.items():
        staging.write(path, text, limit=READ_LIMIT)
    limits = Limits(
        config.consolidation_timeout_seconds, config.consolidation_max_requests, config.consolidation_max_tokens
    )
    instructions = prompt(
        WORK, summary_tokens=SUMMARY_TOKENS, file_bytes=FILE_LIMIT, answer_tokens=config.model_output_tokens
    )
    written: set[str] = set()
    done = model.work(instructions, work_content(task), tools(staging, task.standard, written), limits)
    is_news = bool(task.selection.added) or render.HANDBOOK not in task.kept
    if is_news and render.HANDBOOK not in written:  # what lies there is what lay there before
        raise ModelFailed(Failure.INVALID, f"{render.HANDBOOK} was not written", usage=done.usage)
    present = set(staging.files())
    return Answer({path: clean(staging.read(path)) for path in task.standard.required if path in present}, done.usage)


def work_content(task: Task) -> str:
    """The task: which conversations, which projects. Names come out of conversations too, so they are fenced."""
    return (
        "Conversations since the last consolidation:\n\n"
        f"{render.fenced(render.diff(task.selection))}\n\n"
        f"Projects, and where the summary of each belongs:\n\n{render.fenced(_projects(task))}"
    )


def tools(staging: Workspace, standard: Standard, written: set[str]) -> list[Tool]:
    """list, read, search, write, edit: in the staging folder and nowhere else. `written` is told what was."""
    return [*_reading(staging), *_writing(staging, standard, written)]


def _reading(staging: Workspace) -> list[Tool]:
    def list_files() -> str:
        """Names every file in the folder, one per line."""
        return "\n".join(staging.files()) or "(no files)"

    def read_file(path: str, first_line: int = 1) -> str:
        """Reads a file. A long one comes in pages: the last line says where to go on.

        Args:
            path: relative path, as list_files gives it
            first_line: the line to begin with
        """
        lines = staging.read(path).splitlines()
        page: list[str] = []
        size = 0
        for number, line in enumerate(lines[max(first_line, 1) - 1 :], max(first_line, 1)):
            size += len(line) + 1
            if page and size > _PAGE:
                return "\n".join([*page, f"(goes on: first_line={number} of {len(lines)})"])
            page.append(line[:_PAGE])
        return "\n".join(page)

    def search_files(query: str) -> str:
        """Finds lines that hold the text, or all of its words, in every file.

        Args:
            query: text to look for; upper and lower case are the same
        """
        return "\n".join(staging.search(query)) or "(nothing found)"

    return [list_files, read_file, search_files]


def _writing(staging: Workspace, standard: Standard, written: set[str]) -> list[Tool]:
    def check(path: str) -> None:
        if path not in standard.required:
            allowed = ", ".join(standard.required)
            raise ToolRefused(f"{path}: read-only, or not one of the files to keep ({allowed})")

    def keep(path: str, text: str, before: str = "") -> str:
        """Refused is what was not wrong `before`; what was is told."""
        text = clean(text)
        known = standard.problems_of(path, before)
        problems = standard.problems_of(path, text)
        if fresh := [each for each in problems if each not in known]:
            raise ToolRefused("not written: " + "; ".join(fresh[:_NAMED]))
        staging.write(path, text)
        written.add(path)
        missing = standard.missing(text) if path == render.HANDBOOK else []
        said = [
            f"{path}: written, {estimate_tokens(text)} tokens",
            *(f"as before, {each}" for each in problems[:_NAMED]),
        ]
        if missing:
            names = ", ".join(f"[{name}]" for name in missing[:_NAMED])
            said.append(f"{len(missing)} added conversations are not cited yet: {names}")
        return "; ".join(said)

    def write_file(path: str, text: str) -> str:
        """Writes a whole file, replacing what it held.

        Args:
            path: handbook.md, summary.md or the summary of a project, as the task lists them
            text: everything the file shall hold
        """
        check(path)
        return keep(path, text)

    def edit_file(path: str, old: str, new: str) -> str:
        """Replaces one passage of a file, or adds to its end: for files that are too long to be written at once.

        Args:
            path: as for write_file
            old: the passage, exactly as it stands there and long enough to stand there once; empty: the end
            new: what shall stand there instead
        """
        check(path)
        before = staging.read(path) if path in staging.files() else ""
        if not old:
            return keep(path, before + new, before)
        if (times := before.count(old)) != 1:
            raise ToolRefused(f"{path}: the passage must stand there once, not {times} times")
        return keep(path, before.replace(old, new), before)

    return [write_file, edit_file]


# In one answer


def _answer(model: LanguageModel, task: Task, config: Config) -> Answer[dict[str, str]]:
    instructions = prompt(ANSWER, summary_tokens=SUMMARY_TOKENS)
    content = answer_content(task, config.model_part_tokens)
    done = model.answer(instructions, content, Consolidated, seconds=config.consolidation_timeout_seconds)
    files = {render.HANDBOOK: clean(done.value.handbook), render.SUMMARY: clean(done.value.summary)}
    paths = {render.one_line(project_id): path for project_id, path in task.standard.paths.items()}  # as it was told
    for project in done.value.projects:
        name = render.one_line(project.project_id)
        files[paths.get(name) or render.project_path(name)] = clean(project.summary)
    return Answer(files, done.usage)


def answer_content(task: Task, budget: int) -> str:
    """Everything the model is told, within a budget: what is new before what is known. What is left out is counted."""
    parts = [
        f"Conversations since the last consolidation:\n\n{render.fenced(render.diff(task.selection))}",
        f"Projects:\n\n{render.fenced(_projects(task))}",
    ]
    room = budget - estimate_tokens("\n\n".join(parts))
    new = set(task.selection.added)
    offered: tuple[list[str], list[str]] = ([], [])
    for memory in task.memories:
        offered[not any(key in new for key, _ in memory.sources)].append(_memory(memory))
    found: tuple[list[str], list[str]] = ([], [])
    for each in latest_first(task.selection.chosen):
        text = f"Found in {render.cite_source(each.row.session_key)}:\n\n{render.fenced(each.row.raw_memory)}"
        found[each.row.session_key not in new].append(text)
    files = [f"{path} as it is:\n\n{render.fenced(task.kept[path])}" for path in sorted(task.kept)]
    lines, room = _fitting(offered[0], room)
    texts, room = _fitting([*found[0], *files], room)
    more_lines, room = _fitting(offered[1], room)
    more_texts, room = _fitting(found[1], room)
    lines, texts = lines + more_lines, texts + more_texts
    parts += [f"Memories:\n\n{render.fenced(chr(10).join(lines))}", *texts]
    if left_out := sum(map(len, (*offered, *found, files))) - len(lines) - len(texts):
        parts.append(f"({left_out} memories, findings and files are left out for length.)")
    return "\n\n".join(parts)


def _fitting(texts: Sequence[str], room: int) -> tuple[list[str], int]:
    """Those that fit, in order, and the room that is left."""
    taken = []
    for text in texts:
        cost = estimate_tokens(text) + 1
        if cost <= room:
            room -= cost
            taken.append(text)
    return taken, room


def _projects(task: Task) -> str:
    lines = [f"- {render.one_line(project_id)} → {path}" for project_id, path in task.standard.paths.items()]
    return "\n".join(lines) or "(none)"


def _memory(memory: Remembered) -> str:
    where = "every project" if memory.scope is Scope.USER else render.one_line(memory.scope_id)
    sources = " ".join(render.cite_source(key) for key in sorted({key for key, _ in memory.sources})[-3:])
    said = f"{render.one_line(memory.text)} ({render.label(memory)}; {where})"
    return f"- {said} {sources} {render.cite_memory(memory.id)}"
