"""What a server sends is read up to a size: a reply that goes on and on fills no memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

_MOST = 32 * 1024 * 1024  # bytes; the longest that are real have a few megabytes


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = _MOST
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the reply has more than {_MOST} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bounded(response: httpx2.Response) -> None:
    """A hook for responses, called before their body is read."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)
