"""The entry point. Whatever must start fast is dispatched here, before anything else is imported."""

from __future__ import annotations

import sys


def main() -> None:
    from recollect.surfaces.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
