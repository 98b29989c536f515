"""The entry point of operators' commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from exactlyonce.cli.arguments import parser
from exactlyonce.cli.command import piped


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an operators' command, and return its exit code. Azure's clients load only after the arguments are understood."""
    options = parser().parse_args(arguments)
    from exactlyonce.cli.commands import run  # noqa: PLC0415

    return run(options)


if __name__ == "__main__":
    sys.exit(piped(main))
