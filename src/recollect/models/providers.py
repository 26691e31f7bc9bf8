"""OpenAI, Anthropic and everything that speaks like them, through pydantic-ai.

Every call has its own event loop, HTTP client and deadline, so that any number of threads may call at once and
nothing outlives a call. The client retries nothing: one call of ours is one request, and one more only when the answer
does not fit the schema. The key comes from the environment that the settings hold; proxies are not used.

Invariant: whatever the server does, a call ends with an answer or with ModelFailed, in time, and no message of an
error holds a secret.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import genai_prices
import httpx2
from pydantic import ValidationError
from pydantic_ai import Agent, ModelSettings, NativeOutput, PromptedOutput, ToolOutput, UsageLimits
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelTimeoutError,
    ToolFailed,
    ToolRetryError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.usage import RequestUsage

from recollect.config import Config, Settings
from recollect.models.base import (
    SAYS_TOO_LONG,
    Answer,
    Failure,
    Limits,
    ModelFailed,
    Tool,
    ToolRefused,
    Usage,
    shown_message,
    shown_url,
)
from recollect.models.paid import is_count
from recollect.models.replies import bounded
from recollect.text import estimate_tokens

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.output import OutputSpec

    Schema = TypeVar("Schema", bound=BaseModel)

Output = TypeVar("Output")

_NO_KEY = "none"  # the clients insist on a key, local servers have none
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_FORMAT = ("response_format", "response format", "json_schema", "text.format", "structured output", "grammar")
# What the clients raise when a server answers with JSON that is no reply: they check very little of it.
_MALFORMED = (AttributeError, TypeError, LookupError, ValueError, AssertionError, RecursionError)
_prompted: set[tuple[str, str]] = set()  # URL and model that refused a response format; true for this process


class _Dialect(NamedTuple):
    url: str  # the provider's own
    variable: str  # where its users keep the key
    prices: str  # the provider's name in the table of prices
    modules: tuple[str, ...]  # what its client consists of


_OPENAI = _Dialect(
    "https://api.openai.com/v1",
    "OPENAI_API_KEY",
    "openai",
    ("pydantic_ai.models.openai", "openai.resources.chat", "openai.resources.responses"),
)
_ANTHROPIC = _Dialect(
    "https://api.anthropic.com",
    "ANTHROPIC_API_KEY",
    "anthropic",
    ("pydantic_ai.models.anthropic", "anthropic.resources.messages", "anthropic.resources.beta.messages"),
)
_DIALECTS = {"openai": _OPENAI, "openai-responses": _OPENAI, "anthropic": _ANTHROPIC}


class Provider:
    """A language model behind HTTP."""

    has_tools = True

    def __init__(self, settings: Settings, name: str) -> None:
        self.name = name
        self._config = settings.config
        self._kind, _, self._model = name.partition(":")
        self._dialect = _DIALECTS[self._kind]
        url = self._config.model_url.rstrip("/")
        self._url = (url.removesuffix("/v1") if self._kind == "anthropic" else url) or self._dialect.url
        self._variable = self._config.model_key_variable or self._dialect.variable
        self._key = settings.environ.get(self._variable, "").strip()
        self.paid = _host(self._url) not in _LOOPBACK
        for module in self._dialect.modules:  # takes seconds, which belong to no deadline
            importlib.import_module(module)

    def price(self, input_tokens: int, output_tokens: int) -> float:
        spent = RequestUsage(input_tokens=input_tokens, output_tokens=output_tokens)
        return _Meter(self._config, self._dialect.prices, self._model).cost(spent)

    def answer(self, instructions: str, content: str, schema: type[Schema], *, seconds: float) -> Answer[Schema]:
        """One structured answer. One that does not fit the schema is shown to the model, once, to be corrected."""
        place = (self._url, self._model)

        async def ask(model: Model) -> Schema:
            if self._kind == "anthropic":
                return await self._run(model, instructions, content, ToolOutput(schema))
            if place not in _prompted:
                try:
                    return await self._run(model, instructions, content, NativeOutput(schema))
                except ModelHTTPError as error:
                    if not _refuses_format(error):
                        raise
                    _prompted.add(place)
            return await self._run(model, instructions, content, PromptedOutput(schema))

        return self._call(ask, seconds)

    def work(self, instructions: str, content: str, tools: Sequence[Tool], limits: Limits) -> Answer[str]:
        """Tools run one at a time in the thread that called: they may hold what belongs to that thread."""
        functions = [_function(tool) for tool in tools]
        caps = UsageLimits(request_limit=limits.requests, total_tokens_limit=limits.tokens)

        async def use(model: Model) -> str:
            return await self._run(model, instructions, content, str, functions, caps)

        return self._call(use, limits.seconds)

    def _call(self, task: Callable[[Model], Awaitable[Output]], seconds: float) -> Answer[Output]:
        self._require_url_and_key()
        meter = _Meter(self._config, self._dialect.prices, self._model)

        async def run() -> Output:
            async with (
                asyncio.timeout(seconds),
                httpx2.AsyncClient(
                    timeout=None, trust_env=False, event_hooks={"request": [meter.sent], "response": [bounded]}
                ) as client,
            ):
                return await task(_Metered(self._open(client), meter))

        try:
            with asyncio.Runner(loop_factory=_Loop) as runner:
                return Answer(runner.run(run()), meter.usage)
        except (TimeoutError, AgentRunError, httpx2.HTTPError) as error:
            raise self._failed(error, meter.usage, seconds) from None  # the cause quotes what must not be shown

    def _open(self, client: httpx2.AsyncClient) -> Model:
        key = self._key or _NO_KEY
        if self._kind == "anthropic":
            return _anthropic_model(self._model, self._url, key, client)
        own = not self._config.model_url
        return _openai_model(self._model, self._url, key, client, own=own, responses=self._kind != "openai")

    async def _run(
        self,
        model: Model,
        instructions: str,
        content: str,
        output: OutputSpec[Output],
        tools: Sequence[Callable[..., Awaitable[str]]] = (),
        limits: UsageLimits | None = None,
    ) -> Output:
        settings = ModelSettings(max_tokens=self._config.model_output_tokens)
        profile: Any = model.profile
        if not (profile.get("openai_supports_reasoning") or profile.get("anthropic_disallows_sampling_settings")):
            settings["temperature"] = 0.0
        agent = Agent(
            model,
            name="recollect",
            instructions=instructions,
            output_type=output,
            tools=tools,
            retries={"output": 1, "tools": 3},
            model_settings=settings,
        )
        sendable = content.encode(errors="replace").decode()  # half a surrogate pair cannot be
        return (await agent.run(sendable, usage_limits=limits)).output

    def _require_url_and_key(self) -> None:
        if not _host(self._url):
            raise self._reject("model_url is no http(s) address", "Set `model_url`, e.g. http://127.0.0.1:11434/v1.")
        if not self._key and not self._config.model_url:
            raise self._reject("there is no API key", f"Set {self._variable} in the environment.")
        if not (self._key.isascii() and self._key.isprintable()):
            raise self._reject("the API key has characters that no key has", f"Check {self._variable}.")

    def _reject(self, message: str, hint: str) -> ModelFailed:
        return ModelFailed(Failure.REJECTED, f"{self.name}: {message}", hint=hint)

    def _failed(self, error: Exception, usage: Usage, seconds: float) -> ModelFailed:
        failure = _failure(error)
        if failure is Failure.REJECTED and usage.tokens:
            failure = Failure.INVALID  # it had answered: only its own words, sent back to it, were refused
        if failure is Failure.TIMEOUT:
            message = f"no answer within {seconds:g} s"
        elif isinstance(error, _CutOff):
            message = f"the answer was cut off at {self._config.model_output_tokens} tokens (model_output_tokens)"
        else:
            message = _message(error)
        return ModelFailed(
            failure,
            shown_message(f"{self.name}: {message}", self._key),
            usage=usage,
            retry_after=getattr(error, "retry_after", None),
            hint=shown_message(self._hint(failure, _status(error)), self._key),
        )

    def _hint(self, failure: Failure, status: int) -> str:
        if failure is Failure.REJECTED and status in (401, 403):
            return f"Check the key in {self._variable}." if self._key else f"Set {self._variable} in the environment."
        if failure is Failure.REJECTED:
            return f"Check the model's name and `model_url`; the request went to {shown_url(self._url)}."
        if failure is Failure.UNAVAILABLE:
            return f"The request went to {shown_url(self._url)}."
        return ""


def _host(url: str) -> str:
    """Empty where the clients could not make anything of it."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return ""
    return parsed.host if parsed.scheme in ("http", "https") else ""


# ---- Clients ---------------------------------------------------------------------------------------------------------


def _openai_model(name: str, url: str, key: str, client: httpx2.AsyncClient, *, own: bool, responses: bool) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    sdk = AsyncOpenAI(api_key=key, base_url=url, max_retries=0, timeout=None, http_client=client)
    provider = OpenAIProvider(openai_client=sdk) if own else OpenAICompatibleProvider("compatible", openai_client=sdk)
    known = provider.model_profile(name)
    profile = merge_profile(
        known,
        OpenAIModelProfile(
            supports_json_schema_output=True,  # it is tried, and taken back when the server refuses it
            supports_json_object_output=False,
            # Ollama knows only the old name of the field; reasoning models know only the new one.
            openai_chat_supports_max_completion_tokens=own or bool((known or {}).get("openai_supports_reasoning")),
        ),
    )
    if responses:
        private = OpenAIResponsesModelSettings(openai_store=False)
        return OpenAIResponsesModel(name, provider=provider, profile=profile, settings=private)
    return OpenAIChatModel(name, provider=provider, profile=profile)


def _anthropic_model(name: str, url: str, key: str, client: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(
        api_key=key, base_url=url, max_retries=0, timeout=None, http_client=client, open_telemetry=False
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk))


class _Loop(asyncio.SelectorEventLoop):
    """A loop for one call, which leaves nothing behind and waits for nobody when it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: list[asyncio.Transport] = []

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        transport, protocol = await super().create_connection(*args, **kwargs)
        self._opened.append(transport)
        return transport, protocol

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """The last step before the loop closes. A name lookup that hangs in its thread is not waited for."""
        for transport in self._opened:
            transport.abort()  # the client forgets one whose encryption was cut short
        await asyncio.sleep(0)  # they close in the next turn


def _function(tool: Tool) -> Callable[..., Awaitable[str]]:
    """A tool as pydantic-ai takes it, with its signature and docstring."""

    @functools.wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> str:
        try:
            return tool(*args, **kwargs)
        except ToolRefused as refusal:
            raise ToolFailed(str(refusal)) from None

    return call


# ---- What it costs ---------------------------------------------------------------------------------------------------


class _CutOff(UnexpectedModelBehavior):
    """The answer ended at the most tokens it may have."""


class _Meter:
    """Counts what a call uses, whether it ends well or not."""

    def __init__(self, config: Config, prices: str, model: str) -> None:
        self.usage = Usage()
        self._config = config
        self._prices = prices
        self._model = model

    async def sent(self, request: httpx2.Request) -> None:
        self.usage += Usage(requests=1)

    def received(self, spent: RequestUsage) -> None:
        self.usage += Usage(0, spent.input_tokens, spent.output_tokens, self.cost(spent))

    def cost(self, spent: RequestUsage) -> float:
        """At the configured prices; where there is none, at the price the offline table knows, or nothing."""
        try:
            known = genai_prices.calc_price(spent, self._model, provider_id=self._prices)
            costs = float(known.input_price), float(known.output_price)
        except (LookupError, ValueError):
            costs = 0.0, 0.0
        prices = self._config.model_input_price, self._config.model_output_price
        counts = spent.input_tokens, spent.output_tokens
        return sum(n * price / 1e6 if price else cost for n, price, cost in zip(counts, prices, costs, strict=True))


class _Metered(WrapperModel):
    """Hands every response to the meter, and stops at one that was cut off: asking again would not make it shorter."""

    def __init__(self, wrapped: Model, meter: _Meter) -> None:
        super().__init__(wrapped)
        self._meter = meter

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        try:
            response = await super().request(messages, model_settings, model_request_parameters)
            _require_well_formed(response)
        except _MALFORMED as error:
            raise UnexpectedModelBehavior(f"the reply is malformed ({type(error).__name__})") from None
        if not _is_counted(response.usage):  # caps must hold with servers that do not count, too
            spent = RequestUsage(input_tokens=_tokens(messages), output_tokens=_tokens((response,)))
            response = replace(response, usage=spent)
        self._meter.received(response.usage)
        if response.finish_reason == "length":
            raise _CutOff("cut off")
        return response


def _is_counted(usage: RequestUsage) -> bool:
    """No prompt is without a token."""
    told = is_count(usage.input_tokens) and is_count(usage.output_tokens)
    return told and usage.input_tokens > 0 and not usage.unmeasured_requests


def _require_well_formed(response: ModelResponse) -> None:
    """Types that pydantic-ai takes for granted later on."""
    for part in response.parts:
        if isinstance(part, TextPart) and not isinstance(part.content, str):
            raise TypeError("a text that is none")
        if isinstance(part, ToolCallPart) and not (
            isinstance(part.tool_name, str)
            and isinstance(part.tool_call_id, str)
            and isinstance(part.args, str | dict | None)
        ):
            raise TypeError("a tool call that is none")


def _tokens(messages: Sequence[ModelMessage]) -> int:
    """An estimate from the texts."""
    texts = [getattr(message, "instructions", None) for message in messages]
    texts += [getattr(part, "content", None) or getattr(part, "args", None) for m in messages for part in m.parts]
    return estimate_tokens("".join(str(text) for text in texts if text))


# ---- What went wrong -------------------------------------------------------------------------------------------------


def _failure(error: Exception) -> Failure:
    status = _status(error)
    match error:
        case TimeoutError() | ModelTimeoutError():
            return Failure.TIMEOUT
        case UsageLimitExceeded():
            return Failure.EXHAUSTED
        case _CutOff():
            return Failure.CUT_OFF
        case ModelHTTPError() if status == 429 and "request too large" in str(error.body).lower():
            return Failure.TOO_LONG  # for the tokens of a minute: to wait does not help, to split does
        case _ if status == 429:
            return Failure.RATE_LIMITED
        case ModelContextWindowExceededError() | ModelHTTPError(status_code=413):
            return Failure.TOO_LONG
        case ModelHTTPError(status_code=400 | 422) if SAYS_TOO_LONG.search(str(error.body)):
            return Failure.TOO_LONG
        case _ if 300 <= status < 500 and status != 408:
            return Failure.REJECTED
        case ModelConnectionError() | httpx2.HTTPError():
            return Failure.UNAVAILABLE
        case _ if status:
            return Failure.UNAVAILABLE
        case _:
            return Failure.INVALID


def _status(error: Exception) -> int:
    """As the server sent it: pydantic-ai goes by the words of the body where they say something else."""
    status = getattr(error.__cause__, "status_code", None) or getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _refuses_format(error: ModelHTTPError) -> bool:
    return 400 <= _status(error) < 500 and any(phrase in str(error.body).lower() for phrase in _NO_FORMAT)


def _message(error: Exception) -> str:
    """In words, and without what the model was told."""
    if isinstance(error, UsageLimitExceeded):
        return error.message.partition(". Consider")[0]
    if isinstance(error, ModelHTTPError):
        return f"status {_status(error)}: {_servers_words(error.body)}"
    if isinstance(error, UnexpectedModelBehavior) and (wrong := _mismatch(error.__cause__)):
        return f"the answer does not fit: {wrong}"
    root: BaseException = error
    while root.__cause__ is not None and isinstance(error, ModelConnectionError):  # which says no more than that
        root = root.__cause__
    return str(root.message if isinstance(root, AgentRunError) else root) or type(root).__name__


def _mismatch(cause: BaseException | None) -> str:
    """Where an answer departs from the schema, without quoting it."""
    details: Sequence[Any] = ()
    if isinstance(cause, ValidationError):
        details = cause.errors(include_url=False, include_input=False)
    elif isinstance(cause, ToolRetryError):
        content = cause.tool_retry.content
        if isinstance(content, str):
            return f"it had to be told “{content}”"
        details = content if isinstance(content, list) else ()
    return "; ".join(": ".join(filter(None, (".".join(map(str, e["loc"])), e["msg"]))) for e in details)


def _servers_words(body: object) -> str:
    if isinstance(body, dict):
        inner = body.get("error")
        return str(body.get("message") or (inner.get("message") if isinstance(inner, dict) else inner) or body)
    return str(body)
