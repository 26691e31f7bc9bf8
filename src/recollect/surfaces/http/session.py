"""The memory that the page shows: opened anew when its configuration or database became another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from recollect.app import Memory, open_memory
from recollect.store.open import identity
from recollect.surfaces.hooks import client


class Session:
    """Lends the memory to requests. One that is outdated is closed by the last request that uses it."""

    def __init__(self, home: Path, environ: Mapping[str, str], agent_id: str | None) -> None:
        self.home = home
        self._environ = environ
        self._agent_id = agent_id
        self._lock = threading.Lock()
        self._memory: Memory | None = None
        self._stamp: object = None
        self._users: dict[int, tuple[Memory, int]] = {}

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        lent = self._lend()
        try:
            yield lent
        finally:
            self._give_back(lent)

    def _lend(self) -> Memory:
        with self._lock:
            if self._memory is None or self._stamp != self._now(self._memory):
                before, self._memory = self._memory, None
                if before is not None and id(before) not in self._users:
                    before.close()
                self._memory = open_memory(self.home, environ=self._environ, agent_id=self._agent_id)
                self._stamp = self._now(self._memory)
            memory = self._memory
            self._users[id(memory)] = (memory, self._users.get(id(memory), (memory, 0))[1] + 1)
            return memory

    def _give_back(self, memory: Memory) -> None:
        with self._lock:
            _, users = self._users.pop(id(memory))
            if users > 1:
                self._users[id(memory)] = (memory, users - 1)
            elif memory is not self._memory:
                memory.close()

    def _now(self, memory: Memory) -> object:
        return client.stamp(str(self.home / "config.toml")), identity(memory.settings)

    def close(self) -> None:
        with self._lock:
            if self._memory is not None and id(self._memory) not in self._users:
                self._memory.close()
            self._memory = None
