"""The entry point of operators' commands."""

from __future__ import annotations

import sys

from exactlyonce.cli.arguments import parser


def main() -> int:
    """Run an operators' command, and return its exit code. Clients of Azure load only once the command is understood."""
    parser().parse_args()
    from exactlyonce.cli import commands  # noqa: PLC0415

    return commands.main()


if __name__ == "__main__":
    sys.exit(main())
