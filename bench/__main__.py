"""`python -m bench keep --sessions DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import keep


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    told = "What is kept of real sessions, held against readers' labels: by strategy and project."
    command = commands.add_parser("keep", help=told, description=told, epilog=keep.WHERE)
    command.add_argument("--sessions", type=Path, required=True, metavar="DIR", help="the unpacked sessions")
    command.add_argument("--read", metavar="PROJECT", help="print what is kept of this project's sessions, to be read")
    given = parser.parse_args()
    if not given.sessions.is_dir():
        print(f"bench: {given.sessions} is no folder\n  {keep.WHERE}", file=sys.stderr)
        return 2
    return keep.run(given.sessions, given.read)


if __name__ == "__main__":
    raise SystemExit(main())
