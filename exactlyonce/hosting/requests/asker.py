"""The asker: processes a message without a queue, and returns its committed answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Literal
from uuid import RFC_4122, UUID

from exactlyonce.errors import ConfigurationError, InvalidKey, InvalidMessage, KeyReused
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import encode
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import MAX_ATTRIBUTE_LENGTH, MAX_SOURCE_LENGTH, Envelope, message_key, unfit
from exactlyonce.values.frozen_json import Json, canonical, read_json

# Keys of requests: the header `Idempotency-Key`, by which a retry is recognized.


HEADER: Final = "Idempotency-Key"
Keys = Literal["any", "uuid7"]
"""The keys to take: any, or only keys that carry their time."""
AHEAD: Final = timedelta(minutes=5)
"""The most by which the time of a key may be ahead of the store's."""

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
    sent = (header or "").strip(" \t")
    if not sent:
        raise InvalidKey(f"The header {HEADER} is missing: without it, a retry would be another request. {_RULE}")
    key = sent
    if sent.startswith('"'):
        quoted = _STRUCTURED.fullmatch(sent)
        key = "" if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1])
    if not _BARE.fullmatch(key):
        raise InvalidKey(f"The header {HEADER} is no key. {_RULE}")
    return key


def source_of(caller: str | None) -> str:
    """The source of a caller's requests: the caller's id, or a hash of an id that is too long or unfit for a log."""
    if not caller:
        return "http"
    if _CALLER.fullmatch(caller):
        return f"http:{caller}"
    return f"http/sha256:{hashlib.sha256(caller.encode(errors='surrogatepass')).hexdigest()}"


def time_of(key: str, now: datetime) -> datetime:
    """The time that a key carries.

    Raises:
        InvalidKey: the key is no UUID of version 7, or the time is more than five minutes ahead of `now`, the store's.
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


# Fingerprints of requests: equal for retries, different for different requests.


def fingerprint(method: str, path: str, body: bytes) -> str:
    """SHA-256 of a request, in hex.

    The hash covers the body as sent, not as the application reads it: a retry across a deploy that adds a default to the
    message is the same request. Blanks, the order of properties and the spelling of numbers (1, 1.0, 1e0) do not count. Nor
    does the query, since keys of the host travel there.
    """
    sent = "\n".join((method.upper(), path, ""))
    return hashlib.sha256(sent.encode(errors="surrogatepass") + _canonical(body)).hexdigest()


def _canonical(body: bytes) -> bytes:
    try:
        return Json.of(canonical(read_json(body))).text.encode()
    except ValueError:
        return body


MOST_ASKED: Final = 128
"""Most characters of a fingerprint, which is stored with every answer."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The committed answer to a request.

    Attributes:
        body: JSON; None for no body.
        replayed: whether the request had been carried out before.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str | None
    replayed: bool


@dataclass(frozen=True, slots=True)
class Request:
    """The identity of a request, as for `ExactlyOnce.ask`. Raises `ValueError` if an attribute is impossible."""

    key: str
    fingerprint: str
    source: str
    time: datetime | None

    def __post_init__(self) -> None:
        for name, text, longest in (
            ("key", self.key, MAX_ATTRIBUTE_LENGTH),
            ("source", self.source, MAX_SOURCE_LENGTH),
        ):
            if (why := unfit(text, longest)) is not None:
                raise ValueError(f"The {name} of a request {why}.")
        if not 0 < len(self.fingerprint) <= MOST_ASKED:
            raise ValueError(f"The fingerprint of a request has 1 to {MOST_ASKED} characters.")
        if self.time is not None and self.time.utcoffset() is None:
            raise ValueError("The time of a request has no time zone. Give it one.")


@dataclass(frozen=True)
class Asker:
    """Asks entities, in the same lanes as messages from queues.

    Attributes:
        ready: awaited before the present is read.
        now: the present, by the store's time.
    """

    receiver: Receiver
    ready: Callable[[], Awaitable[None]]
    now: Callable[[], datetime]

    async def ask(self, entity: Entity[Any], message: object, request: Request) -> Answered:
        """Process a message without a queue; documented at `ExactlyOnce.ask`."""
        name, data = encoded(message)
        await self.ready()
        time = request.time or self.now()
        envelope = Envelope(request.source, request.key, name, data, time, asked=request.fingerprint)
        processed = await self.receiver.ask(envelope, entity)
        answer = processed.answer
        # The committed request may differ from this request, even if both shared the commit.
        if answer is None or not answer.is_to(request.fingerprint):
            about = message_key(request.source, request.key)
            raise KeyReused(f"Request {about} differs from an earlier request with its key. Nothing was changed.")
        return answered(answer, replayed=processed.before)


def answered(answer: Answer, *, replayed: bool) -> Answered:
    """A committed answer, for its caller."""
    return Answered(answer.status, answer.headers, answer.body, replayed)


def encoded(message: object) -> tuple[str, Json]:
    """As `encode`; for a message without a JSON form raises `InvalidMessage`, too."""
    try:
        return encode(message)
    except ValueError as error:
        text = f"The {type(message).__name__} has a value that JSON does not have, such as NaN."
        raise InvalidMessage(text) from error


def require_answers(entity: Entity[Any]) -> None:
    """Raise `ConfigurationError` unless the entity's strategy keeps answers."""
    if not entity.strategy.answers:
        raise ConfigurationError(
            f"{entity} cannot answer requests: Outbox(), Colocated() and VersionStream() keep answers. Give it one of them, or "
            "send the message to its queue."
        )
