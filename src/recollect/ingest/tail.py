"""Reads the complete lines of a growing file from an offset, in bounded memory.

Offsets count uncompressed bytes and only ever stand behind a complete line: a half-written last line is left for the
next time. Complete is a line that ends in a newline, or a last one that is a whole JSON object, for which the agent
wrote no newline. A line longer than LONGEST_LINE is passed over without being held in memory, and given as TOO_LONG.
A compressed file may end in the middle of a frame: it is still being written. One that is damaged is an OSError.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    import zstandard

LONGEST_LINE = 16 * 1024 * 1024
CHUNK = 1024 * 1024
PROBE = 4096  # bytes at either end of what was read that tell one file from another
TOO_LONG: Final = None
BOM = b"\xef\xbb\xbf"  # some editors and copying tools put it before the first line

Line = bytes | None  # without the newline; TOO_LONG for one that was passed over


class Lines(NamedTuple):
    """A run of complete lines: the offset of the first, and the offset behind the last."""

    start: int
    lines: Sequence[Line]
    end: int
    skipped: int = 0  # bytes of the first line when it was too long to hold


class Transcript:
    """An open transcript file, plain or compressed."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb", buffering=0)
        self._compressed = path.suffix == ".zst"

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def head(self, size: int = 64 * 1024) -> Iterator[list[bytes]]:
        """The lines that begin among the first bytes, some at a time; when none of them can be held, those behind."""
        for run in self.lines(0, self.status().st_size, size):
            found = [line.removeprefix(BOM) for line in run.lines if line and not line.isspace()]
            if found:
                yield found
                if run.end >= size:
                    return

    def probes(self, offset: int) -> tuple[str, str] | None:
        """Hashes of the first and the last bytes before the offset; None when the file is shorter than that.

        May be asked between two runs of lines: reading goes on where it was.
        """
        position = self._file.tell()
        try:
            size = min(offset, PROBE)
            head = _read_exactly(self._at(0), size)
            tail = _read_exactly(self._at(offset - size), size)
        finally:
            self._file.seek(position)
        return (_digest(head), _digest(tail)) if len(tail) == size else None

    def status(self) -> os.stat_result:
        """Of the open file, whatever its name points at by now."""
        return os.fstat(self._file.fileno())

    def lines(self, start: int, end: int, first: int = 0) -> Iterator[Lines]:
        """Complete lines, some at a time; `first` bytes are read at first.

        `end` is the size that was captured before reading began: what is appended meanwhile is left for next time.
        """
        start += self._missing_newline(start)
        stream = self._at(start)
        left = None if self._compressed else end - start
        offset, rest = start, b""  # rest: the beginning of a line, which stands at offset
        passed = 0  # bytes of a line that is too long to hold
        size = first or CHUNK
        while data := stream.read(size if left is None else min(size, left)):
            size = CHUNK
            if left is not None:
                left -= len(data)
            lines, unfinished = _split(data)
            if not lines:
                rest += data
                if passed or len(rest) > LONGEST_LINE:
                    passed, rest = passed + len(rest), b""
                continue
            behind = offset + passed + len(rest) + len(data) - len(unfinished)
            if passed:
                yield Lines(offset, [TOO_LONG, *lines[1:]], behind, passed + len(lines[0]))
            else:
                lines[0] = rest + lines[0]
                yield Lines(offset, lines, behind)
            offset, passed, rest = behind, 0, unfinished
        if rest and _is_whole(rest):
            yield Lines(offset, [rest], offset + len(rest))

    def _missing_newline(self, start: int) -> int:
        """1 when the line before was taken without its newline, and that has come since."""
        if not start:
            return 0
        around = _read_exactly(self._at(start - 1), 2)
        return int(around[:1] != b"\n" and around[1:] == b"\n")

    def _at(self, start: int) -> BinaryIO:
        if not self._compressed:
            self._file.seek(start)
            return self._file
        stream = self._decompressed()
        while start > 0:
            start -= len(stream.read(min(CHUNK, start))) or start
        return stream

    def _decompressed(self) -> BinaryIO:
        import zstandard  # here, as below: few files are compressed, and a helper's start counts

        self._file.seek(0)
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(
            self._file, read_across_frames=True, closefd=False
        )
        return _Decompressed(reader)


class _Decompressed(io.RawIOBase, BinaryIO):
    """Fails as files do. A file that ends in the middle of a frame is no failure: it is read as far as it goes."""

    def __init__(self, reader: zstandard.ZstdDecompressionReader) -> None:
        self._reader = reader

    def read(self, size: int = -1) -> bytes:
        from zstandard import ZstdError

        try:
            return self._reader.read(size)
        except ZstdError as error:
            raise OSError(errno.EILSEQ, f"is damaged: {error}") from error


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """The lines that end here, and what is behind the last: twice as fast as `split`, which looks at every byte."""
    lines = []
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        lines.append(data[start:end])
        start = end + 1
    return lines, data[start:]


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    parts = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _is_whole(line: bytes) -> bool:
    """A JSON object that is closed cannot be the beginning of a longer one."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        msgspec.json.decode(line.removeprefix(BOM), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
