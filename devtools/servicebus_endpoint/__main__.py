"""Runs the endpoint; `--help` explains it."""

import sys
from importlib.util import find_spec

if find_spec("proton") is None:
    sys.exit(
        "The local Service Bus endpoint needs python-qpid-proton, which takes a C compiler: see docs/local-service-bus.md."
    )

from devtools.servicebus_endpoint.cli import main

sys.exit(main())
