"""The entry point. Whatever must start fast is dispatched here, before anything else is imported."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from recollect.surfaces.hooks.client import main as hook

        hook(sys.argv[2:])
    from recollect.surfaces.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
