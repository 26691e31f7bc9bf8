"""Generated pages are what the code generates; every command has help with an explanation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from recollect.surfaces.cli import cli
from recollect.surfaces.reference import pages

REPOSITORY = Path(__file__).parent.parent


@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (REPOSITORY / "docs" / name).read_text() == pages()[name], "run `make docs`"


def test_every_command_explains_itself_and_its_options() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None and command.help
        for option in command.params:
            if isinstance(option, click.Option) and option.name != "help":
                assert option.help, f"{name} --{option.name}"


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [REPOSITORY / "README.md", *REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_architecture_stays_within_two_pages() -> None:
    assert len((REPOSITORY / "ARCHITECTURE.md").read_text().splitlines()) <= 110


def test_every_package_that_is_installed_is_pinned_with_hashes() -> None:
    pin = re.compile(r"([\w.-]+)==[\w.]+((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
    text = (REPOSITORY / "constraints.txt").read_text()
    assert (
        pin.sub("", text + "".join((REPOSITORY / "tests" / each).read_text() for each in ("models.txt", "page.txt")))
        == ""
    ), "run `make lock`"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    needed += project["project"]["optional-dependencies"]["dev"]
    plain = {re.sub(r"[-_.]+", "-", found[1]).lower() for found in pin.finditer(text)}
    assert {re.split(r"[^\w-]", each)[0] for each in needed} <= plain
    installs = [line for line in (REPOSITORY / "Makefile").read_text().splitlines() if line.startswith("\t@$(INSTALL)")]
    assert len(installs) == 4 and all("--require-hashes" in each for each in installs if "--editable ." not in each)
