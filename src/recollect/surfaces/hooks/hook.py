"""The program that agents' settings name: starts the client from its compiled form, without any package around it."""

import sys

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/")[0])
    from client import main  # type: ignore[import-not-found]

    main(installed=True)
