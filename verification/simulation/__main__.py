"""`python -m verification.simulation`: simulate for a while, and print what happened as a table."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser

from rich.console import Console

from verification.simulation.display import progress_bar, show_table, show_violation
from verification.simulation.fleet import MESSAGES, Options, Tally, run_fleet
from verification.simulation.twins import NAMES


def main() -> int:
    """Simulate; the exit code is 0 if nothing fell."""
    options = _options()
    console = Console()
    tally = Tally()
    try:
        with progress_bar(console, options, tally) as show:
            run_fleet(options, tally, show)
    except KeyboardInterrupt:
        console.print("Stopped; this is what there was so far.")
    show_table(console, options, tally)
    show_violation(console, options, tally)
    return int(tally.violations > 0)


def _options() -> Options:
    parser = ArgumentParser(prog="python -m verification.simulation", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for how long; 0 for one seed (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first episode; they count up (default %(default)s)")
    parser.add_argument(
        "--messages", type=int, default=MESSAGES, help="from outside, in each episode (default %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--twin", default="", choices=("", *NAMES), metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    given = parser.parse_args()
    return Options(given.seconds, given.seed, given.messages, given.jobs, given.twin)


if __name__ == "__main__":
    sys.exit(main())
