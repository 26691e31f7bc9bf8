"""A small chat agent with a memory, offline: two conversations of one user, and what the agent was shown.

    python examples/chat_agent.py          # in a folder of its own that is removed afterwards
    python examples/chat_agent.py HOME     # keep the memory under HOME

The agent itself is a few lines of rules; the point is what it knows. In the first conversation the user states a
preference with an exception, corrects a number, and says what they thought of an answer; the agent recommends a plan.
In the second one it still knows all of that, and does not recommend the plan again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from recollect import open_memory
from recollect.app import Memory
from recollect.turns.present import View
from recollect.turns.signals import SignalRule

SIGNALS = {"plus_plan": SignalRule("the Plus plan is offered", patterns=("Plus plan",))}

FIRST = (
    "I prefer vegetarian restaurants, except on Fridays. My budget is 500 euros.",
    "Always show prices in euros. Where should we eat on Saturday?",
    "No, that's wrong. Actually, my budget is 700 euros.",
    "And where do we get dessert?",
)
SECOND = ("Plan a dinner for Saturday that fits my budget.",)


class Clock:
    """Ten minutes pass between turns; so the output is the same every time."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)


def answer(question: str, view: View) -> str:
    """The agent: it reads its view, and nothing else."""
    known = view.text
    said = []
    if "vegetarian" in known:
        said.append("A vegetarian place, since it is not a Friday.")
    if "700 euros" in known:
        said.append("It stays within 700 euros.")
    if "plus_plan" not in known:
        said.append("I would recommend the Plus plan for table reservations.")
    return " ".join(said) or f"You said: {question}"


def talk(memory: Memory, clock: Clock, conversation: str, questions: tuple[str, ...]) -> None:
    turns = memory.turns(project="city-guide", user="alice", conversation=conversation)
    for number, question in enumerate(questions, 1):
        with turns.turn(f"t{number}", question) as turn:
            turn.preload()
            turn.view("gate")  # for an agent that decides whether to answer at all
            found = turn.reconcile()
            if number == 1:
                turn.update_fingerprint(conversation_title=f"Eating out: {conversation}")
            view = turn.view("final")
            turn.persist(answer=answer(question, view), signals=SIGNALS)
        print(f"=== {conversation} {turn.turn_id} · user: {question}")
        print(f"selected: {', '.join(found.local_memories_turn_ids) or 'nothing'}")
        print(view.text)
        print(f"=== answer: {turn.answer}\n")
        clock.wait(10)
        if (conversation, turn.turn_id) == ("monday", "t2"):
            turns.react("t2", "not_ok", "Too expensive for us.")  # a button in the chat window


@contextmanager
def home(given: str) -> Iterator[str]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="chat-agent-") as folder:
        yield folder


def main(given: str = "") -> None:
    clock = Clock()
    with home(given) as folder, open_memory(folder, clock=clock, embedder="none") as memory:
        talk(memory, clock, "monday", FIRST)
        clock.wait(60 * 24)
        talk(memory, clock, "tuesday", SECOND)
        titles = (
            memory.turns(project="city-guide", user="alice", conversation=name).title()
            for name in ("monday", "tuesday")
        )
        print("titles:", ", ".join(titles))


if __name__ == "__main__":
    main(*sys.argv[1:2])
