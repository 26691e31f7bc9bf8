"""Log files of long-running processes: bounded, and for their owner only."""

from __future__ import annotations

import logging

from recollect.config import Settings
from recollect.surfaces.cli.common import OwnersFile


def log_to(settings: Settings, name: str) -> None:
    """What this process has to say goes to logs/<name>; warnings of libraries, too."""
    folder = settings.home / "logs"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = OwnersFile(folder / name, maxBytes=1_000_000, backupCount=2, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    ours = logging.getLogger("recollect")
    ours.setLevel(min(logging.INFO, logging.getLevelName(settings.config.log_level.upper())))
