"""A program that ingests a folder over and over until it is killed. Arguments: home, database URL or "", folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from recollect.app import open_memory
from recollect.ingest import run


def main() -> None:
    home, url, folder = sys.argv[1:]
    environ = {**os.environ, "HOME": home}
    with open_memory(home, environ=environ, database=url, ingest_workers=1) as memory:
        assert memory.intake  # imported before the clock starts
        run._ENTRIES = 300  # several commits in every run: more moments to be killed at
        print("ready", flush=True)
        while True:
            memory.ingest(folder=Path(folder))


if __name__ == "__main__":
    main()
