"""Runs a module, and ends with the process that started it, even if that was killed: `python -m exactlyonce_dev.tied MODULE …`.

The starter keeps the other end of stdin open, and writes nothing.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from typing import Final

_GRACE_SECONDS: Final = 15


def main() -> None:
    """Run the module that the first argument names, with the others."""
    tie = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # The module, and what it starts, find an empty stdin.
    threading.Thread(target=_end_with_starter, args=(tie,), daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_with_starter(tie: int) -> None:
    while os.read(tie, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)  # It ends earlier where it heeds the signal: this thread is a daemon.
    os._exit(1)


if __name__ == "__main__":
    main()
