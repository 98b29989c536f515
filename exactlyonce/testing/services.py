"""Services of a test, in place of the services that an application calls, and their troubles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Request:
    """A try of a call, as the service gets it.

    Attributes:
        method: the HTTP method.
        path: the path below the `base` of the `Api`, with the query.
        key: idempotency key, the same in every try and copy of the call.
        body: JSON; None for no body.
        headers: all headers, credentials included, so they are not shown.
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
        status: HTTP status code.
        body: JSON, or text if the header `Content-Type` names another type; None for no body.
        headers: the headers, such as `Retry-After`.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Service = Callable[[Request], Response]
"""Carries a request out. May raise `OSError`, as for a service that does not answer; effects before the exception stay."""

Trouble = Literal["down", "lost"] | timedelta | Response
"""Trouble of one try.

"down": the request does not arrive. "lost": carried out, but the answer is lost. A time: the delay of the answer, which is
lost after the `timeout` of the `Api`. A response: comes in place of the service's, and nothing is carried out.
"""
