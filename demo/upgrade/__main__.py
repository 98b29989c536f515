"""`python -m demo.upgrade COMMIT`: the exit code is 0 if every shot took place once."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.upgrade.rolling import Upgrade, checked_out, upgrade


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser("python -m demo.upgrade", description=__doc__)
    parser.add_argument("commit", help="of the earlier version: a tag, or any commit")
    parser.add_argument("--shots", type=int, default=Upgrade.shots, help="%(default)s")
    parser.add_argument("--forward-only", action="store_true", help="the present version cannot be rolled back")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="exactlyonce-upgrade-"))
    logs = folder / "logs"
    logs.mkdir()
    try:
        earlier = checked_out(given.commit, folder / "earlier")
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode().strip(), file=sys.stderr)
        return 2
    played = Upgrade(earlier, given.shots, back=not given.forward_only)
    done = asyncio.run(upgrade(played, logs, lambda text: print(text, flush=True)))
    if problem := done.problem:
        print(f"{problem} The hosts' logs are in {logs}.")
        return 1
    print(f"All {given.shots} shots took place once and none was parked, while {done.replaced} hosts were replaced.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
