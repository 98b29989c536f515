"""`python -m demo.outage`: the exit code is 0 if everything healed by itself."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from demo.outage.enduring import Outage, endure


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser("python -m demo.outage", description=__doc__)
    parser.add_argument("--seconds", type=float, default=Outage.seconds, help="of the outage (%(default)g)")
    parser.add_argument("--shots", type=int, default=Outage.shots, help="%(default)s")
    parser.add_argument(
        "--invisible",
        type=int,
        default=Outage.invisible,
        help="seconds until a killed host's messages come back (%(default)s, as on the real host)",
    )
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="exactlyonce-outage-"))
    said = ""

    def say(text: str) -> None:
        nonlocal said
        if text.split(",", maxsplit=1)[0] != said:
            said = text.split(",", maxsplit=1)[0]
            print(text, flush=True)

    endured = asyncio.run(endure(Outage(given.seconds, given.shots, given.invisible), folder, say))
    if problem := endured.problem:
        print(f"{problem} The hosts' logs are in {folder}.")
        return 1
    print(
        f"All {given.shots} shots took place once and none was parked. {endured.healed:.0f} s after the outage nothing was "
        f"left to do. {endured.refused} requests were refused, {endured.killed} hosts killed, {endured.returned} times a "
        "message was returned to its queue."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
