"""The process of the page: `python -m recollect.surfaces.http.serve`. It leaves when nobody looked for a while.

Port, name and logins are those of last time, so that an address stays good. Where somebody else has the port by now,
all three are new: whoever sits there is sent no cookie that opens anything.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import uvicorn

from recollect.config import Settings, load
from recollect.surfaces.cli.common import log_to
from recollect.surfaces.http import place
from recollect.surfaces.http.app import build
from recollect.surfaces.http.guard import Door
from recollect.surfaces.http.session import Session
from recollect.surfaces.http.work import Work

log = logging.getLogger(__name__)

_HOSTS = ("127.0.0.1", "::1")  # both, so that nobody else on this machine answers under the page's name
_IDLE = 15 * 60.0  # seconds
_CONNECTIONS = 100
_NICE = 5  # a prompt that waits for a hook goes first


def listeners(port: int) -> list[socket.socket]:
    """On loopback. OSError where the port is somebody else's."""
    first = socket.create_server((_HOSTS[0], port))
    found = [first]
    try:
        if socket.has_dualstack_ipv6():
            port = first.getsockname()[1]
            second = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            found.append(second)
            second.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                second.bind((_HOSTS[1], port))
            except OSError as error:
                if error.errno != 99:  # EADDRNOTAVAIL: this machine has no ::1
                    raise
                found.remove(second)
                second.close()
            else:
                second.listen(100)
    except OSError:
        for each in found:
            each.close()
        raise
    return found


def bound(settings: Settings, state: place.State) -> tuple[list[socket.socket], place.State]:
    """Sockets, and the state with the address that they have."""
    wanted = settings.config.page_port or state.port
    if state.name and wanted in (0, state.port):
        with suppress(OSError):
            return listeners(state.port), state
    fresh = place.State(name=place.fresh_name())
    for port in (settings.config.page_port, 0):
        with suppress(OSError):
            sockets = listeners(port)
            return sockets, msgspec.structs.replace(fresh, port=sockets[0].getsockname()[1])
    raise SystemExit("no port on loopback can be had")


class Server(uvicorn.Server):
    """Leaves when it was idle for so long; None: never."""

    def __init__(self, config: uvicorn.Config, door: Door, idle: float | None, work: Work) -> None:
        super().__init__(config)
        self._door = door
        self._idle = idle
        self._work = work

    async def on_tick(self, counter: int) -> bool:
        leave = await super().on_tick(counter)
        if self._idle is None or self._door.streams or self._work.is_busy:
            return leave
        return leave or asyncio.get_running_loop().time() - self._door.touched > self._idle


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent-id")
    parser.add_argument("--idle", type=float, default=_IDLE)
    given = parser.parse_args(arguments)
    settings = load(flags={"agent_id": given.agent_id})
    lock = place.acquire(settings.home)
    if lock is None:
        return
    log_to(settings, "page.log")
    os.nice(_NICE)
    os.chdir(settings.home)
    sockets, state = bound(settings, place.load(settings.home))
    place.save(settings.home, state)
    door, session = Door(state), Session(settings.home, dict(os.environ), given.agent_id)
    work = Work(settings.home, session)
    config = uvicorn.Config(
        build(door, session, work),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=32 * 1024,
    )
    place.set_open(settings.home, True)
    place.tell(lock, state)
    log.info("the page is served, process %s", os.getpid())
    Server(config, door, None if settings.config.page_port else given.idle, work).run(sockets)
    place.set_open(settings.home, False)
    work.close()
    session.close()
    lock.release()


if __name__ == "__main__":
    main()
    sys.exit(0)
