"""The prompts of phase 2: files with a version in their name. A changed prompt is a new file, never an edited one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

WORK = "consolidate_v2"  # for an agent with tools
ANSWER = "consolidate_answer_v2"  # for one structured answer


@cache
def _template(name: str) -> Template:
    return Template(files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8"))


def prompt(name: str, **values: object) -> str:
    """The prompt with its values filled in; one that is missing, or not asked for, is an error."""
    template = _template(name)
    if unknown := set(values) - set(template.get_identifiers()):
        raise KeyError(f"{name} does not ask for {', '.join(sorted(unknown))}")
    return template.substitute(values)
