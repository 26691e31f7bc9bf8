"""Where a value comes from, and what is said about one that is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from recollect.config import Config, describe, keys, load
from recollect.errors import ConfigError

VALUES: dict[str, tuple[str, Any]] = {
    # every key: what stands in the environment, and what must come of it
    "enabled": ("false", False),
    "database": ("postgresql://example/memory", "postgresql://example/memory"),
    "tenant": ("acme", "acme"),
    "agent_id": ("ada.1_x-2", "ada.1_x-2"),
    "roots": ('{codex = ["/a", "/b"], pi = []}', {"codex": ("/a", "/b"), "pi": ()}),
    "ignore": (os.pathsep.join(["**/secret", "~/x", "a b"]), ("**/secret", "~/x", "a b")),
    "disabled_projects": ("/code/one", ("/code/one",)),
    "history_since": ("2026-03-01T09:30:00Z", "2026-03-01T09:30:00Z"),
    "conversation_gap_minutes": ("90", 90),
    "min_conversation_messages": ("1", 1),
    "test_sessions": (os.pathsep.join(["test-*", "ci-?"]), ("test-*", "ci-?")),
    "poll_interval_seconds": ("0.5", 0.5),
    "lease_seconds": ("60", 60.0),
    "busy_timeout_seconds": ("2.5", 2.5),
    "ingest_workers": ("3", 3),
    "model": ("openai:gpt-5-mini", "openai:gpt-5-mini"),
    "agreed_projects": ('{"cli:claude" = ["/a", "host/b"]}', {"cli:claude": ("/a", "host/b")}),
    "agreed_since": ("2026-03-01T09:30:00Z", "2026-03-01T09:30:00Z"),
    "agent_quiet_minutes": ("0", 0),
    "consolidation_model": ("cli:claude", "cli:claude"),
    "model_url": ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
    "model_key_variable": ("MY_KEY", "MY_KEY"),
    "model_timeout_seconds": ("5", 5.0),
    "model_part_tokens": ("4000", 4000),
    "model_output_tokens": ("500", 500),
    "model_input_price": ("0.25", 0.25),
    "model_output_price": ("2", 2.0),
    "max_tokens_per_day": ("0", 0),
    "confirm_above_tokens": ("1000", 1000),
    "max_rollouts_per_startup": ("4", 4),
    "max_rollout_age_days": ("7", 7),
    "extraction_concurrency": ("2", 2),
    "max_unused_days": ("90", 90),
    "max_raw_memories_for_consolidation": ("10", 10),
    "consolidation_cooldown_hours": ("0", 0.0),
    "consolidation_timeout_seconds": ("60", 60.0),
    "consolidation_max_requests": ("5", 5),
    "consolidation_max_tokens": ("5000", 5000),
    "embedder": ("openai:nomic-embed-text", "openai:nomic-embed-text"),
    "embedder_url": ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
    "embedder_key_variable": ("MY_KEY", "MY_KEY"),
    "embed_threads": ("2", 2),
    "mcp_http_port": ("4321", 4321),
    "page_port": ("4322", 4322),
    "models_folder": ("/srv/models", "/srv/models"),
    "session_message": ("false", False),
    "memory_injection_max_injected_blocks_in_history": ("0", 0),
    "memory_injection_context_window_depth": ("4", 4),
    "memory_injection_max_total": ("5", 5),
    "memory_injection_contextual_min_score": ("0.5", 0.5),
    "memory_injection_ambient_enabled": ("false", False),
    "memory_injection_semantic_threshold": ("0.9", 0.9),
    "memory_injection_max_tokens_per_block": ("500", 500),
    "memory_injection_max_tokens_total": ("900", 900),
    "memory_injection_enrich": ("0", False),
    "memory_injection_per_kind_limit": ("2", 2),
    "memory_injection_ambient_sort": ("recency", "recency"),
    "memory_injection_pinned_kinds": (os.pathsep.join(["constraint", "lesson"]), ("constraint", "lesson")),
    "turn_model": ("openai:small", "openai:small"),
    "turn_window": ("5", 5),
    "turn_block_tokens": ("300", 300),
    "turn_ttl_days": ("30", 30),
    "assistant_signals_limit": ("0", 0),
    "memory_reconcile_turns": ("2", 2),
    "memory_reconcile_enabled": ("0", False),
    "long_memories_log": ("1", True),
    "log_level": ("debug", "debug"),
}


def write(home: Path, text: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(text)
    return home


def message(environ: dict[str, str], home: Path, **flags: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        load(environ, home=home, flags=flags)
    assert raised.value.hint
    return raised.value.message


def test_a_flag_comes_before_the_environment_before_the_file_before_the_default(tmp_path: Path) -> None:
    home = write(tmp_path, 'tenant = "file"\nagent_id = "file"\nlog_level = "info"\n')
    environ = {"RECOLLECT_TENANT": "variable", "RECOLLECT_AGENT_ID": "variable"}
    settings = load(environ, home=home, flags={"tenant": "flag"})
    assert settings.config == Config(tenant="flag", agent_id="variable", log_level="info")
    assert {key: origin for key, origin in settings.origins.items() if origin != "default"} == {
        "tenant": "flag",
        "agent_id": "RECOLLECT_AGENT_ID",
        "log_level": "config.toml",
    }


def test_every_key_has_an_origin(tmp_path: Path) -> None:
    assert load({}, home=tmp_path).origins == dict.fromkeys(keys(), "default")


def test_a_flag_that_was_not_given_says_nothing(tmp_path: Path) -> None:
    home = write(tmp_path, 'tenant = "file"\n')
    settings = load({}, home=home, flags={"tenant": None})
    assert (settings.config.tenant, settings.origins["tenant"]) == ("file", "config.toml")


def test_the_defaults_are_those_of_the_structure(tmp_path: Path) -> None:
    assert load({}, home=tmp_path).config == Config()


@pytest.mark.parametrize("key", keys())
def test_every_key_can_come_from_the_environment(key: str, tmp_path: Path) -> None:
    text, expected = VALUES[key]
    settings = load({f"RECOLLECT_{key.upper()}": text}, home=tmp_path)
    value = getattr(settings.config, key)
    assert (value, type(value)) == (expected, type(expected))
    assert settings.origins[key] == f"RECOLLECT_{key.upper()}"


def test_every_key_can_come_from_the_file(tmp_path: Path) -> None:
    home = write(
        tmp_path,
        'enabled = false\nignore = ["**/secret"]\nlease_seconds = 60\nconversation_gap_minutes = 5\n'
        '[roots]\nclaude-code = ["/a"]\n',
    )
    config = load({}, home=home).config
    assert (config.enabled, config.ignore, config.conversation_gap_minutes) == (False, ("**/secret",), 5)
    assert (config.lease_seconds, config.roots) == (60.0, {"claude-code": ("/a",)})


@pytest.mark.parametrize(("text", "value"), [("1", True), ("0", False), ("true", True), ("FALSE", False)])
def test_a_switch_in_the_environment_has_the_usual_spellings(text: str, value: bool, tmp_path: Path) -> None:
    assert load({"RECOLLECT_ENABLED": text}, home=tmp_path).config.enabled is value


@pytest.mark.parametrize("name", ["LONG_MEMORIES_LOG", "MEMORY_RECONCILE_ENABLED"])
def test_switches_of_the_turns_specification_have_their_own_names_too(name: str, tmp_path: Path) -> None:
    key = name.lower()
    for text, value in (("1", True), ("0", False)):
        settings = load({name: text}, home=tmp_path)
        assert (getattr(settings.config, key), settings.origins[key]) == (value, name)
        ours = load({name: text, f"RECOLLECT_{name}": "0" if value else "1"}, home=tmp_path)
        assert getattr(ours.config, key) is not value, "ours comes first"
    assert f"`{key}` from {name}: " in message({name: "perhaps"}, tmp_path)


def test_an_empty_list_in_the_environment_is_an_empty_list(tmp_path: Path) -> None:
    home = write(tmp_path, 'ignore = ["a"]\n')
    assert load({"RECOLLECT_IGNORE": ""}, home=home).config.ignore == ()


def test_a_table_that_is_no_key_groups_keys(tmp_path: Path) -> None:
    home = write(tmp_path, '[memory_injection]\nmax_total = 5\npinned_kinds = ["lesson"]\n[roots]\npi = ["/a"]\n')
    settings = load({}, home=home)
    assert (settings.config.memory_injection_max_total, settings.config.roots) == (5, {"pi": ("/a",)})
    assert settings.config.memory_injection_pinned_kinds == ("lesson",)
    assert settings.origins["memory_injection_max_total"] == "config.toml"
    said = message({}, write(tmp_path, "[memory_injection]\nmax_totl = 5\n"))
    assert "`memory_injection_max_totl` in config.toml; did you mean `memory_injection_max_total`?" in said


def test_an_unknown_key_in_the_file_names_the_nearest(tmp_path: Path) -> None:
    said = message({}, write(tmp_path, "conversation_gap_minuts = 5\n"))
    assert "`conversation_gap_minuts` in config.toml" in said
    assert "`conversation_gap_minutes`" in said


def test_an_unknown_key_in_the_environment_names_the_nearest(tmp_path: Path) -> None:
    said = message({"RECOLLECT_LEASE_SECOND": "5"}, tmp_path)
    assert "RECOLLECT_LEASE_SECOND" in said
    assert "`lease_seconds`" in said


def test_an_unknown_key_in_a_flag_names_the_nearest(tmp_path: Path) -> None:
    said = message({}, tmp_path, tennant="acme")
    assert "`tennant` in flag" in said
    assert "`tenant`" in said


@pytest.mark.parametrize("name", ["RECOLLECT_ŸŸŸ", "RECOLLECT_FOO"])
def test_a_key_like_no_other_names_none(name: str, tmp_path: Path) -> None:
    assert message({name: "5"}, tmp_path) == f"unknown key `{name.removeprefix('RECOLLECT_').lower()}` in {name}"


def test_a_wrong_configuration_is_not_looked_up_by_a_command_that_needs_a_right_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load({}, home=write(tmp_path, "tenannt = 1\n"))
    assert "recollect config" not in raised.value.hint and "docs/configuration.md" in raised.value.hint


def test_a_gap_that_no_calendar_holds_is_refused(tmp_path: Path) -> None:
    assert "`conversation_gap_minutes`" in message({}, write(tmp_path, "conversation_gap_minutes = 1000000000000\n"))


def test_variables_of_others_are_not_read(tmp_path: Path) -> None:
    environ = {"RECOLLECTION": "x", "MY_RECOLLECT_TENANT": "x", "recollect_tenant": "x", "RECOLLECT_BYPASS": "1"}
    assert load(environ, home=tmp_path).config == Config()


ANY_TEXT = (
    "database",
    "ignore",
    "disabled_projects",
    "test_sessions",
    "model_url",
    "model_key_variable",
    "embedder_url",
    "embedder_key_variable",
    "models_folder",
)  # no text in the environment is wrong
WRONG = {
    # every key: a wrong value in the environment, and one in the file
    "enabled": ("perhaps", '"yes"'),
    "database": ("", "5"),
    "tenant": ("a/b", '"../x"'),
    "agent_id": ("", '""'),
    "roots": ("{codex = 5}", "5"),
    "ignore": ("", '"one"'),
    "disabled_projects": ("", "[5]"),
    "history_since": ("yesterday", '"yesterday"'),
    "conversation_gap_minutes": ("0", "0"),
    "min_conversation_messages": ("2.5", "2.5"),
    "test_sessions": ("", '"test-*"'),
    "poll_interval_seconds": ("-1", "-1"),
    "lease_seconds": ("long", '"60"'),
    "busy_timeout_seconds": ("0", "0.0"),
    "ingest_workers": ("-1", '"many"'),
    "model": ("gpt-5", '"gpt-5"'),
    "agreed_projects": ('{claude = ["/a"]}', '["/a"]'),
    "agreed_since": ("yesterday", '"yesterday"'),
    "agent_quiet_minutes": ("-1", '"long"'),
    "consolidation_model": ("claude", '"cli:other"'),
    "model_url": ("", "5"),
    "model_key_variable": ("", "5"),
    "model_timeout_seconds": ("0", "-1"),
    "model_part_tokens": ("10", "10"),
    "model_output_tokens": ("1", "1"),
    "model_input_price": ("-1", "-1"),
    "model_output_price": ("much", '"much"'),
    "max_tokens_per_day": ("-1", "-1"),
    "confirm_above_tokens": ("-1", "-1"),
    "max_rollouts_per_startup": ("0", "0"),
    "max_rollout_age_days": ("0", "0"),
    "extraction_concurrency": ("0", "100"),
    "max_unused_days": ("0", "0"),
    "max_raw_memories_for_consolidation": ("0", "0"),
    "consolidation_cooldown_hours": ("-1", "-1"),
    "consolidation_timeout_seconds": ("0", "0"),
    "consolidation_max_requests": ("0", "0"),
    "consolidation_max_tokens": ("1", "1"),
    "embedder": ("openai:", '"bert"'),
    "embedder_url": ("", "5"),
    "embedder_key_variable": ("", "5"),
    "embed_threads": ("0", "0"),
    "mcp_http_port": ("65536", "65536"),
    "page_port": ("-1", "-1"),
    "models_folder": ("", "5"),
    "session_message": ("maybe", "1"),
    "memory_injection_max_injected_blocks_in_history": ("-1", "-1"),
    "memory_injection_context_window_depth": ("-1", "-1"),
    "memory_injection_max_total": ("0", "0"),
    "memory_injection_contextual_min_score": ("2", "2"),
    "memory_injection_ambient_enabled": ("perhaps", '"yes"'),
    "memory_injection_semantic_threshold": ("0", "0"),
    "memory_injection_max_tokens_per_block": ("10", "10"),
    "memory_injection_max_tokens_total": ("10", "10"),
    "memory_injection_enrich": ("maybe", "1"),
    "memory_injection_per_kind_limit": ("-1", "-1"),
    "memory_injection_ambient_sort": ("size", '"size"'),
    "memory_injection_pinned_kinds": ("rule", '["rule"]'),
    "turn_model": ("gpt", '"gpt"'),
    "turn_window": ("0", "0"),
    "turn_block_tokens": ("1", "1"),
    "turn_ttl_days": ("0", "0"),
    "assistant_signals_limit": ("-1", "-1"),
    "memory_reconcile_turns": ("0", "0"),
    "memory_reconcile_enabled": ("perhaps", '"yes"'),
    "long_memories_log": ("2", "2"),
    "log_level": ("loud", '"LOUD"'),
}


@pytest.mark.parametrize("key", [key for key in keys() if key not in ANY_TEXT])
def test_a_wrong_value_in_the_environment_names_key_and_variable(key: str, tmp_path: Path) -> None:
    variable = f"RECOLLECT_{key.upper()}"
    assert f"`{key}` from {variable}: " in message({variable: WRONG[key][0]}, tmp_path)


@pytest.mark.parametrize("key", keys())
def test_a_wrong_value_in_the_file_names_key_and_file(key: str, tmp_path: Path) -> None:
    assert f"`{key}` from config.toml: " in message({}, write(tmp_path, f"{key} = {WRONG[key][1]}\n"))


def test_a_wrong_value_of_a_flag_names_key_and_flag(tmp_path: Path) -> None:
    assert "`lease_seconds` from flag: " in message({}, tmp_path, lease_seconds="60")


def test_a_table_in_the_environment_that_is_none_is_named(tmp_path: Path) -> None:
    assert message({"RECOLLECT_ROOTS": "codex=/a"}, tmp_path).startswith("RECOLLECT_ROOTS is not a TOML table: ")


@pytest.mark.parametrize("key", ["poll_interval_seconds", "lease_seconds", "busy_timeout_seconds"])
@pytest.mark.parametrize(
    "text",
    [
        "nan",
        "inf",
    ],
)
def test_a_time_that_no_clock_can_tell_is_refused(key: str, text: str, tmp_path: Path) -> None:
    assert f"`{key}` from config.toml: " in message({}, write(tmp_path, f"{key} = {text}\n"))


@pytest.mark.parametrize("text", ["tenant = ", "tenant = 'a'\ntenant = 'b'\n", "= 5", "\ufeff= 1"])
def test_a_file_that_is_no_toml_is_named(text: str, tmp_path: Path) -> None:
    assert message({}, write(tmp_path, text)).startswith(f"{tmp_path / 'config.toml'} is not valid TOML: ")


def test_a_file_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    for text in ("x = " + "[" * 32_000, "x = " + "{a=" * 32_000, "x" + ".a" * 2_000 + " = 1"):
        assert message({}, write(tmp_path, text)) == f"{tmp_path / 'config.toml'} is nested too deeply"


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"tenant = '\xff\xfe'\n")
    assert "is not valid TOML: " in message({}, tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    assert message({}, tmp_path).startswith(f"{tmp_path / 'config.toml'} cannot be read: ")


def test_a_home_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    assert "cannot be read: " in message({}, tmp_path / "home")


def test_every_key_has_a_type_a_default_and_a_description() -> None:
    described = describe()
    assert [key.name for key in described] == keys()
    for key in described:
        assert key.description.endswith("."), key.name
        assert key.type in ("true/false", "whole number", "number", "text", "list of text", "table of lists")
        assert key.default == getattr(Config(), key.name)


def test_the_home_is_chosen_by_argument_then_variable_then_folder(tmp_path: Path) -> None:
    environ = {"HOME": "/home/ada"}
    assert load(environ).home == Path("/home/ada/.recollect")
    assert load({**environ, "RECOLLECT_HOME": "/data/memory"}).home == Path("/data/memory")
    assert load({**environ, "RECOLLECT_HOME": ""}).home == Path("/home/ada/.recollect")
    assert load({**environ, "RECOLLECT_HOME": "/data/memory"}, home=tmp_path).home == tmp_path


def test_a_relative_home_becomes_absolute_and_keeps_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    settings = load({"RECOLLECT_HOME": "link/../link/memory"})
    assert settings.home == tmp_path / "link" / "memory"
    assert settings.database_file == tmp_path / "link" / "memory" / "recollect.db"


def test_a_tilde_is_the_home_of_the_environment_that_was_given() -> None:
    assert load({"HOME": "/home/ada", "RECOLLECT_HOME": "~/memory"}).home == Path("/home/ada/memory")


def test_loading_creates_nothing(tmp_path: Path) -> None:
    settings = load({"HOME": str(tmp_path)}, flags={"tenant": "acme"})
    assert settings.user_home == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        load({}, home=tmp_path).config.tenant = "other"  # type: ignore[misc]


@pytest.mark.parametrize("key", keys())
def test_what_a_value_may_be_is_said_in_words(tmp_path: Path, key: str) -> None:
    said = message({}, write(tmp_path, f"{key} = {WRONG[key][1]}\n"))
    assert said.startswith(f"`{key}` from config.toml: Expected ") and "regex" not in said and "$" not in said


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-31", "2026-01-31T00:00"),
        ("2026-01-31T10:00:00", "2026-01-31T10:00"),
        ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00"),
    ],
)
def test_a_time_may_be_written_as_toml_does(tmp_path: Path, written: str, meant: str) -> None:
    assert load({}, home=write(tmp_path, f"history_since = {written}\n")).config.history_since == f"{meant}:00.000Z"


@pytest.mark.parametrize("value", ["openai: ", "openai-responses:\t", "anthropic: x"])
def test_a_model_needs_a_name(tmp_path: Path, value: str) -> None:
    assert "`anthropic:NAME`" in message({"RECOLLECT_MODEL": value}, tmp_path)
    assert "`openai:NAME`" in message({"RECOLLECT_EMBEDDER": "openai: "}, tmp_path)


def test_a_day_that_no_calendar_has_and_a_name_with_a_line_break_are_refused(tmp_path: Path) -> None:
    assert "no such time" in message({"RECOLLECT_HISTORY_SINCE": "2026-02-30T00:00:00Z"}, tmp_path)
    assert "letters" in message({"RECOLLECT_AGENT_ID": "x\n"}, tmp_path)
