"""Embeddings from an endpoint that speaks like OpenAI's: POST /embeddings.

Texts are redacted before they are sent; stored text is already, a query is not. A call ends with vectors or with
ModelFailed, in time; nothing is retried here, since the backlog waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import httpx2
import numpy as np

from recollect.config import Settings
from recollect.models.base import Failure, ModelFailed, shown_message, shown_url
from recollect.models.embed.base import Matrix, OneView, encodable, unit
from recollect.models.replies import bounded
from recollect.redact import redact

_OWN, _VARIABLE = "https://api.openai.com/v1", "OPENAI_API_KEY"
_BATCH = 64
_LONGEST = 6000  # characters: below the limit of every model that is common
_PROBE = "How many dimensions?"


class Endpoint(OneView):
    def __init__(self, settings: Settings, name: str) -> None:
        config = settings.config
        self.id = name
        self._model = name.partition(":")[2]
        self._configured = (config.embedder_url or config.model_url).rstrip("/")
        self._url = self._configured or _OWN
        variable = config.embedder_key_variable or ("" if config.embedder_url else config.model_key_variable)
        self._variable = variable or _VARIABLE
        self._key = settings.environ.get(self._variable, "").strip()
        self._seconds = config.model_timeout_seconds

    @cached_property
    def dimensions(self) -> int:
        """As many as its vectors have: asked once."""
        return int(self.embed([_PROBE]).shape[1])

    def embed(self, texts: Sequence[str]) -> Matrix:
        present = [index for index, text in enumerate(texts) if text.strip()]
        if not present:
            return np.zeros((len(texts), self.dimensions), np.float32)
        sent = [encodable(redact(texts[index].strip())[:_LONGEST]) for index in present]
        found = [self._ask(sent[start : start + _BATCH]) for start in range(0, len(sent), _BATCH)]
        if len({each.shape[1] for each in found}) > 1:
            raise self._failed(Failure.INVALID, "vectors of different lengths")
        rows = np.zeros((len(texts), found[0].shape[1]), np.float32)
        rows[present] = np.concatenate(found)
        return unit(rows)

    def _ask(self, texts: Sequence[str]) -> Matrix:
        if not self._key and not self._configured:
            raise self._failed(Failure.REJECTED, "there is no API key", f"Set {self._variable} in the environment.")

        async def post() -> httpx2.Response:
            hooks = {"response": [bounded]}
            async with (
                asyncio.timeout(self._seconds),
                httpx2.AsyncClient(timeout=None, trust_env=False, event_hooks=hooks) as client,
            ):
                headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
                body = {"model": self._model, "input": texts, "encoding_format": "float"}
                return await client.post(f"{self._url}/embeddings", json=body, headers=headers)

        where = f"The request went to {shown_url(self._url)}."
        try:
            response = asyncio.run(post())
        except TimeoutError:
            raise self._failed(Failure.TIMEOUT, f"no answer within {self._seconds:g} s", where) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError):
            raise self._failed(Failure.REJECTED, "the address or the key cannot be used", where) from None
        except httpx2.HTTPError as error:
            raise self._failed(Failure.UNAVAILABLE, str(error) or type(error).__name__, where) from None
        if response.status_code != 200:
            raise self._refused(response.status_code, response.text, where)
        return self._rows(response, len(texts))

    def _rows(self, response: httpx2.Response, number: int) -> Matrix:
        """The vectors in the order of the texts, whatever order they came in."""
        try:
            data: list[dict[str, Any]] = response.json()["data"]
            by_index = {int(each.get("index", place)): each["embedding"] for place, each in enumerate(data)}
            rows = np.array([by_index[index] for index in range(number)], np.float32)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._failed(Failure.INVALID, "the answer holds no vectors for the texts") from None
        if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
            raise self._failed(Failure.INVALID, "the answer holds no usable vectors")
        return rows

    def _refused(self, status: int, words: str, where: str) -> ModelFailed:
        if status in (401, 403):
            return self._failed(Failure.REJECTED, f"status {status}: {words}", f"Check the key in {self._variable}.")
        if status == 429:
            return self._failed(Failure.RATE_LIMITED, f"status {status}: {words}", where)
        if status == 408 or status >= 500:
            return self._failed(Failure.UNAVAILABLE, f"status {status}: {words}", where)
        return self._failed(Failure.REJECTED, f"status {status}: {words}", f"Check the model's name. {where}")

    def _failed(self, failure: Failure, message: str, hint: str = "") -> ModelFailed:
        return ModelFailed(failure, shown_message(f"{self.id}: {message}", self._key), hint=hint)
