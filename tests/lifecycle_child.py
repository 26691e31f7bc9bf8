"""A program that ends sessions once it is told to. Arguments: home, database URL or "", agent, the time it is."""

from __future__ import annotations

import sys
from datetime import datetime

from recollect.app import open_memory


def main() -> None:
    home, url, agent, now = sys.argv[1:]
    with open_memory(home, database=url, agent_id=agent, clock=lambda: datetime.fromisoformat(now)) as memory:
        print("ready", flush=True)
        sys.stdin.readline()
        print(memory.process(limit=2).failed, flush=True)


if __name__ == "__main__":
    main()
