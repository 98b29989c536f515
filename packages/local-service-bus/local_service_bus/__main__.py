"""Runs the endpoint; `--help` explains it."""

import sys
from importlib.util import find_spec


def main() -> int:
    """Run the command line; returns its exit code, 1 where the AMQP library is not installed."""
    if find_spec("proton") is None:
        print(
            "The local Service Bus needs python-qpid-proton, which takes a C compiler: see the README.", file=sys.stderr
        )
        return 1
    from local_service_bus.cli import main as serve  # noqa: PLC0415  # It imports that library.

    return serve()


if __name__ == "__main__":
    sys.exit(main())
