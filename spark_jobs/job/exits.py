"""How a job ends: exit codes for schedulers, and the errors behind them."""

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
    """An audit found something."""
    CONFIGURATION = 2
    """The configuration or the usage is wrong; nothing was done. argparse ends with the same code."""
    ACCOUNT = 3
    """The account cannot be reached or refuses; the job may be run again."""
    UNSAFE = 4
    """Refused for safety, such as a retention too short; nothing was deleted."""
    INTERNAL = 70
    """A bug, or trouble of Spark's own; its trace is on the error output."""


class AccountError(ExactlyOnceError):
    """The account cannot be reached, or refuses what the job needs."""


class UnsafeError(ExactlyOnceError):
    """What was asked for could break the guarantee, so nothing was done."""


def exit_of(error: BaseException) -> Exit:
    """The code that an error ends a job with.

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


def told_by_a_task(error: BaseException) -> ExactlyOnceError | None:
    """What a task of Spark's told before it failed; None if it was not one of ours. Spark gives the driver its trace only."""
    found = _IN_A_TRACE.search(str(error))
    return None if found is None else _KINDS[found["kind"]](found["sentence"])


def ending(job: Callable[[], Exit], errors: TextIO | None = None) -> Exit:
    """Run a job and tell how it ended: known errors by their sentence, others by their trace.

    Args:
        job: does the work and returns its code.
        errors: where that goes; the error output by default.
    """
    try:
        return job()
    except Exception as error:  # Python itself would end with 1, which means findings.
        told = error if isinstance(error, ExactlyOnceError) else told_by_a_task(error)
        code = Exit.INTERNAL if told is None else exit_of(told)
        if code is Exit.INTERNAL:
            traceback.print_exception(error, file=errors or sys.stderr)
        else:
            print(told, file=errors or sys.stderr)
        return code
