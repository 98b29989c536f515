"""The end of a command whose output nobody reads any more, as after `| head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from exactlyonce.cli.exit_codes import NOT_DONE


def piped(run: Callable[[], int]) -> int:
    """Run a command and return its exit code: `NOT_DONE`, without a trace, once its reader has closed the pipe."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the interpreter would try to write what is left, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_DONE
    return code
