"""Retries with a limit, and a limit on request units per second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from spark_jobs.source.account import refusal

Result = TypeVar("Result")

_NOT_NOW: Final = frozenset({410, 429, 449})
"""Throttled, a moving partition, or a conflict with another request: the request was not applied."""
_PERHAPS: Final = frozenset({408, 500, 502, 503, 504})
"""The service does not know whether the request was applied, or is unreachable."""
_ANSWERED: Final = (CosmosHttpResponseError, CosmosBatchOperationError)
_RETRY_AFTER: Final = "x-ms-retry-after-ms"


def is_refused_for_now(error: BaseException) -> bool:
    """Whether a request was refused for the moment, so that even a write may be sent again."""
    return isinstance(error, _ANSWERED) and error.status_code in _NOT_NOW


def is_without_answer(error: BaseException) -> bool:
    """Whether a request has no answer: a read may be sent again, a write may have been applied."""
    if isinstance(error, _ANSWERED):
        return error.status_code in _PERHAPS
    # No reply, or a truncated one; the status of such an error is not the service's.
    return isinstance(error, AzureError) and not isinstance(error, ClientAuthenticationError)


@dataclass(frozen=True, slots=True)
class Patience:
    """Number of sends of a request, and the waits in between.

    Attributes:
        sends: most sends of one request.
        first: seconds before the second send; doubled for each that follows.
        longest: most seconds before a send, unless the service asks for more.
    """

    sends: int = 9
    first: float = 0.1
    longest: float = 5.0

    def wait(self, sent: int, error: BaseException) -> float:
        """Seconds to wait after so many sends: at least as long as the service asks."""
        headers = getattr(error, "headers", None) or {}
        asked = float(headers.get(_RETRY_AFTER, 0)) / 1000
        return max(asked, min(self.longest, self.first * 2.0 ** (sent - 1)))


def insist(
    request: Callable[[], Result],
    what: str,
    *,
    passes: Callable[[BaseException], bool],
    patience: Patience,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Send a request until it is answered, or patience is exhausted.

    Args:
        request: sends it; may raise errors of the SDK.
        what: name of what is asked for, for an error.
        passes: whether an error is worth another send; all further errors are raised unchanged.
        patience: number of sends, and waits.

    Raises:
        AccountError: the last send was not answered.
        AzureError: an error that does not pass.
    """
    sent = 1
    while True:
        try:
            return request()
        except AzureError as error:  # noqa: PERF203  # It is why there is a loop.
            if not passes(error):
                raise
            if sent >= patience.sends:
                raise refusal(error, what) from None
            sleep(patience.wait(sent, error))
            sent += 1


class Allowance:
    """A limit on request units per second: the next request waits for the units spent.

    Args:
        rate: RU per second; None for no limit.
        clock: seconds from any beginning.
    """

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()

    def spend(self, units: float) -> None:
        """Note the charge of a request, which its reply gives."""
        if self._rate is not None:
            self._free_at = max(self._free_at, self._clock()) + units / self._rate

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        if (left := self._free_at - self._clock()) > 0:
            self._sleep(left)
