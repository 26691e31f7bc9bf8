"""An artifact as text: YAML frontmatter, then a Markdown body that the frontmatter's checksum covers. Pure.

The order of keys is the order of the fields below and never depends on the values, so that equal content is equal
bytes. Strings are always quoted: no YAML library, of version 1.1 or 1.2, takes a time for a date or `no` for false.
The pure Python emitter writes, whether or not libyaml is installed, for the same reason.

A file may come from anywhere, so reading is strict: line by line where we wrote it, else by the events of a YAML parser
(libyaml's where it is there), under limits of size and depth, and without anchors, aliases, merge keys and tags.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, TypeVar

import msgspec
import yaml

from recollect.artifacts.names import Kind, Name, session_token
from recollect.errors import ArtifactError
from recollect.text import one_line, trimmed
from recollect.types import Timestamp, parse_timestamp

HASH_SCOPE = "body-normalized-v1"
_OPTIONAL = ("user", "frontmatter_sha256")
_UNESCAPED = "sanitize_transcript_v1"
_FENCE = "---"
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]  # what every database holds

_PLAIN = r"[ !#-\[\]-~\u00a1-\u1fff\u2010-\u2027\u2030-\ud7ff]*"  # what YAML writes and reads as it is
_PLAIN_TEXT = re.compile(_PLAIN)
_ESCAPED = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_LINE = re.compile(r'([a-z_0-9]+):(?: (?:(".*")|(0|[1-9]\d{0,15})|(null|\[\])))?', re.ASCII)
_PLAIN_NUMBER = re.compile(r"0|[1-9]\d{0,15}", re.ASCII)
_LONGEST = 16 * 1024 * 1024  # characters of frontmatter that is not as we write it, or of an escaped text
_MOST_ESCAPED = 1000  # lines that are read one by one, each by a parser of its own
_DEEPEST = 3  # a mapping that holds a list of mappings
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadFrontmatter(ArtifactError):
    """The frontmatter is missing or is not what an artifact has."""


class ChecksumMismatch(ArtifactError):
    """The file is not what its checksum says: it was changed by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The frontmatter of an immutable artifact: the specification's keys in its order, then ours. `sealed` fills in the
    checksums."""

    kind: Kind
    agent_id: str
    session_id: str
    session_key: str
    project: str
    harness: str
    captured_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None = None  # the last message; null for a compaction
    manifest_path: str
    source_node_id: str | None = None
    content_sha256: str = ""
    hash_scope: str = HASH_SCOPE
    sanitizer_version: str | None = None
    memory_sentence: str
    memory_sentence_version: str
    memory_sentence_quality: str
    memory_sentence_generated_at: Timestamp
    memory_sentence_sha256: str = ""
    project_id: str
    snapshot: str = ""  # of the entries that were extracted
    source_file: str
    branch: str
    rollout_slug: str | None = None  # of a summary
    parts: _Count | None = None  # of a summary
    strategy: str | None = None  # of a summary, or of a transcript that has none: how it was read
    idempotency_key: str  # names the run that wrote it: a second run with this key writes nothing new
    user: str = ""  # of a chat; written only where there is one
    frontmatter_sha256: str = ""  # of all the others; files of earlier versions have none

    @property
    def is_escaped(self) -> bool:
        """Does its body hold text as `markdown` escapes it? The first version of the sanitizer left it as it was."""
        return (self.sanitizer_version or _UNESCAPED) != _UNESCAPED


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that a manifest lists. One that was superseded may be deleted by now."""

    path: str
    sha256: str  # of its body


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The frontmatter of a manifest, the only file that changes: its revision is compared and swapped."""

    kind: Kind
    agent_id: str
    session_id: str
    session_key: str
    project: str
    harness: str
    captured_at: Timestamp  # when the conversation began, as in the name: known to every writer, whoever is first
    summary_path: str | None
    transcript_path: str | None  # null: a compaction came before the conversation ended
    compaction_path: str | None  # the newest
    memory_md_refs: tuple[str, ...]
    updated_at: Timestamp
    project_id: str
    snapshot: str
    revision: _Count
    summary_sha256: str | None
    transcript_sha256: str | None
    superseded: tuple[Listed, ...]
    compactions: tuple[Listed, ...]  # oldest first
    superseded_by: str | None  # the session key of the conversation that has its entries now
    content_sha256: str = ""
    hash_scope: str = HASH_SCOPE
    frontmatter_sha256: str = ""

    @property
    def paths(self) -> list[str]:
        """Of every content that it names, there or not."""
        listed = (each.path for each in (*self.superseded, *self.compactions))
        return [path for path in (self.transcript_path, self.summary_path, self.compaction_path, *listed) if path]


@dataclass(frozen=True, slots=True)
class Document:
    head: Content | Manifest
    body: str  # normalised

    @property
    def name(self) -> Name:
        """By its frontmatter; the file may be called otherwise."""
        head = self.head
        return Name(head.captured_at, session_token(head.agent_id, head.session_key, head.session_id), head.kind)

    @property
    def identity(self) -> tuple[str, ...]:
        """Whose and what it is; never changes under one name."""
        return self.head.kind, self.head.agent_id, self.head.session_key, self.head.session_id, self.head.harness


def normalised(body: str) -> str:
    """`body-normalized-v1`: LF line endings, no spaces or tabs at the end of a line, no blank lines at the end."""
    return trimmed(body)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


_Head = TypeVar("_Head", Content, Manifest)


def sealed(head: _Head, body: str) -> tuple[_Head, str]:
    """The head with its checksums, and the body that they cover. A path may hold half characters; a file does not."""
    body = normalised(body)
    texts = {name: value for name, value in asdict(head).items() if type(value) is str}
    changed: dict[str, Any] = {name: value.encode("utf-8", "replace").decode() for name, value in texts.items()}
    changed |= {"content_sha256": sha256(body), "hash_scope": HASH_SCOPE}
    if isinstance(head, Content):
        changed["memory_sentence_sha256"] = sha256(changed["memory_sentence"])
    head = replace(head, **changed)
    return replace(head, frontmatter_sha256=_frontmatter_sha256(_written(head))), body


def _written(head: Content | Manifest) -> dict[str, Any]:
    """The keys of a head, but for those that stand only where they have a value."""
    return {key: value for key, value in asdict(head).items() if value or key not in _OPTIONAL}


def _frontmatter_sha256(values: Mapping[str, Any]) -> str:
    """A checksum of keys and values, whoever's YAML they stand in."""
    return sha256(_lines({key: value for key, value in values.items() if key != "frontmatter_sha256"}))


def rendered(head: Content | Manifest, body: str) -> str:
    """The text of the file; head and body come from `sealed`."""
    return framed(_written(head), body)


def framed(values: Mapping[str, Any], body: str) -> str:
    """Frontmatter and body as one text, the keys in the order given."""
    return f"{_FENCE}\n{_lines(values)}{_FENCE}\n\n{body}\n"


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(_line(key, _plain(value)) for key, value in values.items())


def _line(key: str, value: Any) -> str:
    """As the YAML library writes it, which takes fifty times as long for what needs no escape."""
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value):
        return f'{key}: "{value}"\n'
    if value is None or value == [] or type(value) is int:
        return f"{key}: {'null' if value is None else value}\n"
    if isinstance(value, list) and all(isinstance(each, str) and _PLAIN_TEXT.fullmatch(each) for each in value):
        return f"{key}:\n" + "".join(f'- "{each}"\n' for each in value)
    written: str = yaml.dump(
        {key: value}, Dumper=_Quoting, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1 << 30
    )
    return written


def parse(text: str) -> Document:
    """What `rendered` wrote. Raises BadFrontmatter and ChecksumMismatch."""
    values, body = unframed(text)
    head = _head(values)
    if head.hash_scope != HASH_SCOPE:
        raise BadFrontmatter(f"hash_scope is {head.hash_scope}, not {HASH_SCOPE}")
    if head.content_sha256 != sha256(body):
        raise ChecksumMismatch("the body is not what content_sha256 says")
    if isinstance(head, Content) and head.memory_sentence_sha256 != sha256(head.memory_sentence):
        raise ChecksumMismatch("memory_sentence is not what memory_sentence_sha256 says")
    if head.frontmatter_sha256 and head.frontmatter_sha256 != _frontmatter_sha256(_written(head)):
        raise ChecksumMismatch("the frontmatter is not what frontmatter_sha256 says")
    return Document(head, body)


def unframed(text: str) -> tuple[dict[Any, Any], str]:
    """Frontmatter and the normalised body. BadFrontmatter when there is none."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith(f"{_FENCE}\n"):
        raise BadFrontmatter("the file does not begin with frontmatter")
    front, fence, body = text[len(_FENCE) + 1 :].partition(f"\n{_FENCE}\n")
    if not fence:
        raise BadFrontmatter("the frontmatter has no end")
    return _simple(front) or _yaml(front), normalised(body.removeprefix("\n"))


def _simple(front: str) -> dict[Any, Any] | None:
    """Lines as `framed` writes them, but for lists of mappings, ten times as fast as YAML; None when one is not."""
    values: dict[Any, Any] = {}
    listed = ""  # the key whose items may follow
    escaped = 0
    for line in front.split("\n"):
        escaped += "\\" in line
        if escaped > _MOST_ESCAPED:
            return None
        if line.startswith("- "):
            item = _quoted(line[2:])
            if not listed or item is None:
                return None
            if values[listed] is None:
                values[listed] = []
            values[listed].append(item)
            continue
        found = _LINE.fullmatch(line)
        if found is None or found[1] in values:
            return None
        name, quoted, number, nothing = found.groups()
        text = _quoted(quoted) if quoted else None
        if quoted and text is None:
            return None
        values[name] = text if quoted else int(number) if number else [] if nothing == "[]" else None
        listed = name if not (quoted or number or nothing) else ""
    return values


def _quoted(text: str) -> str | None:
    """Return what stands between quotes; None when it is no text of one line."""
    if len(text) > 1 and text[0] == text[-1] == '"' and _PLAIN_TEXT.fullmatch(text, 1, len(text) - 1):
        return text[1:-1]
    is_text = len(text) <= _LONGEST and _ESCAPED.fullmatch(text)
    return str(_yaml(f"text: {text}")["text"]) if is_text else None


def _yaml(front: str) -> dict[Any, Any]:
    """Return what YAML of three levels says, as an editor may have written it: texts, whole numbers and null."""
    if len(front) > _LONGEST:
        raise BadFrontmatter("the frontmatter is too long")
    try:
        documents = _values(yaml.parse(front, Loader=_Loader))
    except yaml.YAMLError as error:
        raise BadFrontmatter(f"the frontmatter is no YAML: {one_line(str(error))}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise BadFrontmatter("the frontmatter holds no keys")
    return documents[0]


def _values(events: Iterator[Any]) -> list[Any]:
    """Return the documents that events of a parser describe. Nothing here calls itself, whatever the events are."""
    documents: list[Any] = []
    open_: list[Any] = [documents]  # the lists and mappings that the next value lies in
    keys: list[Any] = [None]  # of each: the key that waits for its value
    for event in events:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise BadFrontmatter("the frontmatter has an anchor, an alias or a tag")
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
            keys.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        value = _begun(event)
        inside = open_[-1]
        if isinstance(inside, list):
            inside.append(value)
        elif keys[-1] is not None:
            inside[keys[-1]], keys[-1] = value, None
        elif isinstance(value, str) and value not in inside:
            keys[-1] = value
        else:
            raise BadFrontmatter(f"the frontmatter has a key twice, or one that is no text: {one_line(repr(value))}")
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append(value)
            keys.append(None)
            if len(open_) > _DEEPEST + 1:
                raise BadFrontmatter("the frontmatter is nested too deeply")
    return documents


def _begun(event: Any) -> Any:
    """Return the value that begins with an event: a list or a mapping, still empty, or a scalar."""
    if not isinstance(event, yaml.ScalarEvent):
        return [] if isinstance(event, yaml.SequenceStartEvent) else {}
    text: str = event.value
    if not event.implicit[0]:  # it is quoted, or a block
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    return int(text) if _PLAIN_NUMBER.fullmatch(text) else text


def _head(values: dict[Any, Any]) -> Content | Manifest:
    kind = values.get("kind")
    if kind not in list(Kind) or kind == Kind.TOMBSTONE:
        raise BadFrontmatter(f"kind is {one_line(repr(kind))}")
    form: type[Content | Manifest] = Manifest if kind == Kind.MANIFEST else Content
    names = [field.name for field in fields(form)]
    names = [name for name in names if name not in _OPTIONAL or name in values]
    if missing := [name for name in names if name not in values]:
        raise BadFrontmatter(f"{missing[0]} is missing")
    try:
        head = msgspec.convert({name: values[name] for name in names}, form)
    except msgspec.ValidationError as error:  # a person may have edited it
        raise BadFrontmatter(str(error)) from None
    for field in fields(form):
        value = getattr(head, field.name)
        if str(field.type).startswith("Timestamp") and value is not None and not _is_time(value):
            raise BadFrontmatter(f"{field.name} is {one_line(repr(value))}")
    if isinstance(head, Content) and kind == Kind.TRANSCRIPT and head.sanitizer_version is None:
        raise BadFrontmatter("sanitizer_version is missing")
    return head


def _is_time(text: str) -> bool:
    """As we write it: its order as text is its order in time."""
    try:
        return parse_timestamp(text) == text
    except ValueError:
        return False


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value


class _Quoting(yaml.SafeDumper):  # type: ignore[misc]
    """Keys bare, strings quoted, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        for key, _ in node.value:
            key.style = None
        return node


_Quoting.add_representer(str, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"'))
