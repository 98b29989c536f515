"""Keys of requests: the header `Idempotency-Key`, by which a retry is known."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timedelta, timezone
from typing import Final, Literal
from uuid import RFC_4122, UUID

from exactlyonce.errors import InvalidKey

HEADER: Final = "Idempotency-Key"
Keys = Literal["any", "uuid7"]
"""Which keys are taken: any, or only those that carry their time."""
AHEAD: Final = timedelta(minutes=5)
"""How far the time of a key may be ahead of the store's."""

_STRUCTURED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_BARE: Final = re.compile(r"[ -~]{1,255}")
_TIMED: Final = 7
_CALLER: Final = re.compile(r"[ -~]{1,255}")
_RULE: Final = "It is a string of 1 to 255 printable ASCII characters, with or without quotes."


def read_key(header: str | None) -> str:
    """The key of a request, sent as a string of structured fields (RFC 9651) or bare, as most clients do.

    Raises:
        InvalidKey: the header is missing, or is no key.
    """
    given = (header or "").strip(" \t")
    if not given:
        raise InvalidKey(f"The header {HEADER} is missing: without it, a retry would be another request. {_RULE}")
    key = given
    if given.startswith('"'):
        quoted = _STRUCTURED.fullmatch(given)
        key = "" if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1])
    if not _BARE.fullmatch(key):
        raise InvalidKey(f"The header {HEADER} is no key. {_RULE}")
    return key


def source_of(caller: str | None) -> str:
    """The source of a caller's requests: the caller's id, or a hash of one that is too long or not fit for a log."""
    if not caller:
        return "http"
    if _CALLER.fullmatch(caller):
        return f"http:{caller}"
    return f"http/sha256:{hashlib.sha256(caller.encode(errors='surrogatepass')).hexdigest()}"


def time_of(key: str, now: datetime) -> datetime:
    """The time that a key carries.

    Args:
        key: of a request.
        now: the present, by the store's time.

    Raises:
        InvalidKey: it is no UUID of version 7, or its time is more than five minutes ahead.
    """
    try:
        uuid = UUID(key)
    except ValueError:
        uuid = None
    if uuid is None or uuid.version != _TIMED or uuid.variant != RFC_4122 or str(uuid) != key.lower():
        raise InvalidKey(f"The header {HEADER} has to be a UUID of version 7, which carries the time of the request.")
    seconds = (uuid.int >> 80) / 1000
    if seconds - now.timestamp() > AHEAD.total_seconds():
        raise InvalidKey(f"The time of the {HEADER} is more than {AHEAD} ahead. Set the clock of the client.")
    return datetime.fromtimestamp(seconds, timezone.utc)
