"""The composition root: `open_memory()` wires everything, and nothing else opens a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recollect import config as configuration
from recollect.config import Settings
from recollect.errors import Disabled
from recollect.store.database import Database
from recollect.store.open import open_database
from recollect.types import Clock, Conversation, ConversationStatus, Owner, utc_now

if TYPE_CHECKING:
    from recollect.ingest.intake import Intake
    from recollect.ingest.run import Progress, Report
    from recollect.overview import Overview


def open_memory(
    home: Path | str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    **flags: Any,
) -> Memory:
    """The memory under `home` (else RECOLLECT_HOME, else ~/.recollect). Further keywords are configuration keys."""
    return Memory(configuration.load(environ, home=Path(home) if home else None, flags=flags), clock)


class Memory:
    """Everything recollect does, by the names of its commands. Close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        self.settings = settings
        self.owner = Owner(settings.config.tenant, settings.config.agent_id)
        self.clock = clock
        self.database: Database = open_database(settings, clock)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()

    @cached_property
    def intake(self) -> Intake:
        """Stage 1. Made on first use: reading commands do not pay for parsers."""
        from recollect.ingest.intake import Intake

        if not self.settings.config.enabled:
            raise Disabled
        return Intake(self.database, self.settings, self.owner, self.clock)

    def ingest(
        self,
        *,
        file: Path | None = None,
        folder: Path | None = None,
        source: str | None = None,
        reimport: bool = False,
        progress: Progress = lambda size, count: None,
        expect: Progress = lambda size, count: None,
    ) -> Report:
        """Takes in a file, a folder, or every agent's transcripts on this machine."""
        return self.intake.ingest(
            file=file, folder=folder, source=source, reimport=reimport, progress=progress, expect=expect
        )

    def conversations(
        self, status: ConversationStatus | None = None, project: str | None = None, limit: int | None = None
    ) -> list[Conversation]:
        """Newest first; `project` is a path or a project id."""
        from recollect.store import conversations

        with self.database.read() as tx:
            return conversations.search(tx, self.owner, status=status, project=project, limit=limit)

    def opening(self, conversation: Conversation) -> str:
        """What the user said first."""
        from recollect.store import entries

        key = entries.FileKey(self.owner, conversation.source, conversation.source_file)
        span = (conversation.session_id, conversation.first_message_at, conversation.last_message_at)
        with self.database.read() as tx:
            said = entries.user_texts(tx, key, *span, limit=1)
        return said[0] if said else ""

    def status(self) -> Overview:
        """What is there and what is going on."""
        from recollect.overview import overview

        return overview(self)

    def health(self) -> Overview:
        """The same, with every malformed line named and the database checked."""
        from recollect.overview import overview

        return overview(self, deep=True)

    def watch(self, stop: Event, on_change: Callable[[Report], None] = lambda report: None) -> None:
        """Takes in what changes until `stop` is set."""
        from recollect.ingest.watch import watch

        watch(self.intake, stop, self.settings.config.poll_interval_seconds, on_change)
