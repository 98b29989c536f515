"""Answers to requests, as entries and records keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import with_config

from exactlyonce.values.shapes import EXACT

LARGE: Final = 2 * 1024
"""Bytes above which an answer is not kept in a document that other commits write again."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the request that a message came by. It is text, so that every retry gets the same bytes.

    Attributes:
        status: status code of HTTP.
        headers: names and values.
        body: JSON; None for none.
        asked: fingerprint of the request; empty while its handler runs.
    """

    status: int = 204
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    asked: str = ""

    @property
    def size(self) -> int:
        """Bytes of body and headers."""
        return len((self.body or "").encode()) + sum(len(name) + len(value) for name, value in self.headers)

    @property
    def is_large(self) -> bool:
        """Whether it is kept apart from what other commits write."""
        return self.size > LARGE

    def is_to(self, fingerprint: str) -> bool:
        """Whether it answers the request with this fingerprint, and not another one that had its key."""
        return self.asked == fingerprint
