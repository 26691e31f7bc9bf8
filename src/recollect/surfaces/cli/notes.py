"""What the commands about single memories share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from recollect.note import hand
from recollect.surfaces.cli.common import echo, print_json
from recollect.types import MemoryKind, Remembered, Severity

REMEMBERED = "Remembered"

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kind_options(function: _Function) -> _Function:
    severity = click.Choice([str(each) for each in Severity])
    function = click.option("--severity", type=severity, help="How strict it is. [default: as the words tell]")(
        function
    )
    kind = click.Choice([str(each) for each in MemoryKind])
    return click.option("--kind", type=kind, help="What it is. [default: as the words tell]")(function)


when_option = click.option(
    "--when",
    multiple=True,
    metavar="PROMPT",
    help="A prompt that it matters to, in other words than its own; up to six. It is found by them, too.",
)


def as_kind(given: str | None) -> MemoryKind | None:
    return MemoryKind(given) if given else None


def as_severity(given: str | None) -> Severity | None:
    return Severity(given) if given else None


def tell(found: Remembered, done: str, as_json: bool) -> int:
    if as_json:
        told = ("id", "revision", "kind", "severity", "scope", "scope_id", "pinned", "text")
        print_json({name: getattr(found, name) for name in told} | {"hand": hand(found)})
    else:
        parts = [str(found.kind).replace("_", " "), str(found.severity).replace("_", " "), str(found.scope)]
        labels = ", ".join(part for part in [*parts, "pinned" if found.pinned else ""] if part not in ("", "none"))
        echo(f"{done} {found.id}, revision {found.revision} ({labels}): {' '.join(found.text.split())}")
        if done == REMEMBERED and found.revision > 1 and len(found.sources) == 1:
            echo("It takes the place of what that memory said before.")
    return 0
