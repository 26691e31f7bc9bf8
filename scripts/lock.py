"""Writes the hash of every file of every version that is pinned: `make lock`, after a version was changed.

All files count, so that the hashes hold on every system and Python. They come from whichever index pip is set up for.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

REPOSITORY = Path(__file__).parent.parent
PINS = (REPOSITORY / "constraints.txt", REPOSITORY / "tests" / "models.txt", REPOSITORY / "tests" / "page.txt")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", re.MULTILINE)


def main() -> None:
    command = create_command("download")
    options, _ = command.parser.parse_args([])
    with command.main_context(), command._build_session(options) as session:  # type: ignore[attr-defined]
        collector = LinkCollector.create(session, options)
        for file in PINS:
            pins = PIN.findall(file.read_text(encoding="utf-8"))
            file.write_text("".join(locked(collector, *pin) for pin in pins), encoding="utf-8")


def locked(collector: LinkCollector, name: str, version: str) -> str:
    """Return a pin with the hashes of its files."""
    hashes = set()
    for location in collector.search_scope.get_index_urls_locations(name):
        page = collector.fetch_response(Link(location))
        for link in parse_links(page) if page else ():
            if is_of(link.filename, name, version) and "sha256" in link._hashes:
                hashes.add(link._hashes["sha256"])
    if not hashes:
        sys.exit(f"{name}=={version}: the index names no file with a SHA-256")
    return f"{name}=={version}" + "".join(f" \\\n    --hash=sha256:{each}" for each in sorted(hashes)) + "\n"


def is_of(file: str, name: str, version: str) -> bool:
    """Is it a file of this version?"""
    try:
        found = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
    except ValueError:
        return False
    return (found[0], str(found[1])) == (canonicalize_name(name), version)


if __name__ == "__main__":
    main()
