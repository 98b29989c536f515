"""Exit codes of jobs for schedulers, and the errors behind them."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, TextIO

from exactlyonce.errors import ConfigurationError, ExactlyOnceError


class Exit(IntEnum):
    """Exit code of a job; docs and schedulers rely on the numbers."""

    DONE = 0
    """Done; an audit found nothing."""
    FINDINGS = 1
    """An audit has findings."""
    CONFIGURATION = 2
    """The configuration or the usage is wrong; nothing was done. argparse ends with the same code."""
    ACCOUNT = 3
    """The account cannot be reached or refuses; the job may be run again."""
    UNSAFE = 4
    """Refused for safety, such as a retention too short; nothing was deleted."""
    INTERNAL = 70
    """A bug, or a failure of Spark; the trace is on the error output."""


class AccountError(ExactlyOnceError):
    """The account cannot be reached, or refuses what the job needs."""


class UnsafeError(ExactlyOnceError):
    """The job could break the guarantee, so it did nothing."""


def exit_of(error: BaseException) -> Exit:
    """The exit code of a job that raised an error.

    >>> exit_of(AccountError("The account does not answer."))
    <Exit.ACCOUNT: 3>
    """
    match error:
        case ConfigurationError():
            return Exit.CONFIGURATION
        case AccountError():
            return Exit.ACCOUNT
        case UnsafeError():
            return Exit.UNSAFE
        case _:
            return Exit.INTERNAL


_KINDS: Final[Mapping[str, type[ExactlyOnceError]]] = {
    "AccountError": AccountError,
    "ConfigurationError": ConfigurationError,
    "RangeSplit": AccountError,
    "UnsafeError": UnsafeError,
}
_IN_A_TRACE: Final = re.compile(rf"^(?:\S+\.)?(?P<kind>{'|'.join(_KINDS)}): (?P<sentence>.+)$", re.MULTILINE)


def raised_by_a_task(error: BaseException) -> ExactlyOnceError | None:
    """The error of ours that a task of Spark raised; None if it raised another. Spark gives the driver the trace only."""
    found = _IN_A_TRACE.search(str(error))
    return None if found is None else _KINDS[found["kind"]](found["sentence"])


def ending(job: Callable[[], Exit], errors: TextIO | None = None) -> Exit:
    """Run a job and print its error, if it raises one: an error of ours as a sentence, others with their trace.

    Args:
        errors: stream for the error; the error output by default.
    """
    try:
        return job()
    except Exception as error:  # Python itself would end with 1, which means findings.
        ours = error if isinstance(error, ExactlyOnceError) else raised_by_a_task(error)
        code = Exit.INTERNAL if ours is None else exit_of(ours)
        if code is Exit.INTERNAL:
            traceback.print_exception(error, file=errors or sys.stderr)
        else:
            print(ours, file=errors or sys.stderr)
        return code
