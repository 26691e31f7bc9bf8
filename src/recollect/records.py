"""The verbs that read what is kept: conversations, memories with where they come from, files, what happened when."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.asking import Asking
from recollect.errors import NotFound, one_of
from recollect.parts import settled
from recollect.store.database import Transaction
from recollect.types import Conversation, ConversationStatus, Remembered, Scope, timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.artifacts.lineage import Day, Shown
    from recollect.artifacts.reading import Opened

log = logging.getLogger(__name__)


class Records(Asking):
    """What is kept, as it can be read."""

    @settled
    def conversations(
        self, status: ConversationStatus | None = None, project: str | None = None, limit: int | None = None
    ) -> list[Conversation]:
        """Newest first; `project` is a path or a project id."""
        from recollect.store import conversations

        chosen = None if project is None else self.project(project)
        with self.database.read() as tx:
            return conversations.search(
                tx, self.owner, statuses=[status] if status else (), project=chosen, limit=limit
            )

    @settled
    def require_project(self, project: str | None) -> None:
        """The project that somebody named. A folder may be new; an id or a path that nothing was said in is a
        mistake."""
        if not project or Path(self.settings.expand(project)).is_dir():
            return
        if not self.conversations(project=project, limit=1):
            raise NotFound(f"no project `{project}`", hint="`recollect conversations` lists projects.")

    def opening(self, conversation: Conversation) -> str:
        """What the user said first."""
        from recollect.store import entries

        key = entries.FileKey(self.owner, conversation.source, conversation.source_file)
        span = (conversation.session_id, conversation.first_message_at, conversation.last_message_at)
        with self.database.read() as tx:
            said = entries.user_texts(tx, key, *span, limit=1)
        return said[0] if said else ""

    @settled
    def show(self, name: str, project: str = "") -> Shown:
        """A memory, conversation, session, message or canonical file with its lineage. Looking at it is no use of it.
        `project` is the id of the one it is asked in: it tells which of several memories a short id means."""
        return self._reader.show(name, project)

    @settled
    def open(self, session: str, kind: str | None = None) -> Opened:
        """A canonical file of a conversation: summary, transcript, manifest or compaction."""
        from recollect.artifacts.names import Kind

        return self._reader.open(session, one_of(Kind, kind, "a kind") if kind else None)

    @settled
    def timeline(
        self,
        *,
        project: str | None,
        since: str = "",
        until: str | None = None,
        limit: int = 50,
        memory: str | None = None,
        user: str = "",
    ) -> list[Day]:
        """What happened when, newest first. `project` None: in all of them; `until` is not included. Chats are those of
        a `user`; without one there are none."""
        return self._reader.timeline(project=project, since=since, until=until, limit=limit, memory=memory, user=user)

    @settled
    def memories(self, project: str | None = None, since: str = "") -> list[Remembered]:
        """What is known now, newest first: in a project (its id) and everywhere, or in all of them; nothing that was
        called wrong, and nothing of the users of chats."""
        from recollect.store import feedback, memories

        with self.database.read() as tx:
            if project is None:
                held = memories.all_of(tx, self.owner, user="")
            else:
                held = memories.in_scopes(tx, self.owner, [(Scope.USER, ""), (Scope.PROJECT, project)])
            held = memories.current(held)
            without = {*self.ground.unlisted(tx).memories, *feedback.wrong(tx, self.owner, [each.id for each in held])}
        shown = [each for each in held if each.id not in without and each.valid_from >= since]
        return sorted(shown, key=lambda each: (each.valid_from, each.id), reverse=True)

    @settled
    def memory(self, name: str, project: str = "") -> Remembered:
        """A memory as it is now, by its id or the beginning of it. NotFound where there is none."""
        from recollect.store import memories

        with self.database.read() as tx:
            found = memories.named(tx, self.owner, name, project)
            held = memories.current(memories.find(tx, self.owner, [found])) if found else []
        if not held:
            raise NotFound(f"no memory `{name}`", hint="`recollect memories` lists them.")
        return held[0]

    def cite(self, ids: Sequence[str]) -> list[str]:
        """An agent cited these memories: counts as use. Returns those that exist."""
        with self.database.write() as tx:
            return self._cite(tx, list(dict.fromkeys(ids)))

    def count_citations(self) -> int:
        """Uses of memories that agents' answers named since last time; each answer counts once."""
        from recollect.store import citations

        with self.database.read() as tx:
            if not citations.waiting(tx, self.owner):
                return 0
        with self.database.write() as tx:
            found = citations.waiting(tx, self.owner)
            for each in sorted({(source, uuid) for source, uuid, _ in found}):
                self._cite(tx, [memory_id for *entry, memory_id in found if tuple(entry) == each])
            citations.settle(tx, self.owner, found)
        return len(found)

    def _cite(self, tx: Transaction, ids: Sequence[str]) -> list[str]:
        from recollect.store import memories, stage1

        found = memories.current(memories.find(tx, self.owner, ids))
        now = timestamp(self.clock())
        memories.cite(tx, self.owner, [each.id for each in found], now)
        keys = dict.fromkeys(key for each in found for key, _ in each.sources)
        stage1.cite(tx, self.owner, list(keys), now)
        return [each.id for each in found]
