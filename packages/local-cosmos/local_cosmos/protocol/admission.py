"""What a request must be before anybody looks at what it says: readable, not endless, signed not long ago."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from aiohttp import StreamReader
from aiohttp.web import RequestPayloadError

from local_cosmos.semantics.errors import RefusedError, bad_request, too_large

LARGEST_BODY: Final = 8 * 1024 * 1024
"""Bytes that are read at all; from 2 MB on the service refuses a request anyway, and says so per operation."""

LONGEST_SKEW_SECONDS: Final = 15 * 60
"""Documented: the date of a signature may differ from the server's time by so much."""


async def read_body(content: StreamReader) -> bytes:
    """The whole body of a request.

    Raises:
        RefusedError: 400 or 413; it is not sent as it was announced, or too large.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_BODY:
                raise too_large()
    except RequestPayloadError as error:
        raise bad_request("The body is not sent as its headers announce it.") from error
    return b"".join(pieces)


def require_recent(date: str, now: Callable[[], float] = time.time) -> None:
    """Accept the date that a request is signed with, by the machine's time: clients do not know of a clock that tests move.

    Raises:
        RefusedError: 401 or 403; not a date, or too far from now.
    """
    try:
        signed = _seconds(date)
    except (ValueError, OverflowError) as error:
        raise RefusedError(401, f"The request needs an HTTP date in x-ms-date or Date; it is {date!r}.") from error
    if abs(signed - now()) > LONGEST_SKEW_SECONDS:
        raise RefusedError(
            403, f"The authorization token is not valid at the current time: it is signed at {date}. Check the clock."
        )


@lru_cache(maxsize=256)
def _seconds(date: str) -> float:
    """Seconds since 1970; many requests bear the same date, which has whole seconds."""
    return parsedate_to_datetime(date).timestamp()
