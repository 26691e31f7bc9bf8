"""The folder that phase 2 keeps: nothing leads out of it, and a file changes as a whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import config
from recollect.models.base import ToolRefused
from recollect.workspace import FILE_LIMIT, FILES_LIMIT, READ_LIMIT, Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home" / "workspace")


def test_what_is_written_is_listed_read_and_found(workspace: Workspace) -> None:
    assert workspace.files() == []
    assert workspace.write("handbook.md", "# Handbook\n\n- Deploy with make ship\n")
    assert workspace.write("projects/app-1a2b3c4d/summary.md", "the app ships on Fridays\n")
    assert workspace.files() == ["handbook.md", "projects/app-1a2b3c4d/summary.md"]
    assert workspace.read("handbook.md") == "# Handbook\n\n- Deploy with make ship\n"
    assert workspace.search("MAKE SHIP") == ["handbook.md:3: - Deploy with make ship"]
    assert workspace.search("fridays app") == ["projects/app-1a2b3c4d/summary.md:1: the app ships on Fridays"]
    assert workspace.search("nowhere") == []
    workspace.delete("projects/app-1a2b3c4d/summary.md")
    assert workspace.files() == ["handbook.md"]
    assert not (workspace.root / "projects").exists(), "a folder that became empty goes too"


def test_only_the_owner_can_read_it(workspace: Workspace) -> None:
    before = os.umask(0)
    try:
        workspace.write("projects/app/summary.md", "text")
    finally:
        os.umask(before)
    folders = [workspace.root.parent, workspace.root, workspace.root / "projects", workspace.root / "projects/app"]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert stat.S_IMODE((workspace.root / "projects/app/summary.md").stat().st_mode) == 0o600


def test_equal_text_touches_nothing(workspace: Workspace) -> None:
    workspace.write("handbook.md", "text")
    before = (workspace.root / "handbook.md").stat()
    assert not workspace.write("handbook.md", "text")
    after = (workspace.root / "handbook.md").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert workspace.write("handbook.md", "other")
    assert (workspace.root / "handbook.md").stat().st_ino != before.st_ino, "replaced, not rewritten"


ESCAPES = [
    *("", "/etc/passwd", "..", "../secret", "a/../../secret", "a/./b", "./a", "a//b", "a/", "~/x", "C:\\x", "C:x"),
    *("a\\b", "..\\x", "a\0b", "a\nb", ".hidden", "a/.git/config", "x" * 300, "a/b/c/d/e/f/g", "con?", "a ", "a."),
    *("ｈandbook.md", "e\u0301.md", "a\u202eb", "a:b", "\ud800"),
]


@pytest.mark.parametrize("path", ESCAPES)
def test_paths_that_lead_elsewhere_are_refused(workspace: Workspace, tmp_path: Path, path: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text("secret")
    workspace.write("a/file.md", "text")
    for attempt in (workspace.read, workspace.delete, lambda each: workspace.write(each, "evil")):
        with pytest.raises(ToolRefused):
            attempt(path)
    assert workspace.files() == ["a/file.md"]
    assert (tmp_path / "home" / "secret").read_text() == "secret"


@given(path=st.text(alphabet="ab./\\~\0:- AÉé", max_size=12))
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    workspace = Workspace(tmp_path / "outer" / "inner" / "workspace")
    workspace.write("a", "text")
    with suppress(ToolRefused):
        workspace.write(path, "written")
    outside = [each for each in (tmp_path / "outer").rglob("*") if workspace.root not in (each, *each.parents)]
    assert outside == [tmp_path / "outer" / "inner"]


def test_symbolic_links_are_refused_anywhere(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "summary.md").write_text("private")
    workspace.write("handbook.md", "text")
    (workspace.root / "projects").symlink_to(outside)
    (workspace.root / "summary.md").symlink_to(outside / "summary.md")
    (workspace.root / "dangling.md").symlink_to(outside / "nothing.md")
    for path in ("projects/summary.md", "summary.md", "dangling.md"):
        with pytest.raises(ToolRefused, match="symbolic link"):
            workspace.read(path)
        with pytest.raises(ToolRefused, match="symbolic link"):
            workspace.write(path, "evil")
    assert workspace.files() == ["handbook.md"]
    assert workspace.search("private") == []
    assert sorted(each.name for each in outside.iterdir()) == ["summary.md"]
    assert (outside / "summary.md").read_text() == "private"


def test_a_workspace_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace").symlink_to(tmp_path / "outside")
    workspace = Workspace(tmp_path / "workspace")
    with pytest.raises(ToolRefused):
        workspace.write("handbook.md", "text")
    assert list((tmp_path / "outside").iterdir()) == []
    assert workspace.files() == []


def test_what_is_no_file_is_refused(workspace: Workspace) -> None:
    workspace.write("a/file.md", "text")
    os.mkfifo(workspace.root / "pipe.md")
    for path in ("a", "pipe.md", "missing.md", "a/file.md/deeper.md", "missing/file.md"):
        with pytest.raises(ToolRefused):
            workspace.read(path)
    for path in ("a", "pipe.md", "a/file.md/deeper.md"):
        with pytest.raises(ToolRefused):
            workspace.write(path, "evil")
    assert workspace.files() == ["a/file.md"]


def test_names_that_differ_in_case_only_are_refused(workspace: Workspace) -> None:
    workspace.write("raw_memories.md", "text")
    workspace.write("projects/straße/summary.md", "text")
    for path in ("RAW_memories.md", "Projects/app/summary.md", "projects/STRASSE/summary.md"):
        with pytest.raises(ToolRefused, match="already"):
            workspace.write(path, "evil")
    assert workspace.files() == ["projects/straße/summary.md", "raw_memories.md"]


def test_huge_and_unclean_texts_are_refused(workspace: Workspace) -> None:
    assert workspace.write("handbook.md", "é" * (FILE_LIMIT // 2))
    for text in ("é" * (FILE_LIMIT // 2) + "x", "a\0b", "\ud800"):
        with pytest.raises(ToolRefused):
            workspace.write("handbook.md", text)
    assert workspace.read("handbook.md") == "é" * (FILE_LIMIT // 2)
    with (workspace.root / "huge.md").open("wb") as file:
        file.truncate(READ_LIMIT + 1)
    with pytest.raises(ToolRefused):
        workspace.read("huge.md")


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace", durable=False)
    for number in range(FILES_LIMIT):
        workspace.write(f"{number // 50}/{number}.md", "text")
    with pytest.raises(ToolRefused, match="most"):
        workspace.write("more.md", "text")
    assert workspace.write("0/1.md", "other"), "one that is there may be replaced"
    workspace.delete("0/1.md")
    assert workspace.write("more.md", "text")


def test_searching_is_bounded(workspace: Workspace) -> None:
    workspace.write("a.md", "needle " * 200 + "\n" + "needle\n" * 500)
    found = workspace.search("needle")
    assert len(found) == 50
    assert max(map(len, found)) < 300
    with pytest.raises(ToolRefused):
        workspace.search("  ")


def test_leftovers_of_a_killed_process_go_and_other_peoples_files_stay(workspace: Workspace) -> None:
    workspace.write("projects/app/summary.md", "text")
    (workspace.root / "projects/app/.recollect-0123.tmp").write_text("half")
    (workspace.root / ".obsidian").mkdir()
    (workspace.root / ".obsidian" / "app.json").write_text("{}")
    assert workspace.files() == ["projects/app/summary.md"]
    workspace.sweep()
    assert sorted(path.name for path in workspace.root.rglob("*") if path.is_file()) == ["app.json", "summary.md"]


def test_a_failed_write_leaves_the_file_and_no_rest(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.write("handbook.md", "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        workspace.write("handbook.md", "new")
    monkeypatch.undo()
    assert workspace.read("handbook.md") == "old"
    assert [path.name for path in workspace.root.iterdir()] == ["handbook.md"]


def test_every_agent_has_a_folder_of_its_own(tmp_path: Path) -> None:
    home, environ = tmp_path / "home", {"HOME": str(tmp_path)}
    assert config.load(environ, home=home).workspace == home / "workspace"
    ada = config.load(environ, home=home, flags={"agent_id": "ada"})
    assert ada.workspace == home / "agents" / "ada" / "workspace"


def test_several_files_are_replaced_together_or_not_at_all(workspace: Workspace) -> None:
    workspace.write("handbook.md", "old")
    workspace.write("same.md", "same")
    assert dict(workspace.replace({"handbook.md": "new", "same.md": "same"})) == {"handbook.md": True, "same.md": False}
    (workspace.root / "link.md").symlink_to(workspace.root / "same.md")
    for refused in ("link.md", "../x", "HANDBOOK.md"):
        with pytest.raises(ToolRefused):
            list(workspace.replace({"handbook.md": "newer", "projects/a/summary.md": "x", refused: "evil"}))
        assert workspace.files() == ["handbook.md", "same.md"] and workspace.read("handbook.md") == "new"
    replaced = workspace.replace({"handbook.md": "newer", "same.md": "other"})
    next(replaced)
    replaced.close()
    assert (workspace.read("handbook.md"), workspace.read("same.md")) == ("newer", "same")
    assert [path.name for path in workspace.root.rglob(".*")] == [], "nothing is left beside them"


def test_whoever_writes_is_alone(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with workspace.alone():
        assert not workspace.root.exists(), "nothing is made to be waited for"
    other = Workspace(workspace.root)
    began, ended = threading.Event(), []

    def wait() -> None:
        began.set()
        with other.alone():
            ended.append(workspace.read("handbook.md"))

    thread = threading.Thread(target=wait)
    with workspace.alone(create=True):
        thread.start()
        assert began.wait(10)
        workspace.write("handbook.md", "all of it")
        thread.join(0.2)
        assert ended == []
        monkeypatch.setattr("recollect.workspace._PATIENCE", 0.0)
        with pytest.raises(ToolRefused, match="another process"), Workspace(workspace.root).alone():
            pass
    thread.join(10)
    assert ended == ["all of it"]
