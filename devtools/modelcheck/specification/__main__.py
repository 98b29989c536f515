"""`python -m devtools.modelcheck.specification`: write the pages of `docs/protocols`, or check that they are fresh."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from devtools.modelcheck.specification.files import stale, write


def main() -> int:
    """Write the pages; with `--check` only tell which ones the code has outgrown."""
    parser = ArgumentParser(prog="python -m devtools.modelcheck.specification", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not what the code says")
    if not parser.parse_args().check:
        write()
        return 0
    for name in (outgrown := stale()):
        print(f"{name} is not what the code says: run python -m devtools.modelcheck.specification", file=sys.stderr)
    return int(bool(outgrown))


if __name__ == "__main__":
    sys.exit(main())
