"""Project identity: worktrees and branches share it, credentials never show, folders that are gone have one too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recollect import open_memory
from recollect.ingest.projects import normalise_remote, resolve
from recollect.ingest.scan import Ignore
from recollect.search.values import ALL_PROJECTS


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://github.com/acme/api.git", "github.com/acme/api"),
        ("https://user:token@GitHub.com/acme/api/", "github.com/acme/api"),
        ("git@github.com:acme/api.git", "github.com/acme/api"),
        ("ssh://git@gitlab.example.org:2222/group/sub/api.git", "gitlab.example.org/group/sub/api"),
        ("github.com:acme/api", "github.com/acme/api"),
        ("/srv/git/api.git", ""),
        ("file:///srv/git/api.git", ""),
        ("../api", ""),
        ("C:\\repos\\api", ""),
        ("", ""),
        ("https://[broken/x", ""),
    ],
)
def test_a_remote_is_host_owner_and_repository(url: str, expected: str) -> None:
    assert normalise_remote(url) == expected


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_worktrees_subfolders_and_branches_share_a_project(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(tree))
    (main / "src" / "deep").mkdir(parents=True)
    ids = {resolve(str(each)).project_id for each in (main, main / "src" / "deep", tree)}
    assert ids == {str(main / ".git")}
    git(main, "remote", "add", "upstream", "https://example.com/up/stream.git")
    git(main, "remote", "add", "origin", "git@example.com:me/fork.git")
    ids = {resolve(str(each)).project_id for each in (main, main / "src" / "deep", tree)}
    assert ids == {"example.com/me/fork"}


def test_the_transcripts_own_remote_serves_for_folders_that_are_gone() -> None:
    assert resolve("/gone/x", "https://a:b@example.com/o/r").project_id == "example.com/o/r"
    assert resolve("/gone/x").project_id == "/gone/x"
    assert resolve("").project_id == ""


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("secret", "/a/secret/b.jsonl", True),
        ("secret", "/a/secrets/b.jsonl", False),
        ("*.tmp.jsonl", "/a/x.tmp.jsonl", True),
        ("/a/*/c", "/a/b/c/d.jsonl", True),
        ("/a/*/c", "/a/b/b/c", False),
        ("/a/**/c", "/a/b/b/c", True),
        ("/a/**", "/a/b", True),
        ("~/private/**", "/home/me/private/x", True),
        ("~/private", "/home/me/private/deep/x.jsonl", True),
        ("~/private", "/other/private/x", False),
        ("**/client-[xy]/**", "/w/client-x/y", True),
        ("**/client-[!x]/**", "/w/client-x/y", False),
        ("a.c", "/w/abc", False),
    ],
)
def test_ignore_globs(glob: str, path: str, matches: bool) -> None:
    assert Ignore([glob], "/home/me").matches(path) is matches


@pytest.mark.parametrize("name", ["shop", "./shop", "~shop"])
def test_a_chats_project_goes_before_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    with open_memory(tmp_path / "home", environ={}, embedder="none") as memory:
        memory.remember("The shop repository uses pnpm.", project=folder)
        with memory.turns(project=name, user="alice", conversation="c1").turn("t1", "My word is zanzibar.") as turn:
            turn.persist(answer="Noted.")
        memory.ingest(folder=memory.settings.turns)
        assert [each.project_id for each in memory.conversations(project=name)] == [name]
        assert memory.search("zanzibar", scope=name)
        memory.forget(project=name, reason="asked")
        assert [each.project_id for each in memory.conversations()] == [str(folder)]
        assert not memory.search("zanzibar", scope=ALL_PROJECTS)
