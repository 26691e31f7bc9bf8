"""The hook: what an agent starts at each of its events. It never breaks the agent.

Whatever happens it ends with status 0; what went wrong is a line in logs/hooks.log, and nothing is printed. It imports
a few modules of the standard library, and those that cost time (`json`) only where no daemon answers: the daemon reads
the event, decides and says what to print, byte for byte. Where none answers, a new session is given the file in
context/ that was made ready for its folder, and that, like the end of a session, is left in spool/ for the daemon. One
is started in the background, but not for a sub-agent or a session that keeps no transcript.

A request is a line of fields between tabs and then the event as it came; an answer is `ok` or `busy`, a line break,
and what to print. Both are bounded, and so is the time.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # `typing` would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact", "SessionEnd")
AGENTS = ("claude-code", "codex")
BYPASS, ENABLED = "RECOLLECT_BYPASS", "RECOLLECT_ENABLED"
FOLDERS = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")  # where agents keep their transcripts
LONGEST = 1_000_000  # bytes of an event; a longer one is not taken
ANSWER = 100_000
SOCKET, LOCK, STARTING, CONTEXT, SPOOL, PAUSED = (
    "daemon.sock",
    "daemon.lock",
    "daemon.starting",
    "context",
    "spool",
    "paused",
)
INDEX = "index.json"  # in context/: which folder is given which file
SPOOLED = 64  # starts and ends of sessions that wait for a daemon

_PATIENCE = {"SessionStart": 1.5, "UserPromptSubmit": 1.5}  # seconds from the start; the others:
_SOON = 0.8
_END = 3  # seconds after which the system ends the process, whatever it waits for
_LOG = 200_000  # bytes, of two log files each
_AGAIN = 60.0  # seconds after which a daemon that refused to come up is started again
_DELAY = 0.05  # seconds that a daemon waits for the hook that started it to end
_SOCKET_PATH = 100  # bytes; the system's limit is 104 to 108


class Refused(Exception):
    """Not answered; the argument says why."""


def main(arguments: Sequence[str] | None = None, *, installed: bool = False) -> None:
    """Ends the process: an interpreter that tidies up first costs as much as the request. `installed`: by an agent's
    settings, for a home that was there then; if it is not any more, it was purged, and stays away."""
    try:
        _end_in_time()
        printed, home = run(sys.argv[1:] if arguments is None else arguments, os.environ, installed)
        while printed:
            printed = printed[os.write(1, printed) :]
        if home:  # at last: it would compete with us
            start(home, os.environ)
    except BaseException:  # reason: whatever it is, the agent goes on
        pass
    os._exit(0)


def _end_in_time() -> None:
    """Have the system end this process, even where it hangs in a call that Python does not come back from."""
    import _signal  # type: ignore[import-not-found]  # `signal` costs milliseconds

    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.alarm(_END)


def run(arguments: Sequence[str], environ: Mapping[str, str], installed: bool = False) -> tuple[bytes, str]:
    """Return what to print, and the home that needs a daemon, if one does."""
    if environ.get(BYPASS, "0") not in ("", "0") or environ.get(ENABLED, "").lower() in ("0", "false"):
        return b"", ""
    started = time.monotonic()
    home, event, alone, is_down = "", "", "", False
    try:
        event, agent, home = parse(arguments, environ)
        if installed and not os.path.isdir(home):  # noqa: PTH112
            return b"", ""
        if not is_own(home):
            return b"", ""
        payload = read(0, started + _SOON)
        event = event or named(payload)
        if event not in EVENTS:
            raise Refused("an event that is not known")
        until = started + _PATIENCE.get(event, _SOON)
        fields = ["hook", event, agent, *(environ.get(name, "") for name in FOLDERS)]
        try:
            return ask(home, fields, payload, until), ""
        except Refused as error:
            log(home, event, error)
        except OSError as error:
            log(home, event, f"no daemon: {error.strerror}")
            is_down = True
        told = decoded(payload)
        alone = home if is_down and keeps_transcript(told) else ""
        return unanswered(home, event, agent, told, environ), alone
    except BaseException as error:  # reason: a hook that fails must look like one that has nothing to say
        if home:
            log(home, event, error)
        return b"", alone


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str, str]:
    """(event, agent, home); the first two may be empty."""
    event, agent, home = "", "", environ.get("RECOLLECT_HOME") or "~/.recollect"
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--agent" and left:
            agent = left.pop(0)
        elif word == "--home" and left:
            home = left.pop(0)
        elif not event:
            event = word
    if not home:
        raise Refused("a home without a name")  # it would be the current folder
    if home.startswith("~/") and not environ.get("HOME", "/").startswith("/"):
        import pwd

        home = pwd.getpwuid(os.geteuid()).pw_dir + home[1:]
    return event, agent if agent in AGENTS else "", os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111


def is_own(home: str) -> bool:
    """Can nobody else have put anything there? `recollect.home` looks closer, and says what is wrong."""
    try:
        found = os.stat(home)  # noqa: PTH116
    except OSError:
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def read(descriptor: int, until: float) -> bytes:
    """All there is, or what came in time."""
    import select

    data = bytearray()
    while select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(descriptor, 65536)
        if not part:
            break
        data += part
        if len(data) > LONGEST:
            raise Refused("an event that is too long")
    return bytes(data)


def named(payload: bytes) -> str:
    return str(decoded(payload)["hook_event_name"])


def decoded(payload: bytes) -> dict[str, Any]:
    import json

    told = json.loads(payload)
    if not isinstance(told, dict):
        raise Refused("an event that is no object")
    return told


def keeps_transcript(told: Mapping[str, Any]) -> bool:
    """Is it of a session that there will be something to learn from? Not of a sub-agent or an ephemeral session."""
    path = told.get("transcript_path")
    return isinstance(path, str) and path != "" and not told.get("agent_id")


# The daemon


def ask(home: str, fields: Sequence[str], payload: bytes, until: float) -> bytes:
    """What the daemon answers. OSError: there is none. Refused: it is busy, or did not answer in time."""
    connection = connect(home, until)
    try:
        token = _token(home) if connection.family != _unix() else ""
        head = "\t".join("" if _is_split(field) else field for field in (*fields[:1], token, *fields[1:]))
        try:
            connection.sendall(head.encode("utf-8", "surrogateescape") + b"\n" + payload)
            connection.shutdown(1)  # SHUT_WR: that was all
        except TimeoutError:
            raise
        except OSError:
            pass  # it does not listen to the end, and may have said why
        answer = _received(connection, until)
    except TimeoutError:
        raise Refused("the daemon did not answer in time") from None
    finally:
        connection.close()
    status, _, printed = answer.partition(b"\n")
    if status != b"ok" or (printed and not printed.endswith(b"\n")):
        raise Refused("the daemon is busy" if status == b"busy" else "the daemon broke off")
    return printed


def _received(connection: Any, until: float) -> bytes:
    answer = bytearray()
    while len(answer) <= ANSWER:
        connection.settimeout(max(0.001, until - time.monotonic()))
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            break
        if not part:
            break
        answer += part
    return bytes(answer)


def connect(home: str, until: float) -> Any:
    import _socket  # `socket` adds comfort, and ten milliseconds

    family = _unix()
    connection = _socket.socket(_socket.AF_INET if family is None else family, _socket.SOCK_STREAM)
    connection.settimeout(max(0.001, until - time.monotonic()))
    path = home + "/" + SOCKET
    try:
        if family is None:
            connection.connect(("127.0.0.1", int(_address(home)[1])))
        elif len(os.fsencode(path)) <= _SOCKET_PATH:
            connection.connect(path)
        else:  # too long for the system: from inside the folder it is short
            before = os.open(".", os.O_RDONLY)
            try:
                os.chdir(home)
                connection.connect(SOCKET)
            finally:
                os.fchdir(before)
                os.close(before)
    except BlockingIOError:  # its list of those who wait is full
        connection.close()
        raise Refused("the daemon is busy") from None
    except BaseException:
        connection.close()
        raise
    if not _is_ours(connection):
        connection.close()
        raise PermissionError(1, "the socket is somebody else's")
    return connection


def _is_ours(connection: Any) -> bool:
    """Does the process behind a Unix socket belong to this user, as far as the system tells?"""
    import _socket

    if connection.family != _unix() or not hasattr(_socket, "SO_PEERCRED"):
        return True
    peer: bytes = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # process, user, group
    return int.from_bytes(peer[4:8], sys.byteorder) == os.geteuid()


def _unix() -> Any:
    """The family of Unix sockets; None where there are none, or where the daemon found none."""
    import _socket

    return getattr(_socket, "AF_UNIX", None)


def _address(home: str) -> list[str]:
    """As the lock file tells it: kind, port, token."""
    with open(home + "/" + LOCK, "rb") as file:  # noqa: PTH123 - pathlib costs more than the request
        lines = file.read(4096).decode().splitlines()
    return lines[2].split(":") if len(lines) > 2 else []


def _token(home: str) -> str:
    return _address(home)[2]


def _is_split(field: str) -> bool:
    return "\t" in field or "\n" in field


def start(home: str, environ: Mapping[str, str]) -> None:
    """A daemon in the background, with nothing of ours but a lock: while it lives, nobody starts another one."""
    import fcntl

    made(home, "logs")
    lock = os.open(home + "/" + STARTING, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # it is starting, or it lives and does not answer
    refused = os.read(lock, 100).decode()
    if refused == situation(home, environ) and time.time() - os.fstat(lock).st_mtime < _AGAIN:
        return
    if os.fork():
        return
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        told = os.open(home + "/logs/daemon.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        for descriptor, instead in ((0, nothing), (1, nothing), (2, told)):
            os.dup2(instead, descriptor)
        os.closerange(3, lock)  # an agent waits until every copy of its pipe is closed
        os.closerange(max(lock, 2) + 1, 64)
        os.set_inheritable(lock, True)
        os.chdir(home)
        time.sleep(_DELAY)
        os.execve(sys.executable, [sys.executable, "-P", "-m", "recollect", "serve"], for_daemon(home, environ))
    finally:
        os._exit(1)


def for_daemon(home: str, environ: Mapping[str, str]) -> dict[str, str]:
    """An agent's environment without what a project wants of Python. It stays only where recollect itself is found by
    it."""
    root, path = __file__.rpartition("/recollect/")[0], environ.get("PYTHONPATH", "").split(os.pathsep)
    needed = root in path or root.startswith((environ.get("PYTHONUSERBASE") or "-") + "/")
    kept = {name: value for name, value in environ.items() if needed or not name.startswith("PYTHON")}
    return {**kept, "RECOLLECT_HOME": home}


def situation(home: str, environ: Mapping[str, str]) -> str:
    """Configuration file and variables that a daemon starts with. One that refused to come up leaves this behind, and
    is started again at once where it has changed, or for an agent with other variables."""
    import binascii

    ours = sorted(f"{name}={value}" for name, value in environ.items() if name.startswith("RECOLLECT_"))
    ours = [each for each in ours if not each.startswith("RECOLLECT_HOME=")]
    text = "\n".join((stamp(home + "/config.toml"), *ours))
    return f"refused {binascii.crc32(os.fsencode(text)):08x}"


# Without it


def unanswered(home: str, event: str, agent: str, told: dict[str, Any], environ: Mapping[str, str]) -> bytes:
    if event not in ("SessionStart", "SessionEnd") or told.get("agent_id"):
        return b""
    if event == "SessionEnd":
        spool(home, event, agent, told)
        return b""
    text, sign = ready(home, told, environ)
    if not text:
        return b""
    try:
        spool(home, event, agent, told, text)
    except (OSError, Refused) as error:  # then it may be told once more
        log(home, event, error)
    return printed(event, text, "" if told.get("source") in ("compact", "resume", "fork") else sign) + b"\n"


def printed(event: str, text: str, sign: str = "") -> bytes:
    """As both agents read it; `sign` is for the person."""
    import json

    output: dict[str, object] = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    if sign:
        output["systemMessage"] = sign
    return json.dumps(output).encode() if text else b""


def ready(home: str, told: dict[str, Any], environ: Mapping[str, str]) -> tuple[str, str]:
    """What was made ready for a folder, and what the person is shown of it; nothing for a folder that is not known, and
    nothing that may be out of date."""
    import json

    cwd, session = told.get("cwd"), told.get("session_id")
    if not isinstance(cwd, str) or not isinstance(session, str) or is_paused(home, session):
        return "", ""
    index = json.loads(_file(home + "/" + CONTEXT + "/" + INDEX, 10_000_000) or "{}")
    folders = index.get("folders", {})
    top = repository(cwd)
    known = cwd if cwd in folders else top if index.get("whole") else ""
    name = folders.get(known)
    if not name or "/" in name or index.get("config") != stamp(home + "/config.toml"):
        return "", ""
    if any(environ.get(variable, "") != value for variable, value in index["environ"].items()):
        return "", ""
    if index.get("marks", {}).get(known) != (mark(top) or place(known)):  # another one is there by now
        return "", ""
    return _file(home + "/" + CONTEXT + "/" + name, ANSWER), index.get("signs", {}).get(name, "")


def repository(cwd: str) -> str:
    """The folder at or above this one that holds a `.git`; empty: none."""
    while cwd.startswith("/") and cwd != "/":
        if os.path.exists(cwd + "/.git"):  # noqa: PTH110
            return cwd
        cwd = os.path.dirname(cwd)  # noqa: PTH120
    return ""


def mark(top: str) -> str:
    """Tells a repository, by the folder that holds its `.git`, from every other one; empty: there is none."""
    if not top:
        return ""
    found = made = os.lstat(top + "/.git")
    for name in ("description", "config"):  # git writes the first once
        if os.path.exists(top + "/.git/" + name):  # noqa: PTH110
            made = os.stat(top + "/.git/" + name)  # noqa: PTH116
            break
    return f"{top} {found.st_dev}:{found.st_ino}:{made.st_mtime_ns}"


def place(folder: str) -> str:
    """Tells a folder that is in no repository from another one that is put in its place."""
    found = os.stat(folder)  # noqa: PTH116
    return f"{folder} {found.st_dev}:{found.st_ino}"


def is_paused(home: str, session: str) -> bool:
    return is_name(session) and os.path.exists(home + "/" + PAUSED + "/" + session)  # noqa: PTH110


def is_name(session: str) -> bool:
    """May it be the name of a file?"""
    plain = session.replace("-", "").replace("_", "").replace(".", "")
    return 0 < len(session) <= 128 and plain.isascii() and plain.isalnum() and session[0] != "."


def stamp(path: str) -> str:
    """Tells a file from what it was."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}"


def spool(home: str, event: str, agent: str, told: dict[str, Any], given: str = "") -> None:
    """It waits for a daemon: who and where, which memories were given, and nothing that was said."""
    import json

    folder = made(home, SPOOL)
    if len(os.listdir(folder)) >= SPOOLED:  # noqa: PTH208
        raise Refused("too many sessions wait already")
    kept = {
        key: told[key] for key in ("session_id", "transcript_path", "cwd", "source") if isinstance(told.get(key), str)
    }
    ends = [row.rpartition("(")[2].split(", ")[0].split(" ") for row in given.splitlines() if row.startswith("- ")]
    lines = [(end[0], int(end[1][1:])) for end in ends if end[0][:2] == "m-" and end[-1][1:].isdigit()]
    lines += [(end[1], 0) for end in ends if end[0] == "session" and len(end) == 2]
    text = json.dumps({"event": event, "agent": agent, "input": kept, "given": lines})
    if len(text) > 20_000:
        raise Refused("an event that is too long")
    name = f"{folder}/{time.time_ns()}-{os.getpid()}"
    descriptor = os.open(name + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(descriptor, text.encode())
    os.close(descriptor)
    os.rename(name + ".tmp", name + ".json")  # noqa: PTH104


def log(home: str, event: str, reason: object) -> None:
    """A line; nothing of what came in."""
    try:
        path = made(home, "logs") + "/hooks.log"
        if os.path.exists(path) and os.path.getsize(path) > _LOG:  # noqa: PTH110, PTH202
            os.replace(path, path + ".1")  # noqa: PTH105
        what = str(reason) if isinstance(reason, (str, Refused)) else type(reason).__name__
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.write(descriptor, f"{at} {event if event in EVENTS else '?'} {what}\n".encode())
        os.close(descriptor)
    except OSError:
        pass


def made(home: str, name: str) -> str:
    """A folder of the home. Both are their owner's alone, the home also where nothing else made it yet."""
    path = home + "/" + name
    for each in (home, path):
        os.makedirs(each, 0o700, exist_ok=True)  # noqa: PTH103
    if os.path.islink(path):  # noqa: PTH114
        raise OSError("a link in place of a folder")
    return path


def _file(path: str, most: int) -> str:
    """Empty when it is not there, or is too long to be ours. A pipe in its place is not waited for."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            data = file.read(most + 1) or b""
    except OSError:
        return ""
    return "" if len(data) > most else data.decode("utf-8", "replace")
