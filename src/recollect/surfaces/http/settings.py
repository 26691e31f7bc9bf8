"""What can be set from the page: whether a project is switched off, and the cap of tokens. Nothing else.

Whoever could set an address of a model, a database or folders to read could send memory away; a page in a browser is
not the place for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from recollect.errors import ConfigError, RecollectError, UsageError
from recollect.surfaces.http.app import Ask, View, status_of
from recollect.surfaces.installers import files, toml_text

_MOST = 1_000_000_000  # tokens a day


def switch(ask: Ask) -> Response:
    """A project is read and told of from now on, or no more."""
    return _set(ask, {"project", "on"}, _switched)


def cap(ask: Ask) -> Response:
    """The most tokens of a day."""
    return _set(ask, {"max_tokens_per_day"}, _capped)


def _switched(ask: Ask) -> tuple[str, Any]:
    project, off = ask.form.get("project", ""), list(ask.memory.settings.config.disabled_projects)
    if project not in {each for each, _ in ask.memory.projects()} | set(off):
        raise UsageError("no such project is known", hint="Choose one of the list.")
    if ask.form.get("on") not in ("yes", "no"):
        raise UsageError("the form does not say whether it is on")
    kept = [each for each in off if each != project]
    return "disabled_projects", kept if ask.form["on"] == "yes" else [*kept, project]


def _capped(ask: Ask) -> tuple[str, Any]:
    text = ask.form.get("max_tokens_per_day", "").strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or int(text[:12]) > _MOST:
        raise UsageError(f"a cap is a whole number from 0 to {_MOST:,}", hint="0 stands for no cap.")
    return "max_tokens_per_day", int(text)


def _set(ask: Ask, fields: set[str], chosen: Any) -> Response:
    from recollect.surfaces.http.views import show_workings

    try:
        if set(ask.form) - fields - {"back"}:
            raise UsageError("this form has another field than it should")
        key, value = chosen(ask)
        write(ask, key, value)
    except RecollectError as error:
        return show_workings(ask, status_of(error), error, ask.form)
    return ask.back("/workings", "set")


def write(ask: Ask, key: str, value: Any) -> None:
    """Changes that key of config.toml, and no other byte of what stands there."""
    settings = ask.memory.settings
    if settings.origins[key] not in ("default", "config.toml"):
        raise ConfigError(
            f"{key} comes from {settings.origins[key]}", hint="It goes before config.toml: change it there."
        )
    file = settings.home / "config.toml"
    before = file.read_text(encoding="utf-8") if file.exists() else None
    document = toml_text.parse(before or "")
    document[key] = value
    files.write(file, before, document.as_string())


ROUTES: Mapping[str, View] = {"/workings/switch": switch, "/workings/cap": cap}
