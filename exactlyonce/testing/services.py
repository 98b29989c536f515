"""Services in the place of those that an application calls: functions, and the trouble that a test makes between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Request:
    """A try of a call, as the service gets it.

    Attributes:
        method: of the request.
        path: below the `base` of the `Api`, with the query.
        key: idempotency key, the same in every try and copy of the call.
        body: JSON; None for none.
        headers: all of them, credentials included, so they are not shown.
    """

    method: str
    path: str
    key: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of a service.

    Attributes:
        status: code of HTTP.
        body: JSON, or text where the header `Content-Type` says that it is not JSON; None for none.
        headers: of the answer, such as `Retry-After`.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Service = Callable[[Request], Response]
"""Carries a request out. It may raise `OSError`, as where nobody answers: what it did before then is done."""

Trouble = Literal["down", "lost"] | timedelta | Response
"""Trouble of one try.

"down": the request does not arrive. "lost": it is carried out, and its answer is lost. A time: the answer takes so long, and is
lost if that is longer than the `timeout` of the `Api`. A response: it comes in place of the service's; nothing is carried out.
"""
