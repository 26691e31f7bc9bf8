"""The error tree. Everything a person can act on is a RecollectError; bugs pass through untouched.

    RecollectError
    ├── UsageError            the call was wrong: exit status 2
    │   ├── ConfigError       a key, value or file of the configuration
    │   ├── UnknownSource     no such transcript format
    │   ├── UnknownMemory     no memory of that id
    │   ├── NotFound          no such record, or more than one
    │   ├── Unconfirmed       a folder says that it is a known project, and nobody has confirmed it
    │   ├── Outdated          somebody changed it since it was looked at
    │   └── NotForAgents      only a person may do that
    ├── StoreError            the database said no
    │   ├── StoreBusy         not now, another process holds it; try again
    │   │   └── StoreAway     not now, its server does not answer
    │   ├── StoreDamaged      the file is no database, or a broken one
    │   ├── StoreFull         no space left on the device
    │   └── SchemaTooNew      written by a newer recollect
    ├── LeaseLost             somebody else owns the job now; nothing was written
    ├── InvalidTransition     a state change that the life cycle does not allow
    ├── ArtifactError         a canonical file is not what it has to be (kinds of it in `artifacts`)
    ├── UnsafeHome            others could have put files into the home (in `home`)
    ├── NoteWaits             a note is written down, and is no memory yet
    ├── HalfErased            a removal was cut short; nothing of it comes in again
    ├── ModelFailed           a model gave no answer (in `models.base`, with the reason)
    └── Disabled              enabled = false in the configuration

A subclass's docstring is its default message; `hint` says what to do about it. `kind` names the error in JSON.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

_Choice = TypeVar("_Choice", bound=StrEnum)


def no_file(path: Path) -> str:
    """Why a path that a person named cannot be read as a file."""
    return f"{path}: {'not a regular file' if path.exists() else 'no such file'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """What to add where somebody wrote `name`; empty where nothing known is like it."""
    import difflib  # for mistakes only

    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean `{found[0]}`?" if found else ""


def one_of(known: type[_Choice], value: str, what: str) -> _Choice:
    """The choice of that name."""
    try:
        return known(value)
    except ValueError:
        raise UsageError(f"`{value}`: {what} is one of {', '.join(known)}") from None


class RecollectError(Exception):
    """Something went wrong."""

    hint: str = ""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        if hint:
            self.hint = hint

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def message(self) -> str:
        return str(self.args[0])


class UsageError(RecollectError):
    """The call was wrong."""


class ConfigError(UsageError):
    """The configuration is wrong."""

    hint = "docs/configuration.md lists every key."


class UnknownSource(UsageError):
    """No such transcript format."""


class NotFound(UsageError):
    """There is no such record."""


class Unconfirmed(UsageError):
    """The folder says that it is a known project, and nobody has confirmed it."""

    @classmethod
    def of(cls, folder: str, claim: str) -> Unconfirmed:
        command = f"recollect project confirm {shlex.quote(folder)}"
        return cls(
            f"{folder} says that it is {claim}, which is known from another folder",
            hint=f"`{command}`, if it is yours. Until then agents there are told nothing.",
        )


class UnknownMemory(UsageError):
    """No memory of that id."""

    hint = "Ids begin with m- and stand at the end of a memory's line in MEMORY.md, in the workspace and in summaries."


class Outdated(UsageError):
    """It is something else by now."""

    hint = "Nothing was changed. Look at it as it is now, and do it again."


class NotForAgents(UsageError):
    """Only a person may do that."""


class StoreError(RecollectError):
    """The database could not be used."""


class StoreBusy(StoreError):
    """Another process is holding the database."""

    hint = "Try again in a moment; `recollect status` shows what is running."


class StoreAway(StoreBusy):
    """The database's server does not answer."""

    hint = "Check the `database` URL and that the server runs."


class StoreDamaged(StoreError):
    """The database file is damaged or is no database."""

    hint = "`recollect doctor --fix` sets the file aside and rebuilds it from the canonical files."


class StoreFull(StoreError):
    """No space is left for the database."""

    hint = "Free some disk space and run the command again; nothing was lost."


class SchemaTooNew(StoreError):
    """The database was written by a newer recollect."""

    hint = "Upgrade recollect: an older one cannot read what a newer one wrote."


class LeaseLost(RecollectError):
    """The lease was lost; nothing was written."""


class InvalidTransition(RecollectError):
    """That state change is not allowed."""


class ArtifactError(RecollectError):
    """A canonical file is not what it has to be."""

    hint = "Nothing was overwritten. Put the file back as it was, or move it away, and run `recollect retry`."


class NoteWaits(RecollectError):
    """The note is written down, but it is no memory yet."""

    hint = "Nothing is lost: `recollect ingest` and `recollect process` take it up."


class HalfErased(RecollectError):
    """The removal is not done yet."""

    hint = "Nothing of it comes in again. Whatever runs next erases the rest: `recollect process`, say."


class Disabled(RecollectError):
    """recollect is switched off."""

    hint = "Set enabled = true in config.toml to switch it on."
