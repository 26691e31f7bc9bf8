"""The MCP server, through the official client: both transports, both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ListRootsResult, Root, TextContent

from recollect.app import open_memory
from recollect.config import load
from recollect.surfaces.mcp.http import TOKEN_FILE, PortTaken, serve_http, start, token
from recollect.surfaces.mcp.scope import Launch, NoProject, folder_of, place
from recollect.surfaces.mcp.server import _said, build
from recollect.turns.values import fact
from tests.command import run as command
from tests.transcripts import claude, write

Mode = Literal["legacy", "auto"]
TOOLS = {
    "search_memory",
    "get_memory",
    "open_session",
    "recent_sessions",
    "remember",
    "correct_memory",
    "forget_memory",
    "memory_feedback",
    "memory_context",
}
RULE = "Always run make lint before every commit."
SECRET = "The launch codename of the other team is Heron."


class World(NamedTuple):
    """A home with a rule in one project and another one in a second."""

    home: Path
    here: Path
    there: Path

    def server(self, launch: Launch | None = None) -> Any:
        return build(open_memory(self.home), launch or Launch())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    found = World(tmp_path / "home", tmp_path / "here", tmp_path / "there")
    found.here.mkdir(), found.there.mkdir()
    with open_memory(found.home) as memory:
        memory.remember(RULE, project=found.here)
        memory.remember(SECRET, project=found.there)
    return found


def roots_of(*folders: Path) -> Callable[..., Awaitable[ListRootsResult]]:
    async def answer(*_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=folder.as_uri()) for folder in folders])  # type: ignore[arg-type]

    return answer


def talk(server: Any, run: Callable[[Client], Awaitable[Any]], *folders: Path, mode: Mode = "auto") -> Any:
    """Runs a conversation with a server; the client has these roots, or none at all."""

    async def main() -> Any:
        roots = roots_of(*folders) if folders else None
        async with Client(server, list_roots_callback=roots, mode=mode, read_timeout_seconds=60) as client:
            return await run(client)

    return asyncio.run(main())


def call(server: Any, tool: str, *folders: Path, mode: Mode = "auto", **arguments: Any) -> CallToolResult:
    async def run(client: Client) -> CallToolResult:
        return await client.call_tool(tool, arguments)

    found: CallToolResult = talk(server, run, *folders, mode=mode)
    return found


def good(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    (text,) = result.content
    assert isinstance(text, TextContent) and json.loads(text.text) == result.structured_content, "for older clients"
    return result.structured_content


def error(result: CallToolResult) -> str:
    assert result.is_error
    (text,) = result.content
    assert isinstance(text, TextContent) and "Traceback" not in text.text
    return text.text


def texts(found: dict[str, Any]) -> list[str]:
    """Of the memories among them."""
    return [hit["text"] for hit in found["hits"] if hit["id"].startswith("m-")]


# ---- What there is ---------------------------------------------------------------------------------------------------


def test_tools_have_typed_inputs_structured_outputs_and_annotations(world: World) -> None:
    listed = talk(world.server(), lambda client: client.list_tools()).tools
    assert {each.name for each in listed} == TOOLS
    for tool in listed:
        assert tool.description and tool.output_schema and tool.output_schema["properties"]
        assert "roots" not in tool.input_schema["properties"] and "project" in tool.input_schema["properties"]
        assert all(
            "type" in each or "anyOf" in each or "$ref" in each for each in tool.input_schema["properties"].values()
        )
    hints = {tool.name: tool.annotations for tool in listed}
    reading = {name for name, each in hints.items() if each.read_only_hint}
    assert reading == {"search_memory", "get_memory", "open_session", "recent_sessions", "memory_context"}
    assert {name for name, each in hints.items() if each.destructive_hint} == {"forget_memory"}
    assert all(each.idempotent_hint is not None for each in hints.values())
    forget = next(tool for tool in listed if tool.name == "forget_memory")
    assert {"id", "reason"} <= set(forget.input_schema["required"])


@pytest.mark.parametrize("tool", ["search_memory", "memory_context", "recent_sessions", "remember"])
def test_in_a_folder_that_nobody_has_confirmed_nothing_is_told(world: World, tool: str, tmp_path: Path) -> None:
    mine, copy = tmp_path / "mine", tmp_path / "copy"
    for folder in (mine, copy):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git/config").write_text('[remote "origin"]\n\turl = https://example.com/me/app.git\n')
    with open_memory(world.home) as memory:
        memory.remember(RULE, project=mine)
        known = memory.project(mine)
    server = world.server(Launch(folder=str(copy)))
    arguments = {"search_memory": {"query": "lint"}, "remember": {"text": "Use tabs."}}.get(tool, {})
    wide = {"all_projects": True} if tool in ("search_memory", "recent_sessions") else {}
    for more in ({}, wide, {"project": known}, {"project": str(mine)}):
        assert "recollect project confirm" in error(call(server, tool, **arguments, **more))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_memory_is_made_found_read_corrected_judged_and_erased(world: World, mode: Mode) -> None:
    async def run(client: Client) -> None:
        said = {"text": "The pond pump runs on port 8123.", "when": ["the fountain is silent"]}
        made = good(await client.call_tool("remember", said))
        again = good(await client.call_tool("search_memory", {"query": "why is the fountain silent?"}))
        assert again["hits"][0]["id"] == made["id"]
        found = good(await client.call_tool("search_memory", {"query": "pond pump port"}))
        assert found["hits"][0]["id"] == made["id"] and len(found["hits"][0]["text"]) <= 400
        read = good(await client.call_tool("get_memory", {"id": made["id"]}))
        assert read["text"].startswith("The pond pump") and "pond pump" in read["sources"][0]["text"]
        fixed = good(
            await client.call_tool("correct_memory", {"id": made["id"], "text": "The pond pump runs on port 9000."})
        )
        assert (fixed["id"], fixed["revision"]) == (made["id"], 2)
        assert good(await client.call_tool("get_memory", {"id": made["id"]}))["earlier"] == [
            "The pond pump runs on port 8123."
        ]
        assert (
            good(await client.call_tool("memory_feedback", {"id": made["id"], "opinion": "not_ok"}))["id"] == made["id"]
        )
        again = good(await client.call_tool("search_memory", {"query": "pond pump port"}))["hits"][0]
        judged = good(await client.call_tool("get_memory", {"id": made["id"]}))
        assert [each["called_wrong"] for each in (found["hits"][0], read, again, judged)] == [False, False, True, True]
        page = good(await client.call_tool("open_session", {"session": found["hits"][0]["session"]}))
        assert "pond pump" in page["text"] and page["next_offset"] is None
        erased = good(await client.call_tool("forget_memory", {"id": made["id"], "reason": "wrong"}))
        assert erased["memories"] >= 1 and erased["problems"] == []
        assert good(await client.call_tool("search_memory", {"query": "pond pump port"}))["hits"] == []
        assert "no memory" in error(await client.call_tool("get_memory", {"id": made["id"]}))

    talk(world.server(), run, world.here, mode=mode)


def test_neither_reading_nor_searching_is_use(world: World) -> None:
    server = world.server()
    hit, *_ = good(call(server, "search_memory", world.here, query="make lint"))["hits"]
    assert good(call(server, "get_memory", world.here, id=hit["id"][:10]))["id"] == hit["id"]
    with open_memory(world.home) as memory:
        assert memory.show(hit["id"]).record["uses"] == 0


def test_a_long_session_is_read_part_by_part(world: World) -> None:
    lines = [
        {
            "type": "user",
            "uuid": f"u-{n}",
            "sessionId": "long",
            "timestamp": f"2026-03-02T09:{n:02}:00.000Z",
            "cwd": str(world.here),
            "message": {"role": "user", "content": f"Part {n}: " + "we looked at the pond and its pump again. " * 20},
        }
        for n in range(30)
    ]
    file = world.home.parent / "long.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with open_memory(world.home) as memory:
        memory.ingest(file=file)
        memory.process(now=True)
    server = world.server()
    with open_memory(world.home) as memory:
        memory.remember("The pond is deep.", project=world.here)
    (found,) = good(call(server, "recent_sessions", world.here, limit=1))["sessions"]
    session, messages = found["session"], found["messages"]
    assert messages == 30, "a note is no session"
    text, offset = "", 0
    while offset is not None:
        page = good(call(server, "open_session", world.here, session=session, kind="transcript", offset=offset))
        text, offset = text + page["text"], page["next_offset"]
    assert "Part 29" in text and len(text) > 20_000


def test_the_last_day_is_searched_as_a_whole(world: World) -> None:
    with open_memory(world.home) as memory:
        today = memory.show("last").conversations[0].last_message_at[:10]
    for until, found in ((today, [RULE]), (f"{today}T00:00", [])):
        asked = {"query": "make lint", "since": today, "until": until}
        assert texts(good(call(world.server(), "search_memory", world.here, **asked))) == found


def test_context_is_what_the_command_gives(world: World) -> None:
    found = good(call(world.server(), "memory_context", world.here, prompt="I am about to commit, run make lint?"))
    assert "make lint" in found["text"] and found["tokens"] > 0 and "Heron" not in found["text"]
    told = good(call(world.server(), "memory_context", world.here))
    assert "make lint" in told["text"] and told["tokens"] > 0 and "Heron" not in told["text"], "as a new session"


# ---- Scope -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_clients_first_root_is_the_project(world: World, mode: Mode) -> None:
    server = world.server()
    assert texts(good(call(server, "search_memory", world.here, world.there, mode=mode, query="make lint"))) == [RULE]
    assert texts(good(call(server, "search_memory", world.here, mode=mode, query="launch codename Heron"))) == []
    assert texts(good(call(server, "search_memory", world.there, mode=mode, query="launch codename Heron"))) == [SECRET]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_without_a_root_or_an_argument_every_tool_fails_and_says_what_to_do(
    world: World, mode: Mode, tool: str
) -> None:
    arguments = {
        "query": "launch codename Heron",
        "id": "m-1",
        "session": "s",
        "text": "x",
        "reason": "r",
        "opinion": "ok",
    }
    listed = talk(world.server(), lambda client: client.list_tools(), mode=mode).tools
    wanted = next(each for each in listed if each.name == tool).input_schema.get("required", [])
    said = error(call(world.server(), tool, mode=mode, **{name: arguments[name] for name in wanted}))
    assert "`project`" in said and "path" in said


@pytest.mark.parametrize("project", ["", " ", "*", "all", "/nope", "github.com/acme/nope"])
def test_a_project_that_names_none_is_an_error_and_never_all(world: World, project: str) -> None:
    said = error(call(world.server(), "search_memory", world.here, query="launch codename Heron", project=project))
    assert "no project" in said


@pytest.mark.parametrize("setting", ["enabled = false", "disabled_projects = ['{}']", "ignore = ['{}']"])
def test_nothing_is_told_where_memory_is_switched_off(world: World, setting: str) -> None:
    (world.home / "config.toml").write_text(setting.format(world.here))
    for tool, asked in (("search_memory", {"query": "make lint"}), ("memory_context", {}), ("recent_sessions", {})):
        assert "switched off" in error(call(world.server(), tool, world.here, **asked))
    everywhere = call(world.server(), "search_memory", query="launch codename Heron", all_projects=True)
    if "enabled" in setting:
        assert "switched off" in error(everywhere)
    else:
        assert texts(good(everywhere)) == [SECRET]


@pytest.mark.parametrize(
    "setting",
    ["disabled_projects = ['{folder}']", "ignore = ['{folder}']", "disabled_projects = ['github.com/acme/api']"],
)
def test_a_project_that_is_off_is_told_by_no_other_name_and_not_among_all(world: World, setting: str) -> None:
    api = world.home.parent / "api"
    write(api / ".git/config", b'[remote "origin"]\n\turl = https://github.com/Acme/API.git\n')
    for folder in (api, world.there):
        said = [claude(n, f"Dredge the harbour {n}.", session=folder.name, cwd=str(folder)) for n in range(6)]
        write(world.home.parent / f"talks/-{folder.name}/{folder.name}.jsonl", b"".join(said))
    with open_memory(world.home) as memory:
        memory.ingest(folder=world.home.parent / "talks")
    (world.home / "config.toml").write_text(setting.format(folder=api))
    named = {"project": "github.com/Acme/API"}
    for tool, asked in (("search_memory", {"query": "harbour"}), ("memory_context", {}), ("recent_sessions", {})):
        assert "switched off" in error(call(world.server(), tool, world.there, **asked, **named))
    everywhere = good(call(world.server(), "search_memory", query="harbour", all_projects=True))
    assert {hit["project"] for hit in everywhere["hits"]} == {str(world.there)}
    recent = good(call(world.server(), "recent_sessions", all_projects=True))
    assert {each["project"] for each in recent["sessions"]} == {str(world.there)}


def test_an_argument_wins_over_roots_and_all_projects_has_to_be_said(world: World) -> None:
    server = world.server()
    asked = {"query": "launch codename Heron"}
    assert texts(good(call(server, "search_memory", world.here, project=str(world.there), **asked))) == [SECRET]
    assert texts(good(call(server, "search_memory", world.here, all_projects=True, **asked))) == [SECRET]
    assert good(call(server, "recent_sessions", all_projects=True))["project"] == ""


def test_ids_of_another_project_are_as_good_as_none(world: World) -> None:
    server = world.server()
    hit, *_ = good(call(server, "search_memory", world.there, query="launch codename Heron"))["hits"]
    for tool, more in (
        ("get_memory", {}),
        ("correct_memory", {"text": "x"}),
        ("forget_memory", {"reason": "r"}),
        ("memory_feedback", {"opinion": "ok"}),
    ):
        said = error(call(server, tool, world.here, id=hit["id"], **more))
        assert "no memory" in said and "Heron" not in said
    assert "no session" in error(call(server, "open_session", world.here, session=hit["session"]))
    assert good(call(server, "get_memory", world.there, id=hit["id"]))["text"] == SECRET


def test_what_holds_everywhere_is_read_anywhere_without_what_was_said_elsewhere(world: World) -> None:
    server = world.server()
    with open_memory(world.home) as memory:
        made = {"id": memory.remember("Answer in British English.", everywhere=True).id}
    read = good(call(server, "get_memory", world.here, id=made["id"]))
    assert read["scope"] == "user" and read["sources"] == []


@pytest.mark.parametrize(
    ("argument", "launch", "roots", "found"),
    [
        ("/a", Launch("/b", "/c"), ["file:///d"], "/a"),
        (None, Launch("/b", "/c"), ["file:///d"], "/b"),
        (None, Launch("", "/c"), ["file:///d%20e", "file:///f"], "/d e"),
        (None, Launch("", "/c"), ["https://x/y", "untitled:1"], "/c"),
        (None, Launch("", "/c", "/home/u"), [], "/c"),
        (None, Launch("", "/home/u", "/home/u"), [], None),
        (None, Launch("", "/", "/home/u"), [], None),
        (None, Launch(), [], None),
        ("", Launch("/b", "/c"), ["file:///d"], None),
        (".", Launch("", "/c"), [], "."),
        ("~/x", Launch("", "/c"), [], "~/x"),
        (".", Launch(), [], None),
        ("./x", Launch("/b"), [], None),
        ("..", Launch(), ["file:///d"], None),
        (".dotfiles", Launch(), [], None),
        ("~/x", Launch(), [], "~/x"),
    ],
)
def test_who_says_which_project(argument: str | None, launch: Launch, roots: list[str], found: str | None) -> None:
    if found is None:
        with pytest.raises(NoProject):
            place(argument, launch, roots)
    else:
        assert place(argument, launch, roots) == found


def test_only_file_roots_of_this_machine_are_folders() -> None:
    assert [folder_of(each) for each in ("file:///a", "file://localhost/a", "file://host/a", "x:///a", "")] == [
        "/a",
        "/a",
        "",
        "",
        "",
    ]


# ---- Resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_resources_are_this_projects_pages(world: World, mode: Mode) -> None:
    async def run(client: Client) -> dict[str, str]:
        listed = (await client.list_resources()).resources
        found = {}
        for each in listed:
            try:
                found[each.name] = (await client.read_resource(each.uri)).contents[0].text  # type: ignore[union-attr]
            except MCPError as error:
                found[each.name] = f"error: {error}"
        return found

    server = world.server()
    here, there = (talk(server, run, folder, mode=mode) for folder in (world.here, world.there))
    assert set(here) == {"context", "ledger", "sessions"}
    assert (
        "make lint" in here["context"]
        and "make lint" in here["ledger"]
        and "|summary]]" in here["ledger"]
        and here["sessions"] == "No session yet."
    )
    assert all("Heron" not in page for page in here.values()) and "Heron" in there["ledger"]
    refused = talk(server, run, mode=mode)
    assert all(page.startswith("error: ") and "`project`" in page for page in refused.values())


def test_a_resource_of_a_named_project(world: World) -> None:
    async def run(client: Client) -> Any:
        return (await client.read_resource(f"recollect://ledger?project={world.there}")).contents[0]

    assert "Heron" in talk(world.server(), run).text


# ---- Errors ----------------------------------------------------------------------------------------------------------


def test_wrong_arguments_and_unknown_names_are_tool_errors(world: World) -> None:
    server = world.server()
    for tool, arguments in (
        ("search_memory", {"query": "x", "limit": 0}),
        ("search_memory", {"query": "x", "since": "yesterday-ish"}),
        ("search_memory", {}),
        ("get_memory", {"id": "m-nothing"}),
        ("open_session", {"session": "../../etc/passwd"}),
        ("forget_memory", {"id": "m-1"}),
        ("memory_feedback", {"id": "m-1", "opinion": "great"}),
        ("remember", {"text": "x", "kind": "nonsense"}),
    ):
        error(call(server, tool, world.here, **arguments))


def test_a_damaged_database_is_an_error_that_says_what_to_do(world: World) -> None:
    server = world.server(Launch(str(world.here)))
    with open_memory(world.home) as memory, memory.database.write() as tx:
        tx.run("DROP TABLE memory_conversations")
    said = error(call(server, "recent_sessions"))
    assert "recollect" in said


def test_a_server_does_not_go_on_with_a_database_that_was_erased_or_replaced(world: World) -> None:
    server = world.server()
    assert texts(good(call(server, "search_memory", world.here, query="make lint"))) == [RULE]
    shutil.rmtree(world.home)
    for tool, asked in (("search_memory", {"query": "make lint"}), ("remember", {"text": "Use tabs."})):
        assert "is gone" in error(call(server, tool, world.here, **asked))
    assert not world.home.exists()
    with open_memory(world.home) as memory:
        memory.remember("The linter is called heron.", project=world.here)
    assert texts(good(call(server, "search_memory", world.here, query="linter"))) == ["The linter is called heron."]


@pytest.mark.parametrize("message", ["It is not known which project this is about.", "no such thing"])
def test_what_is_said_ends_in_one_full_stop(message: str) -> None:
    assert ".." not in _said(NoProject(message)) and ". Pass" in _said(NoProject(message))


# ---- Transports ------------------------------------------------------------------------------------------------------


def stdio(world: World, cwd: Path, *arguments: str) -> StdioServerParameters:
    environ = {"RECOLLECT_HOME": str(world.home), "RECOLLECT_EMBEDDER": "none", "HOME": str(world.home.parent)}
    words = ["-P", "-m", "recollect", "mcp", *arguments]
    return StdioServerParameters(command=sys.executable, args=words, env=environ, cwd=str(cwd))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_over_standard_input_the_folder_it_was_started_in_is_the_project(world: World, mode: Mode) -> None:
    assert texts(good(call(stdio(world, world.here), "search_memory", mode=mode, query="make lint"))) == [RULE]


def test_over_standard_input_scope_and_refusal_as_elsewhere(world: World) -> None:
    named = stdio(world, world.here, "--project", str(world.there))
    assert texts(good(call(named, "search_memory", world.here, query="launch codename Heron"))) == [SECRET]
    nowhere = stdio(world, world.home.parent)
    assert "`project`" in error(call(nowhere, "search_memory", query="launch codename Heron"))


def test_an_interrupt_ends_a_server_that_waits_for_its_next_request(world: World) -> None:
    called = stdio(world, world.here)
    pipe = subprocess.PIPE
    environ = {**os.environ, **(called.env or {})}
    with subprocess.Popen([called.command, *called.args], stdin=pipe, stdout=pipe, env=environ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        server.stdin.flush()
        assert server.stdout.readline()
        server.send_signal(signal.SIGINT)
        try:
            assert server.wait(10) == -signal.SIGINT
        finally:
            server.kill()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_over_http_with_the_token_on_loopback(world: World, mode: Mode) -> None:
    settings = load(home=world.home)
    secret = token(settings)
    assert stat.S_IMODE((world.home / "mcp.token").stat().st_mode) == 0o600 and token(settings) == secret
    with closing(serve_http(settings, 0, secret)) as serving:

        async def main() -> list[CallToolResult]:
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=30) as http:
                transport = streamable_http_client(serving.url, http_client=http)
                async with Client(transport, mode=mode, list_roots_callback=roots_of(world.here)) as client:
                    assert len((await client.list_tools()).tools) == len(TOOLS)
                    return [
                        await client.call_tool("search_memory", {"query": "make lint"}),
                        await client.call_tool("search_memory", {"query": "launch codename Heron"}),
                    ]

        mine, theirs = asyncio.run(main())
        assert texts(good(mine)) == [RULE] and texts(good(theirs)) == []


def test_http_refuses_strangers_other_hosts_and_web_pages(world: World) -> None:
    secret = token(load(home=world.home))
    with closing(serve_http(load(home=world.home), 0, secret)) as serving:
        good_one = {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}

        def status(**headers: str) -> int:
            return httpx2.post(serving.url, json=ping, headers={**good_one, **headers}, timeout=10).status_code

        assert status(Authorization="") == 401
        assert status(Authorization="Bearer wrong") == 401
        assert status(Authorization=secret) == 401
        assert status(Host="evil.example") in (400, 403, 421)
        assert status(Origin="https://evil.example") == 403
        assert status() not in (401, 403, 421)
        with pytest.raises(PortTaken, match="port"):
            serve_http(load(home=world.home), serving.port, secret)
    with pytest.raises(httpx2.ConnectError):
        httpx2.post(serving.url, json=ping, timeout=5)


@pytest.mark.parametrize("left", ["", "\n"])
def test_an_empty_token_is_made_anew(world: World, left: str) -> None:
    file = world.home / TOKEN_FILE
    file.write_text(left)
    serving = start(load(home=world.home))
    assert serving is not None
    with closing(serving):
        made = token(load(home=world.home))
        assert len(made) >= 32 and file.read_text().strip() == made and stat.S_IMODE(file.stat().st_mode) == 0o600
        assert httpx2.post(serving.url, headers={"Authorization": "Bearer x"}, timeout=10).status_code == 401


def test_the_daemon_serves_it_where_a_port_is_configured(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (world.home / "config.toml").write_text(f"mcp_http_port = {port}\n")
    environ = {**os.environ, "RECOLLECT_HOME": str(world.home), "HOME": str(world.home.parent)}
    serve = [sys.executable, "-P", "-m", "recollect", "serve"]
    subprocess.run([*serve, "--background"], env=environ, check=True, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token(load(home=world.home))}"}

        async def main() -> CallToolResult:
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
                async with Client(transport, list_roots_callback=roots_of(world.here)) as client:
                    return await client.call_tool("search_memory", {"query": "make lint"})

        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        assert texts(good(asyncio.run(main()))) == [RULE]
    finally:
        subprocess.run([*serve, "--stop"], env=environ, check=True, timeout=60)


def test_nothing_of_a_chats_user_is_told_or_changed(world: World) -> None:
    """Not by a search, not by an id, not by a session; a person at the command line sees it, and whose it is."""
    with open_memory(world.home) as memory:
        with memory.turns(project=str(world.here), user="ada", conversation="c1").turn("t1", "I keep bees.") as turn:
            turn.update_fingerprint(facts=[fact("hobby", "Ada keeps bees.")])
            turn.persist("Noted.")
        memory.ingest()
        memory.process(now=True)
        (hit,) = memory.search("bees", scope=str(world.here), user="ada", kinds=["memory"])
    server = world.server()
    told = [
        call(server, "search_memory", world.here, query="Ada keeps bees", all_projects=everywhere)
        for everywhere in (False, True)
    ]
    told += [call(server, "memory_context", world.here, prompt=prompt) for prompt in ("", "Who keeps bees?")]
    told += [call(server, "recent_sessions", world.here, all_projects=everywhere) for everywhere in (False, True)]
    told += [
        call(server, "get_memory", world.here, id=hit.id),
        call(server, "correct_memory", world.here, id=hit.id, text="Nobody has a hobby."),
        call(server, "memory_feedback", world.here, id=hit.id, opinion="not_ok"),
        call(server, "forget_memory", world.here, id=hit.id, reason="test"),
        call(server, "open_session", world.here, session=hit.session_key),
    ]
    assert not [each for each in told if "bees" in str(each.content)]
    assert [each.is_error for each in told] == [False] * 6 + [True] * 5
    shown = command(world.home, "show", hit.id)
    assert "Ada keeps bees." in shown.stdout and "belongs to the user ada of a chat" in shown.stdout
    assert command(world.home, "search", "bees", "--json", cwd=world.here).json == {"hits": []}
    assert "bees" not in command(world.home, "timeline", "--all-projects").stdout
    assert "bees" in command(world.home, "timeline", "--user", "ada").stdout
    found = command(world.home, "search", "bees", "--user", "ada", "--json", cwd=world.there).json["hits"]
    assert hit.id in [each["id"] for each in found]
    assert command(world.home, "forget", "--user", "ada", "--reason", "test", "--yes").status == 0
    assert command(world.home, "show", hit.id).status != 0
