"""Answers to requests, and digests of messages, as what is committed holds them."""

from __future__ import annotations

from collections.abc import Iterable

from exactlyonce.records.answers import Answer
from exactlyonce.records.companions import ColocatedRecord, Companion, StreamEntry

Contents = tuple[tuple[str, str], ...]
"""Key and `Envelope.content` of each message."""
Answers = tuple[tuple[str, Answer], ...]
"""Key and committed answer of each request."""


def contents_in(committed: Iterable[ColocatedRecord]) -> Contents:
    """The contents of messages that records hold."""
    return tuple((one.message, one.content) for one in committed if one.content is not None)


def answers_beside(companions: Iterable[Companion]) -> Answers:
    """The answers that companions hold."""
    records = (one for one in companions if isinstance(one, ColocatedRecord | StreamEntry))
    return tuple((one.message, one.answer) for one in records if one.answer is not None)
