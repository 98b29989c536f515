"""Calls to other services: address, request, and the reply to the calling entity."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, JsonValue

from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.handling.messages import decode, message_type, require_model
from exactlyonce.handling.routes import Destination
from exactlyonce.records.ledger import CALL_IS
from exactlyonce.values.declarations import (
    kind_of,
    require,
    require_callable,
    require_parameters,
    require_text,
    require_tuple,
)
from exactlyonce.values.envelope import Envelope, Extensions, message_key, require_name, unfit
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.round_trips import shown

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
MOST_TAG: Final = 1024
"""Most characters of a tag."""
_PATH: Final = re.compile(r"/[!-\"$-\[\]-~]*")  # Printable ASCII but for blanks, `#` and `\`.
_BASE: Final = re.compile(r"[^\x00-\x20\x7f#?\\]+")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

Credentials = Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Api:
    """A service for `context.call`. The application declares it among its destinations.

    Attributes:
        name: logical name of the queue in which calls wait, like the name of a destination.
        base: the address before every path, such as `https://api.example.com/v1`.
        key_lifetime: shortest time for which the service remembers an idempotency key. No try starts so late as to arrive
            afterwards.
        timeout: longest duration of a try.
        clock_tolerance: largest difference between the clocks of two processes.
        most_at_once: most tries of a process at a time.
        credentials: function for the headers that authenticate a try, called at each try; may be async. The headers are neither
            stored nor logged.
        key_header: the header for the idempotency key.
        headers: names of the answer's headers that its reply carries.
        most_bytes: most bytes of an answer's body in its reply.

    Raises:
        ConfigurationError: an attribute is not valid.
    """

    name: str
    base: str
    key_lifetime: timedelta
    timeout: timedelta = timedelta(seconds=30)
    clock_tolerance: timedelta = timedelta(minutes=1)
    most_at_once: int = 16
    credentials: Credentials | None = field(default=None, repr=False)
    key_header: str = "Idempotency-Key"
    headers: tuple[str, ...] = ("Content-Type", "ETag", "Location")
    most_bytes: int = 16 * 1024

    def __post_init__(self) -> None:
        about = f"Api {self.name!r}"
        object.__setattr__(self, "name", require_name("The name of an Api", self.name))
        require(f"base= of {about}", self.base, str, "an address, such as https://api.example.com/v1")
        for name in ("key_lifetime", "timeout", "clock_tolerance"):
            require(f"{name}= of {about}", getattr(self, name), timedelta, "a timedelta")
        for name in ("most_at_once", "most_bytes"):
            require(f"{name}= of {about}", getattr(self, name), int, "a whole number")
        if self.credentials is not None:
            require_callable(f"credentials= of {about}", self.credentials, "a function that returns headers")
            require_parameters(f"credentials= of {about}", self.credentials, ())
        require_text(f"key_header= of {about}", self.key_header)
        require_tuple(f"headers= of {about}", self.headers, '("ETag",)')
        for header in self.headers:
            require_text(f"A name in headers= of {about}", header)
        if not _is_base(self.base):
            raise ConfigurationError(
                f"{about}: base= is an address such as https://api.example.com/v1, without query or user. Give credentials "
                "with credentials=."
            )
        if self.timeout <= timedelta(0) or self.clock_tolerance < timedelta(0):
            raise ConfigurationError(f"{about}: timeout= has to be positive, and clock_tolerance= not negative.")
        if self.key_lifetime <= self.timeout + self.clock_tolerance:
            raise ConfigurationError(
                f"{about} knows keys for {self.key_lifetime}. That has to be longer than timeout= and clock_tolerance= "
                f"together, {self.timeout + self.clock_tolerance}, or no try could be made."
            )
        if self.most_at_once < 1 or self.most_bytes < 0:
            raise ConfigurationError(f"{about}: most_at_once= has to be at least 1, and most_bytes= not negative.")
        if not all(_HEADER.fullmatch(item) for item in (self.key_header, *self.headers)):
            raise ConfigurationError(f"{about}: key_header= and headers= are names of headers.")

    @property
    def queue(self) -> Destination:
        """The queue in which calls wait."""
        return Destination(self.name)

    def last_start(self, made: datetime, lifetime: timedelta) -> datetime:
        """The latest start of the last try of a call.

        Args:
            made: time of the call, before its first try.
            lifetime: lifetime of its key in the process that made the call. The shorter lifetime counts.
        """
        return made + min(self.key_lifetime, lifetime) - self.timeout - self.clock_tolerance

    def address(self, path: str) -> str:
        """The address of a path of the service. Raises `ValueError`: the path could leave the base."""
        place = unquote(path.partition("?")[0])
        if not _PATH.fullmatch(path) or path.startswith("//") or {".", ".."} & set(re.split(r"[/\\]", place)):
            raise ValueError(
                f"A path of {self.name} begins with one /, has printable ASCII characters but blanks, # and \\, and no part "
                "that is . or .. there. Percent-encode further characters with urllib.parse.quote."
            )
        return self.base.rstrip("/") + path


class Reply(BaseModel):
    """The reply to a call: a message to the calling entity. Derive a class and register it with `@message`.

    Attributes:
        tag: the tag of the call.
        outcome: "answered" with a final status; or "unknown": the call may have been carried out or not, and no try follows.
        status: status code of the answer; None if the outcome is unknown.
        headers: headers of the answer, as far as the `Api` names them.
        body: JSON where the answer is JSON, else text; None if the body is absent or cut. A number with more digits than a
            double keeps is a `Decimal`, or an `int`. JSON whose meaning depends on the parser, as with a repeated property, is
            text.
        undecoded: whether the body could not be decoded, since its charset is unknown or differs from its `Content-Type`. Then
            `\\xe9` in the text stands for a byte outside UTF-8.
        cut: whether the body was left out, since it is larger than `most_bytes` of the `Api`, or than its queue takes.
        tried_before: whether an earlier try went out, or may have gone out, with unknown outcome. Tries of a copy of the call,
            which a queue makes at times, do not count.
    """

    model_config = ConfigDict(frozen=True)

    tag: str
    outcome: Literal["answered", "unknown"]
    status: int | None = None
    headers: dict[str, str] = {}
    body: Any = None
    undecoded: bool = False
    cut: bool = False
    tried_before: bool = False

    @property
    def ok(self) -> bool:
        """Whether the service carried out the call: a status from 200 to 299.

        If False, an earlier try may still have been carried out: see `refused`.
        """
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004

    @property
    def refused(self) -> bool:
        """Whether the service refused the call, and no try of unknown outcome went before.

        If neither `ok` nor `refused`, the call may have been carried out or not. A service that looks for the key first, before
        anything in front of it can refuse the request, answers every try alike; then a status that is not `ok` will do.
        """
        return self.outcome == "answered" and not self.ok and not self.tried_before


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the queue of its `Api`, still to be made. It carries no credentials.

    Attributes:
        then: type of the reply.
        replies: logical name of the queue for the reply.
        version: version of the caller, produced by the commit of the call.
        key_lifetime: lifetime of the key in seconds: another process may no longer, or not yet, have the service.
    """

    api: str
    method: str
    path: str
    then: str
    replies: str
    tag: str
    version: int
    key_lifetime: float
    body: JsonValue = None

    @property
    def extensions(self) -> Extensions:
        """All but the body, as an attribute of the envelope."""
        return ((CALL_IS, Json.of({item: value for item, value in asdict(self).items() if item != "body"}).text),)


def _is_base(address: str) -> bool:
    """Whether paths can be appended to an address. The parser drops line ends, and checks a port only on access."""
    try:
        base = urlsplit(address)
        whole = base.scheme in ("https", "http") and bool(base.hostname) and "@" not in base.netloc and base.port != 0
    except ValueError:
        return False
    return whole and _BASE.fullmatch(address) is not None


def call_of(
    api: Api, method: str, path: str, body: object, *, then: type, replies: str, tag: str, version: int
) -> Call:
    """A call, checked where it is made.

    Raises:
        ConfigurationError: the body is neither a model nor None, or `then` is no type of replies.
        HandlerFailed: the body holds NaN or an infinity.
        ValueError: the service has no such method or path, or the tag is too long or has control characters.
    """
    if not (isinstance(then, type) and issubclass(then, Reply)):
        raise ConfigurationError(f"{kind_of(then)} is no type of replies. Give a class that is derived from Reply.")
    if method not in METHODS:
        raise ValueError(f"The method of a call is one of {', '.join(METHODS)}; this one is {method!r}.")
    if len(tag) > MOST_TAG:
        raise ValueError(f"A tag has at most {MOST_TAG} characters; this one has {len(tag)}.")
    if (why := unfit(tag)) is not None:
        raise ValueError(f"The tag of a call {why}.")
    api.address(path)
    content: Any = None
    if body is not None:
        require_model(type(body), "The body of a call")
        content = shown(body)
    lifetime = api.key_lifetime.total_seconds()
    return Call(api.name, method, path, message_type(then).name, replies, tag, version, lifetime, content)


def read_call(envelope: Envelope) -> Call:
    """A queued call; without its body if a blob holds the body. Raises `InvalidMessage`: the message is no call."""
    about = message_key(envelope.source, envelope.id)
    try:
        about_call = json.loads(str(dict(envelope.extensions)[CALL_IS]))
        data = Json.of({**about_call, "body": envelope.data.value})
    except (KeyError, ValueError, TypeError, RecursionError):
        raise InvalidMessage(
            f"Message {about} does not say what to call. Only context.call sends to the queue of an Api."
        ) from None
    return decode(Call, data, source=envelope.source, id=envelope.id)
