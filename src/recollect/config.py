"""One frozen Config, and the only reader of config.toml and of environment variables.

A value comes from the first of: a flag, RECOLLECT_<KEY> in the environment, config.toml under RECOLLECT_HOME, the
default below. Every key carries its description, which is what the generated page shows. A key that does not exist
is an error that names the one most like it: a typo must not silently switch something off.

Annotations are values here, not text as elsewhere: every start reads them, and to evaluate them takes a millisecond.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta

from recollect.errors import ConfigError, UsageError, nearest
from recollect.home import require_own
from recollect.types import MemoryKind, parse_timestamp

HOME_VARIABLE = "RECOLLECT_HOME"
BYPASS_VARIABLE = "RECOLLECT_BYPASS"  # set in processes that recollect itself starts: their hooks do nothing
DAMAGED_DATABASES = "recollect.db.damaged-*"  # what `doctor` set aside, under the home
_PREFIX = "RECOLLECT_"
_RESERVED = frozenset({HOME_VARIABLE, BYPASS_VARIABLE})
_PLAIN = ("LONG_MEMORIES_LOG", "MEMORY_RECONCILE_ENABLED")  # known by these names elsewhere; ours come before them

_YEAR = 365 * 86400.0
_KINDS = f"^({'|'.join(MemoryKind)})$"
AGENT_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
Name = Annotated[str, Meta(pattern=AGENT_ID)]
_MODEL = r"^(offline|(openai|openai-responses|anthropic):\S.*|cli:(claude|codex)(:\S+)?)$"
_AGENT = r"^cli:(claude|codex)(:\S+)?$"
_MODEL_OR_NONE = _MODEL.replace("(", "(|", 1)
_EMBEDDER = r"^(auto|none|arctic|static|openai:\S.*)$"
_RETIRED = frozenset({"minilm", "mpnet"})  # embedders of earlier versions: read as `auto`
_SORTS = "^(recency|importance)$"
_LEVELS = "^(debug|info|warning|error)$"
_TIME = r"^(|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)$"
_TIMES = ("history_since", "agreed_since")
_MODELS = "`offline`, `openai:NAME`, `openai-responses:NAME`, `anthropic:NAME`, `cli:claude` or `cli:codex`"
_AGENTS = "`cli:claude`, `cli:codex`, or one of them with a model of its own, as in `cli:claude:haiku`"
_IN_WORDS = {  # for whoever got it wrong
    AGENT_ID: "letters, digits, `.`, `_` and `-`, 64 at most, a letter or a digit first",
    _MODEL: _MODELS,
    _MODEL_OR_NONE: f"nothing, {_MODELS}",
    _AGENT: _AGENTS,
    _EMBEDDER: "`auto`, `arctic`, `static`, `openai:NAME` or `none`",
    _TIME: "a time like 2026-01-31T00:00:00Z",
    _KINDS: f"one of {', '.join(f'`{kind}`' for kind in MemoryKind)}",
    _SORTS: "`recency` or `importance`",
    _LEVELS: "`debug`, `info`, `warning` or `error`",
}


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting. The order here is the order of the generated page."""

    enabled: Annotated[bool, Meta(description="Switches the whole system on or off.")] = True
    database: Annotated[
        str, Meta(description="Empty for `recollect.db` under RECOLLECT_HOME, else a `postgresql://` URL.")
    ] = ""
    tenant: Annotated[Name, Meta(description="Whose data it is where several tenants share a database.")] = "default"
    agent_id: Annotated[Name, Meta(description="Whose memory it is; `--agent-id` on the command line.")] = "default"
    roots: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Folders to read, per source; replaces the source's own default folders."),
    ] = {}
    ignore: Annotated[
        tuple[str, ...],
        Meta(
            description="Globs of transcript files and of project folders that are never read or stored. "
            "`**` spans folders, `~` is the home folder; a glob without a slash matches any one name."
        ),
    ] = ()
    disabled_projects: Annotated[
        tuple[str, ...],
        Meta(description="Projects that are switched off: a folder (with all below it) or a project id."),
    ] = ()
    history_since: Annotated[
        str,
        Meta(
            pattern=_TIME,
            description="The daemon leaves alone what agents wrote last before that time; `recollect ingest` does not.",
        ),
    ] = ""
    conversation_gap_minutes: Annotated[
        int, Meta(ge=1, le=5_256_000, description="Silence after which a conversation counts as finished.")
    ] = 60
    min_conversation_messages: Annotated[
        int,
        Meta(ge=1, description="Shorter conversations are skipped, unless the user laid down or answered something."),
    ] = 5
    test_sessions: Annotated[
        tuple[str, ...],
        Meta(description="Globs of session ids that are tests: kept like any other, shown and told nowhere."),
    ] = ("test-*",)
    poll_interval_seconds: Annotated[
        float, Meta(gt=0, le=_YEAR, description="How often `watch` looks for conversations that became ready.")
    ] = 30.0
    ingest_workers: Annotated[
        int, Meta(ge=1, le=32, description="Processes that share a large backlog of transcripts.")
    ] = 2
    lease_seconds: Annotated[
        float, Meta(gt=0, le=_YEAR, description="How long a job belongs to a worker that stopped renewing its lease.")
    ] = 120.0
    busy_timeout_seconds: Annotated[
        float, Meta(gt=0, le=_YEAR, description="How long to wait for another process that holds the database.")
    ] = 10.0
    model: Annotated[
        str,
        Meta(
            pattern=_MODEL,
            description="What extracts memories: `offline`, `openai:NAME` (any OpenAI-compatible endpoint), "
            "`openai-responses:NAME`, `anthropic:NAME`, `cli:claude` or `cli:codex` (your own agent, without tools; "
            "`cli:claude:haiku` names a model of it). It reads every project; see `agreed_projects`.",
        ),
    ] = "offline"
    agreed_projects: Annotated[
        dict[Annotated[str, Meta(pattern=_AGENT)], tuple[str, ...]],
        Meta(
            description="Your own agent → the ids of the projects that it may read while `model` is `offline`; `init` "
            "asks about each and writes it here. What is not named is not sent."
        ),
    ] = {}
    agreed_since: Annotated[
        str,
        Meta(
            pattern=_TIME,
            description="Your own agent reads by itself what was said since; `process --again --now` has it read "
            "older conversations of `agreed_projects`.",
        ),
    ] = ""
    agent_quiet_minutes: Annotated[
        int,
        Meta(
            ge=0,
            le=10_080,
            description="Your own agent is asked once nobody used an agent for so long and the machine is not busy; "
            "0: at once. `process --now` does not wait.",
        ),
    ] = 5
    consolidation_model: Annotated[
        str,
        Meta(
            pattern=_MODEL_OR_NONE,
            description="What keeps the workspace; empty: the same as `model`.",
        ),
    ] = ""
    model_url: Annotated[
        str, Meta(description="Base URL of the endpoint, e.g. `http://127.0.0.1:11434/v1`; empty: the provider's own.")
    ] = ""
    model_key_variable: Annotated[
        str,
        Meta(
            description="Environment variable that holds the API key; empty: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`. "
            "Keys are never stored."
        ),
    ] = ""
    model_timeout_seconds: Annotated[
        float, Meta(gt=0, le=86400, description="Deadline of one answer, retries included.")
    ] = 120.0
    model_part_tokens: Annotated[
        int,
        Meta(ge=500, description="Longer conversations are split between turns, extracted in parts and merged."),
    ] = 24_000
    model_output_tokens: Annotated[int, Meta(ge=100, description="The most that one answer may have.")] = 8_000
    model_input_price: Annotated[
        float, Meta(ge=0, description="US dollars per million input tokens; 0: the known price of the model, if any.")
    ] = 0.0
    model_output_price: Annotated[
        float, Meta(ge=0, description="US dollars per million output tokens; 0: the known price of the model, if any.")
    ] = 0.0
    max_tokens_per_day: Annotated[
        int, Meta(ge=0, description="Jobs pause until midnight (UTC) once this many were used; 0: no cap.")
    ] = 2_000_000
    confirm_above_tokens: Annotated[
        int, Meta(ge=0, description="`process` asks before it sends more than this to a paid model.")
    ] = 200_000
    max_rollouts_per_startup: Annotated[
        int, Meta(ge=1, description="Conversations that one run of phase 1 takes; `process --limit` overrides it.")
    ] = 16
    max_rollout_age_days: Annotated[
        int, Meta(ge=1, le=36500, description="Older conversations are left alone, unless a person asks with `--now`.")
    ] = 30
    extraction_concurrency: Annotated[
        int, Meta(ge=1, le=64, description="Conversations that are with a model at the same time.")
    ] = 8
    max_unused_days: Annotated[
        int, Meta(ge=1, le=36500, description="Phase 2 lets go of what was neither used nor new for so long.")
    ] = 30
    max_raw_memories_for_consolidation: Annotated[
        int, Meta(ge=1, le=1000, description="The most conversations that phase 2 looks at.")
    ] = 256
    consolidation_cooldown_hours: Annotated[
        float, Meta(ge=0, le=8760, description="Pause after a consolidation; `consolidate --now` lifts it.")
    ] = 6.0
    consolidation_timeout_seconds: Annotated[
        float, Meta(gt=0, le=86400, description="Deadline of one consolidation.")
    ] = 900.0
    consolidation_max_requests: Annotated[int, Meta(ge=1, description="Most model calls of one consolidation.")] = 60
    consolidation_max_tokens: Annotated[int, Meta(ge=1000, description="Most tokens of one consolidation.")] = 600_000
    embedder: Annotated[
        str,
        Meta(
            pattern=_EMBEDDER,
            description="What makes vectors for search: `arctic` (a small transformer, see `models install`), "
            "`static` (comes with the package, fast, coarser), `openai:NAME` (any OpenAI-compatible endpoint), `none`, "
            "or `auto`: the first of `arctic` and `static` that is installed.",
        ),
    ] = "auto"
    embedder_url: Annotated[
        str, Meta(description="Base URL of the embedding endpoint; empty: the same as `model_url`.")
    ] = ""
    embedder_key_variable: Annotated[
        str,
        Meta(
            description="Environment variable that holds the embedding endpoint's key; empty: `OPENAI_API_KEY`, or "
            "`model_key_variable` where the endpoint is that of `model_url`."
        ),
    ] = ""
    embed_threads: Annotated[
        int, Meta(ge=1, le=64, description="Threads that a transformer embeds a backlog with.")
    ] = 1
    models_folder: Annotated[
        str,
        Meta(
            description="Where installed models lie; empty: `models` under RECOLLECT_HOME, else "
            "`share/recollect/models` beside the program."
        ),
    ] = ""
    session_message: Annotated[
        bool,
        Meta(description="Shows the person a line when a session begins: how much it was told, and the last outcome."),
    ] = True
    memory_injection_max_injected_blocks_in_history: Annotated[
        int, Meta(ge=0, description="Most injected blocks that stay in a history; 0: none once the turn is over.")
    ] = 3
    memory_injection_context_window_depth: Annotated[
        int, Meta(ge=0, description="Turns for which a memory that is visible in the history is not given again.")
    ] = 10
    memory_injection_max_total: Annotated[int, Meta(ge=1, le=100, description="Most memories in a block.")] = 10
    memory_injection_contextual_min_score: Annotated[
        float, Meta(ge=0, le=1, description="Relevance from which a memory is given; 0: the floor that was calibrated.")
    ] = 0.0
    memory_injection_ambient_enabled: Annotated[
        bool, Meta(description="Gives pinned memories and kinds whatever the prompt is.")
    ] = True
    memory_injection_semantic_threshold: Annotated[
        float, Meta(gt=0, le=1, description="Share of words in common from which two lines of a block say the same.")
    ] = 0.8
    memory_injection_max_tokens_per_block: Annotated[int, Meta(ge=100, description="Most tokens of a block.")] = 1_500
    memory_injection_max_tokens_total: Annotated[
        int,
        Meta(ge=100, description="Most tokens of all blocks that are visible; with hooks, of what prompts were given."),
    ] = 4_000
    memory_injection_enrich: Annotated[
        bool, Meta(description="Looks at the last exchanges, too, when a prompt says no more than `why that?`.")
    ] = True
    memory_injection_pinned_kinds: Annotated[
        tuple[Annotated[str, Meta(pattern=_KINDS)], ...],
        Meta(description="Kinds of memories that are given whatever the prompt is."),
    ] = ()
    memory_injection_per_kind_limit: Annotated[int, Meta(ge=0, description="Most memories of each of them.")] = 5
    memory_injection_ambient_sort: Annotated[
        str, Meta(pattern=_SORTS, description="Their order: `recency` or `importance`.")
    ] = "importance"
    turn_model: Annotated[
        str,
        Meta(
            pattern=_MODEL_OR_NONE,
            description="What reconciles chat turns; empty: the same as `model`.",
        ),
    ] = ""
    turn_window: Annotated[
        int, Meta(ge=1, le=200, description="Turns of a chat, and their memories and reactions, that a view shows.")
    ] = 12
    turn_block_tokens: Annotated[int, Meta(ge=50, description="The most tokens of one block of a view.")] = 1_500
    turn_ttl_days: Annotated[
        int, Meta(ge=1, le=36500, description="How long turns are read again; their logs stay.")
    ] = 365
    assistant_signals_limit: Annotated[
        int, Meta(ge=0, le=200, description="Assistant signals that the final answer's view shows.")
    ] = 20
    memory_reconcile_turns: Annotated[
        int, Meta(ge=1, description="Turns of a chat after which they are taken into the user's buckets.")
    ] = 5
    memory_reconcile_enabled: Annotated[
        bool,
        Meta(description="Keeps buckets of what users said; `MEMORY_RECONCILE_ENABLED` in the environment, too."),
    ] = True
    long_memories_log: Annotated[
        bool, Meta(description="Keeps no buckets, only the turns; `LONG_MEMORIES_LOG` in the environment, too.")
    ] = False
    mcp_http_port: Annotated[
        int,
        Meta(ge=0, le=65535, description="Port on loopback where the daemon serves MCP over HTTP; 0: it does not."),
    ] = 0
    page_port: Annotated[
        int,
        Meta(
            ge=0, le=65535, description="Port on loopback of `recollect ui`, which stays then; 0: any, and it leaves."
        ),
    ] = 0
    log_level: Annotated[str, Meta(pattern=_LEVELS, description="What goes to `logs/recollect.log`.")] = "warning"


@dataclass(frozen=True, slots=True)
class Settings:
    """A Config, the folder it belongs to, and where each value came from."""

    home: Path  # RECOLLECT_HOME, absolute
    config: Config
    origins: Mapping[str, str]  # key → "default", "config.toml", "RECOLLECT_…" or "flag"
    environ: Mapping[str, str]  # the environment as it was read, for the sources' default folders

    @property
    def database_file(self) -> Path:
        return self.home / "recollect.db"

    @property
    def root(self) -> Path:
        """The folder of a tenant's files, whatever the agent: they say whose they are, but not of which tenant."""
        tenant = self.config.tenant
        return self.home if tenant == "default" else self.home / "tenants" / tenant

    @property
    def workspace(self) -> Path:
        """The folder that phase 2 keeps."""
        agent = self.config.agent_id
        return self.root / "workspace" if agent == "default" else self.root / "agents" / agent / "workspace"

    @property
    def models(self) -> Path:
        """The folder of installed models."""
        folder = self.config.models_folder
        return self.expand(folder) if folder else self.home / "models"

    @property
    def turns(self) -> Path:
        """The folder of our own turn logs and notes."""
        agent, tenant = self.config.agent_id, self.config.tenant
        return (self.home if agent == "default" else self.home / "agents" / agent) / "turns" / tenant

    @property
    def user_home(self) -> str:
        return _user_home(self.environ)

    def variables(self, keys: Iterable[str]) -> dict[str, str]:
        """What the environment says of these keys; empty: nothing."""
        return {name: self.environ.get(name, "") for name in (_PREFIX + key.upper() for key in keys)}

    def expand(self, path: str) -> Path:
        return Path(_expand(path, self.environ))

    def folder(self, path: str) -> str:
        """The folder that a path names, as agents record it: absolute, links as they are."""
        return _absolute(_expand(path, self.environ))


def load(
    environ: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Reads everything once. Nothing is created: a command that only looks leaves no trace."""
    bare = located(environ, home=home)
    home, environ = bare.home, bare.environ
    values: dict[str, Any] = {}
    origins = dict(bare.origins)
    for origin, layer in (
        ("config.toml", _from_file(home / "config.toml")),
        ("plain", {name.lower(): environ[name] for name in _PLAIN if name in environ}),
        ("environment", _from_environment(environ)),
        ("flag", {key: value for key, value in (flags or {}).items() if value is not None}),
    ):
        for key, value in layer.items():
            _require_known(key, origin)
            values[key] = "auto" if key == "embedder" and value in _RETIRED else value
            origins[key] = {"environment": _PREFIX + key.upper(), "plain": key.upper()}.get(origin, origin)
    return Settings(home=home, config=_convert(values, origins), origins=origins, environ=environ)


def located(environ: Mapping[str, str] | None = None, *, home: Path | None = None) -> Settings:
    """Every value at its default: for what has to work whatever the configuration says. UnsafeHome where others could
    have put something into the home."""
    environ = dict(os.environ if environ is None else environ)
    if home is None:
        home = Path(environ.get(HOME_VARIABLE) or "~/.recollect")
    home = Path(_absolute(_expand(str(home), environ)))
    require_own(home)
    return Settings(home=home, config=Config(), origins=dict.fromkeys(keys(), "default"), environ=environ)


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - resolve() would follow a link the user chose


def _expand(path: str, environ: Mapping[str, str]) -> str:
    """`~` is the home of the environment that was given, `~name` that of a user."""
    if path == "~" or path.startswith("~/"):
        return _user_home(environ).rstrip("/") + path[1:] or "/"
    if not path.startswith("~"):
        return path
    found = os.path.expanduser(path)  # noqa: PTH111 - tells an unknown user by leaving the text as it is
    if found == path:
        hint = "Write the path in full; ./~x is a folder of that name."
        raise UsageError(f"`{path}`: there is no such user", hint=hint)
    return found


def _user_home(environ: Mapping[str, str]) -> str:
    """Return the user's own folder; a HOME that is empty or relative would be a part of the current one."""
    import pwd

    for home in (environ.get("HOME", ""), os.environ.get("HOME", "")):
        if os.path.isabs(home):  # noqa: PTH117
            return home
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        hint = "Set HOME, or write the path in full."
        raise UsageError("`~` stands for a home folder that is not known", hint=hint) from None


def keys() -> list[str]:
    return list(Config.__struct_fields__)


@dataclass(frozen=True, slots=True)
class Key:
    """What the generated page and `recollect config` tell about a key."""

    name: str
    type: str
    default: Any
    description: str


def describe() -> list[Key]:
    described = []
    for field in msgspec.structs.fields(Config):
        base, *metas = get_args(Config.__annotations__[field.name])
        description = next(m.description for m in reversed(metas) if isinstance(m, Meta) and m.description)
        default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        described.append(Key(field.encode_name, _type_name(base), default, description))
    return described


def _type_name(base: Any) -> str:
    origin = get_origin(base)
    if origin is tuple:
        return "list of text"
    if origin is dict:
        return "table of lists"
    return {bool: "true/false", int: "whole number", float: "number"}.get(base, "text")


def _from_file(path: Path) -> dict[str, Any]:
    import tomllib  # here, as below: a process that is told its settings does without

    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return dict(_flat(tomllib.loads(text.decode())))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply") from None


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A table that is no key itself groups keys that begin with its name: `[memory_injection] max_total`."""
    for name, value in table.items():
        if isinstance(value, dict) and prefix + name not in keys():
            yield from _flat(value, f"{prefix}{name}_")
        else:
            yield prefix + name, value


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """RECOLLECT_<KEY>: lists are separated by the path separator, tables are TOML."""
    import tomllib

    values: dict[str, Any] = {}
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or variable in _RESERVED:
            continue
        key, text = variable.removeprefix(_PREFIX).lower(), environ[variable]
        _require_known(key, variable)
        origin = get_origin(get_args(Config.__annotations__[key])[0])
        if origin is tuple:
            values[key] = [part for part in text.split(os.pathsep) if part]
        elif origin is dict:
            try:
                values[key] = tomllib.loads(f"x = {text}")["x"]
            except tomllib.TOMLDecodeError as error:
                raise ConfigError(f"{variable} is not a TOML table: {error}") from error
        else:
            values[key] = text
    return values


def _require_known(key: str, origin: str) -> None:
    if key in keys():
        return
    raise ConfigError(f"unknown key `{key}` in {origin}{nearest(key, keys())}")


def value_of(key: str, value: Any, name: str, *, text: bool = False) -> Any:
    """What a key takes; an error, which calls it `name`, if it does not take this. Text of the environment may stand
    for a number or a switch."""
    try:
        return msgspec.convert(value, Config.__annotations__[key], strict=not text)
    except msgspec.ValidationError as error:
        told = str(error).partition(" - at `$")[0]
        for pattern, words in _IN_WORDS.items():
            told = told.replace(f"`str` matching regex {pattern!r}", words)
        raise ConfigError(f"{name}: {told}") from error


def _convert(values: dict[str, Any], origins: Mapping[str, str]) -> Config:
    converted = {}
    for key, value in values.items():
        if key in _TIMES and isinstance(value, date):  # as TOML writes it, without quotes
            value = parse_timestamp(value.isoformat())
        text = origins[key].startswith((_PREFIX, *_PLAIN))
        converted[key] = value_of(key, value, f"`{key}` from {origins[key]}", text=text)
    made = Config(**converted)
    for key in _TIMES:
        try:
            parse_timestamp(getattr(made, key) or "2000-01-01")
        except ValueError as error:
            raise ConfigError(f"`{key}` from {origins[key]}: there is no such time") from error
    return made
