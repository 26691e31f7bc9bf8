"""The cache of codes: one data file of equal blocks and a small state file that says how much of it counts.

A writer (one at a time, under a lock) appends behind what counts, brings the data to disk, then replaces the state: a
crash at any moment leaves the state before or after. Readers map the file and look no further than their state says.
Whatever does not fit together counts as an empty cache. Every row knows its vector's id in the database; ids grow.

    block:  ids | scales | projects | kinds | signs, column by column | components, row by row
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from recollect.errors import StoreError, StoreFull
from recollect.search.vectors import codes
from recollect.search.vectors.codes import Matrix
from recollect.workspace import make_private

VERSION = 1
BLOCK = 32_768  # rows
_STATE, _LOCK = "state.json", "lock"
_SCOPES = 2  # whose rows are remembered
_GONE = 255  # kind of a row that is near nothing: its vector is gone, or was of a text with nothing in it
_MOST_GONE = 0.25  # share of rows that may be gone before the file is written anew


Places = NDArray[np.intp]  # rows of a block


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What counts."""

    version: int = VERSION
    dimensions: int
    file: str = ""  # name of the data file; empty: none yet
    rows: int = 0
    empty: int = 0  # of these rows: of texts with nothing in them
    dropped: int = 0  # of these rows: their vectors are gone
    last: int = 0  # greatest id that was ever added
    projects: tuple[str, ...] = ()  # a row's project is a place in this list


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors to add, in the order of their ids."""

    ids: Sequence[int]
    kinds: Sequence[int]
    projects: Sequence[str]
    vectors: Matrix


class _Layout:
    """Where the parts of a block lie."""

    def __init__(self, dimensions: int) -> None:
        self.words = codes.words(dimensions)
        self.dimensions = dimensions
        self.parts: dict[str, tuple[int, np.dtype[Any], int]] = {}  # name → offset, type, numbers per row
        self.size = 0
        for name, dtype, width in (
            ("ids", "<i8", 1),
            ("scales", "<f4", 1),
            ("projects", "<u4", 1),
            ("kinds", "u1", 1),
            *((f"signs{word}", "<u8", 1) for word in range(self.words)),
            ("components", "i1", dimensions),
        ):
            self.parts[name] = (self.size, np.dtype(dtype), width)
            self.size += BLOCK * width * np.dtype(dtype).itemsize


class _Block:
    """Views of one block's parts, as many rows as count."""

    def __init__(self, data: NDArray[np.uint8], layout: _Layout, rows: int) -> None:
        def part(name: str) -> NDArray[Any]:
            offset, dtype, width = layout.parts[name]
            return data[offset : offset + rows * width * dtype.itemsize].view(dtype)

        self.ids = part("ids")
        self.scales = part("scales")
        self.projects = part("projects")
        self.kinds = part("kinds")
        self.components = part("components").reshape(rows, layout.dimensions)
        self.signs = [part(f"signs{word}") for word in range(layout.words)]


class Index:
    """A cache as it was when it was opened."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self.folder = folder
        self._stamp = _stamp(folder)  # before it is read: what is replaced in between is seen the next time
        self.state, self._blocks = _open(folder, dimensions)
        self._scopes: dict[Any, list[Places]] = {}  # asked for lately, and their rows: they are often the next

    def is_current(self) -> bool:
        """Nobody replaced the state since it was opened."""
        return _stamp(self.folder) == self._stamp

    def candidates(
        self, query: Matrix, number: int, kinds: Sequence[int] | None, projects: frozenset[str] | None
    ) -> tuple[NDArray[np.int64], Matrix]:
        """Ids and approximate similarities of the rows that are probably nearest, best first.

        All allowed rows where they are few enough to be ranked one by one.
        """
        places = self._within(kinds, projects)
        allowed = sum(map(len, places))
        number = max(number, codes.enough(allowed))
        if allowed > number:
            places = self._near(query, number, places)
        ids, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
        for block, rows in zip(self._blocks, places, strict=True):
            ids.append(block.ids[rows])
            scores.append(codes.products(block.components, rows, query) * block.scales[rows])
        every, similar = np.concatenate(ids), np.concatenate(scores)
        order = np.argsort(-similar)
        return every[order], similar[order]

    def similarities(self, query: Matrix, ids: NDArray[np.int64]) -> Matrix:
        """Approximate, of these rows, whose ids are in order; not a number where there is none."""
        found = np.full(len(ids), np.nan, np.float32)
        for block in self._blocks:  # ids grow from block to block
            first, last = np.searchsorted(ids, [block.ids[0], block.ids[-1] + 1])
            places = np.searchsorted(block.ids, ids[first:last])
            there = (block.ids[places] == ids[first:last]) & (block.kinds[places] != _GONE)
            rows = places[there]
            found[first:last][there] = codes.products(block.components, rows, query) * block.scales[rows]
        return found

    def sample(self, number: int) -> tuple[list[int], NDArray[np.uint64]]:
        """Ids and signs of some rows, spread over all of them."""
        places = np.linspace(0, self.state.rows - 1, number if self._blocks else 0).astype(int).tolist()
        found = [(self._blocks[place // BLOCK], place % BLOCK) for place in dict.fromkeys(places)]
        found = [(block, row) for block, row in found if block.kinds[row] != _GONE]
        signs = [[column[row] for column in block.signs] for block, row in found]
        return [int(block.ids[row]) for block, row in found], np.array(signs, np.uint64).T

    def _within(self, kinds: Sequence[int] | None, projects: frozenset[str] | None) -> list[Places]:
        """Rows of each block. What is gone since is found out by whoever looks it up."""
        scope = (None if kinds is None else tuple(sorted(kinds)), projects)
        places = self._scopes.get(scope)
        if places is None:
            places = [self._allowed(block, kinds, projects) for block in self._blocks]
            self._scopes = dict([*list(self._scopes.items())[1 - _SCOPES :], (scope, places)])
        return places

    def _allowed(self, block: _Block, kinds: Sequence[int] | None, projects: frozenset[str] | None) -> Places:
        known = np.zeros(256, bool)
        known[list(kinds) if kinds is not None else slice(0, _GONE)] = True
        mask = known[block.kinds]
        if projects is not None:
            mask &= np.array([name in projects for name in self.state.projects], bool)[block.projects]
        return np.flatnonzero(mask)

    def _near(self, query: Matrix, number: int, places: list[Places]) -> list[Places]:
        code = codes.signs(query[None, :])[:, 0]
        found = []
        for block, rows in zip(self._blocks, places, strict=True):
            if len(rows) * 4 > len(block.ids):  # cheaper to compare all than to pick them out
                found.append(codes.distances(block.signs, code)[rows])
            else:
                found.append(codes.distances([column[rows] for column in block.signs], code))
        within = codes.nearest(found, number, len(code) * 64)
        return [rows[each <= within] for rows, each in zip(places, found, strict=True)]


def _open(folder: Path, dimensions: int) -> tuple[State, list[_Block]]:
    empty = State(dimensions=dimensions)
    state = _read_state(folder, dimensions)
    if state is None or not state.rows:
        return state or empty, []
    layout = _Layout(dimensions)
    size = -(-state.rows // BLOCK) * layout.size
    try:
        if (folder / state.file).stat().st_size < size:
            return empty, []
        data = np.memmap(folder / state.file, np.uint8, "r", shape=(size,)).view(np.ndarray)
    except (OSError, ValueError):
        return empty, []
    blocks = [
        _Block(data[place * layout.size :], layout, min(BLOCK, state.rows - place * BLOCK))
        for place in range(size // layout.size)
    ]
    return (state, blocks) if _sound(state, blocks) else (empty, [])


def _sound(state: State, blocks: Sequence[_Block]) -> bool:
    """Whether it looks like what was written: a disk may give back anything."""
    ids = np.concatenate([block.ids for block in blocks])
    known = all(block.projects.max() < len(state.projects) and np.isfinite(block.scales).all() for block in blocks)
    return known and bool((np.diff(ids) > 0).all()) and ids[-1] <= state.last


def _stamp(folder: Path) -> tuple[int, int] | None:
    """Differs whenever the state was replaced."""
    try:
        found = (folder / _STATE).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _read_state(folder: Path, dimensions: int) -> State | None:
    """None when there is none that can be used."""
    try:
        text = (folder / _STATE).read_bytes()
        check, _, body = text.partition(b"\n")
        state = msgspec.json.decode(body, type=State)
    except (OSError, msgspec.DecodeError):
        return None
    whole = check.decode("ascii", "replace") == hashlib.sha256(body).hexdigest()
    fits = whole and state.version == VERSION and state.dimensions == dimensions and "/" not in state.file
    return state if fits else None


# Writing


@contextmanager
def writing(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds the lock, which ends with the process. False when another holds it and nobody wants to wait."""
    with _translated(folder):
        make_private(folder)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


class Writer:
    """Changes a cache; only under its lock."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._folder = folder
        self._layout = _Layout(dimensions)
        self.state = _open(folder, dimensions)[0]

    @property
    def is_wasteful(self) -> bool:
        return self.state.dropped > max(BLOCK // 8, _MOST_GONE * self.state.rows)

    def clear(self) -> None:
        """Begins anew."""
        self._save(State(dimensions=self.state.dimensions))

    def add(self, rows: Rows) -> None:
        if not rows.ids:
            return
        state = self.state
        file = state.file or f"{secrets.token_hex(8)}.codes"
        projects = (*state.projects, *sorted(set(rows.projects) - set(state.projects)))
        parts = _encode(rows, {name: place for place, name in enumerate(projects)})
        total = state.rows + len(rows.ids)
        with _translated(self._folder), self._opened(file) as descriptor:
            os.truncate(
                descriptor, -(-total // BLOCK) * self._layout.size
            )  # a block is whole, though it may have holes
            done = 0
            while done < len(rows.ids):
                block, row = divmod(state.rows + done, BLOCK)
                number = min(len(rows.ids) - done, BLOCK - row)
                for name, part in parts.items():
                    self._put(descriptor, block, row, name, part[done : done + number])
                done += number
            os.fdatasync(descriptor)
        nothing = int((parts["kinds"] == _GONE).sum())
        last = int(rows.ids[-1])
        self._save(replace(state, file=file, rows=total, empty=state.empty + nothing, last=last, projects=projects))

    def drop(self, gone: NDArray[np.int64]) -> None:
        """Overwrites the rows of these ids with zeros, on disk."""
        _, blocks = _open(self._folder, self.state.dimensions)
        if not blocks:
            return
        with _translated(self._folder), self._opened(self.state.file) as descriptor:
            for place, block in enumerate(blocks):
                for row in np.flatnonzero(np.isin(block.ids, gone) & (block.kinds != _GONE)).tolist():
                    for name, (_, dtype, width) in self._layout.parts.items():
                        if name != "ids":
                            value = _GONE if name == "kinds" else 0
                            self._put(descriptor, place, row, name, np.full(width, value, dtype))
            os.fdatasync(descriptor)
        nothing = sum(int((block.kinds == _GONE).sum()) for block in blocks)  # also what a crash left uncounted
        self._save(replace(self.state, dropped=nothing - self.state.empty))

    def ids(self) -> NDArray[np.int64]:
        """Of the rows whose vector is not known to be gone."""
        _, blocks = _open(self._folder, self.state.dimensions)
        return np.concatenate([np.zeros(0, np.int64), *(block.ids[block.kinds != _GONE] for block in blocks)])

    def _put(self, descriptor: int, block: int, row: int, name: str, values: NDArray[Any]) -> None:
        # not through the mapping: on a full disk that would end the process instead of raising an error
        offset, dtype, width = self._layout.parts[name]
        data = memoryview(np.ascontiguousarray(values, dtype).tobytes())
        place = block * self._layout.size + offset + row * width * dtype.itemsize
        while data:
            written = os.pwrite(descriptor, data, place)
            data, place = data[written:], place + written

    @contextmanager
    def _opened(self, file: str) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._folder / file, flags, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _save(self, state: State) -> None:
        body = msgspec.json.encode(state)
        temporary = self._folder / f".{secrets.token_hex(8)}.tmp"
        with _translated(self._folder):
            try:
                with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(self._folder / _STATE)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
        self.state = state
        for path in self._folder.iterdir():  # what a crash or an earlier beginning left
            if path.name not in (_STATE, _LOCK, state.file):
                path.unlink(missing_ok=True)


def _encode(rows: Rows, projects: dict[str, int]) -> dict[str, NDArray[Any]]:
    """The parts of a block, by name."""
    nothing = ~rows.vectors.any(axis=1)  # a text with nothing in it is near nothing
    components, scales = codes.rounded(rows.vectors)
    return {
        "ids": np.asarray(rows.ids, np.int64),
        "scales": scales,
        "projects": np.array([projects[name] for name in rows.projects], np.uint32),
        "kinds": np.where(nothing, _GONE, np.array(rows.kinds, np.uint8)).astype(np.uint8),
        **{f"signs{word}": column for word, column in enumerate(codes.signs(rows.vectors))},
        "components": components,
    }


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    """What a person can act on becomes an error of ours."""
    hint = "The folder holds a cache that can be made again: nothing is lost, and search works without it, slower."
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no space left for {folder}") from error
        raise StoreError(f"{folder} cannot be written: {error.strerror}", hint=hint) from error
