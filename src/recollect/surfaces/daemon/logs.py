"""Log files of long-running processes: bounded, and for their owner only."""

from __future__ import annotations

import logging

from recollect.config import Settings
from recollect.surfaces.cli.common import log_file


def log_to(settings: Settings, name: str) -> None:
    """What this process has to say goes to logs/<name>; warnings of libraries, too."""
    logging.getLogger().addHandler(log_file(settings, name, backups=2))
    ours = logging.getLogger("recollect")
    ours.setLevel(min(logging.INFO, logging.getLevelName(settings.config.log_level.upper())))
