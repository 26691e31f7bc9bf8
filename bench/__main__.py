"""`python -m bench keep`, `python -m bench know`, `python -m bench page`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import keep, know, made_up, page


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    told = "What is kept of made-up conversations, and of real sessions held against readers' labels."
    command = commands.add_parser("keep", help=told, description=told, epilog=keep.WHERE)
    command.add_argument(
        "--sessions", type=Path, metavar="DIR", help="the unpacked sessions; without them the made-up sets alone"
    )
    command.add_argument("--read", metavar="PROJECT", help="print what is kept of this project's sessions, to be read")
    told = "Which memories that a prompt needs reach the agent, on labelled projects."
    command = commands.add_parser("know", help=told, description=told)
    command.add_argument("--data", type=Path, default=know.DATA, metavar="DIR", help="a folder of projects of your own")
    command.add_argument("--embedder", default="auto", help="static, auto, … [default: auto]")
    command.add_argument(
        "--show", default="", metavar="PROJECT", help="print its briefing, and what is missing or wrong"
    )
    told = "How long the page takes to show lists and memories, with few memories and with many."
    commands.add_parser("page", help=told, description=told)
    given = parser.parse_args()
    if given.name == "page":
        return page.run()
    if given.name == "know":
        return know.run(given.data, given.embedder, given.show)
    print(made_up.table() + "\n")
    if given.sessions is None:
        return 0
    if not given.sessions.is_dir():
        print(f"bench: {given.sessions} is no folder\n  {keep.WHERE}", file=sys.stderr)
        return 2
    return keep.run(given.sessions, given.read)


if __name__ == "__main__":
    raise SystemExit(main())
