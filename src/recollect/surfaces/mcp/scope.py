"""Which project a call is about. Fails closed: when nobody says, the answer is an error that tells what to do.

The first that says something wins: the call's own `project`, the `--project` the server was started with, the first of
the client's roots, the folder the server was started in (Claude Code and Codex start it in the session's folder; a
desktop application starts it anywhere, so the root of the disk and the user's home folder are no project). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

from recollect.errors import UsageError


class NoProject(UsageError):
    """It is not known which project this is about."""

    hint = "Pass `project`: the absolute path of the project's folder, or its project id."


@dataclass(frozen=True, slots=True)
class Launch:
    """What the start of the server says about the project."""

    project: str = ""  # --project; empty: not given
    folder: str = ""  # where it was started; empty: that says nothing, as in a daemon
    user_home: str = ""
    session: str = ""  # of the agent that started it, where it says so


def place(argument: str | None, launch: Launch, roots: Sequence[str]) -> str:
    """A path or a project id."""
    if argument is not None:
        if not argument.strip() or argument.strip() in ("*", "all"):
            raise NoProject(f"{argument!r} is no project")
        if argument.strip().startswith(".") and not launch.folder:
            raise NoProject(f"{argument!r} is a folder from where nobody is")
        return argument.strip()
    if launch.project:
        return launch.project
    if folders := [folder for root in roots if (folder := folder_of(root))]:
        return folders[0]
    if launch.folder and PurePath(launch.folder) not in (PurePath("/"), PurePath(launch.user_home or "/")):
        return launch.folder
    raise NoProject()


def folder_of(root: str) -> str:
    """The path of a `file://` URI; empty for any other."""
    parts = urlsplit(root)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else ""
