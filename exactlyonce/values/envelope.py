"""The envelope of a message: CloudEvents 1.0, in the JSON event format on the wire.

Inside the library an envelope is a frozen value that every receiver can read: `unfit` is the rule for its attributes. `read`
and `to_json` are the edge, where the official `cloudevents` package checks the attributes, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from random import Random
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import UUID, uuid5

from cloudevents.core.exceptions import BaseCloudEventException
from cloudevents.core.v1.event import CloudEvent

from exactlyonce.errors import ConfigurationError, MalformedMessage
from exactlyonce.values.declarations import require_text
from exactlyonce.values.frozen_json import MAX_NESTING, Json, canonical, read_json

# Identities of messages, entities and outputs. Ids and chance derive from the message and its entity: a message that is
# handled again has them again.


_NAMESPACE: Final = UUID("0b4f3a2e-7c55-5d0c-9d4e-2f1f0a6c9b11")
"""Root of all derived ids. Changing it would make every redelivered message publish under new ids."""

_CANONICAL: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ASCII: Final = json.JSONEncoder(separators=(",", ":"))

LONGEST_ID: Final = 255
"""Characters of a document id that every SDK and tool takes. The service takes 1,023 bytes, always enough for them."""
ID_RULE: Final = f"1 to {LONGEST_ID} characters, none of / \\ ? # nor tabs or line ends, and no space at its end"
_FORBIDDEN_IN_ID: Final = re.compile(r"[/\\?#\t\r\n\ud800-\udfff]|[ ]\Z")  # By the SDK, the service, or UTF-8.

MAX_KEY_BYTES: Final = 2048
"""Most bytes of a key, which is the partition key of the library container: the service takes no more."""
LONGEST_READABLE: Final = 1024
"""Characters of a source with readable parts. Percent-encoding takes nine for a Chinese character, and twelve for an emoji."""
LONGEST_TYPE: Final = 256
"""Characters of an entity type's name in a source."""
MAX_SOURCE_LENGTH: Final = 3072
"""Longest source. An encoded key has at most 2,731 characters, after its type and a separator."""
_HASHED: Final = 12
"""Bytes of a message's hash."""
_ENCODED: Final = "=~"
"""Beginning of an encoded key: no value of a partition key is written so."""

PartitionValue = str | int | float | bool


def is_document_id(id: object) -> bool:
    """Whether a value may be the id of a document in Cosmos DB: a string as `ID_RULE` says."""
    return isinstance(id, str) and 0 < len(id) <= LONGEST_ID and not _FORBIDDEN_IN_ID.search(id)


def message_key(source: str, id: str) -> str:
    """A message's identity as a string: source, `/`, id; `%` and `/` in either are percent-encoded.

    >>> message_key("web", "m/42")
    'web/m%2F42'
    """
    return f"{_encode(source)}/{_encode(id)}"


def message_hash(key: str) -> str:
    """The hash of a message's key: 96 bits in base 64. Among 10^9 messages two share a hash in one of 10^11 cases."""
    return b64encode(hashlib.sha256(key.encode()).digest()[:_HASHED]).decode()


@dataclass(frozen=True, eq=False)
class EntityRef:
    """The name of an entity: its type, the values of its full partition key, its document id.

    References are equal if their keys are: to Python `True` and 1 are equal, to the service they differ. The class has no
    slots, so that an instance may keep `key` and `source`, which are used ten times per message.
    """

    type: str
    partition: tuple[PartitionValue, ...]
    id: str

    @cached_property
    def key(self) -> str:
        """Canonical JSON array of type, partition key values and id: the entity's partition in the library container."""
        return _CANONICAL.encode([self.type, *self.partition, self.id])

    @cached_property
    def source(self) -> str:
        """The CloudEvents source of everything this entity sends; no two entities of a type share a source.

        Parts are percent-encoded. A value that is no string follows `=`, which no encoded string has. The partition is left out
        where it equals the id, as for most entities. If the result would be too long, the type is followed by `=~` and the key
        in base64, with four characters for a Chinese character. A hash would not do: a request to send again finds the entity
        by its source alone.

        >>> EntityRef("order", ("eu", 7), "o-1").source
        'order/eu/=7/o-1'
        >>> EntityRef("order", ("中" * 200,), "中" * 200).source[:20]
        'order/=~WyJvcmRlciIs'
        """
        partition = () if self.partition == (self.id,) else self.partition
        type = quote(self.type, safe="")
        readable = "/".join((type, *map(_part, partition), quote(self.id, safe="")))
        if len(readable) <= LONGEST_READABLE:
            return readable
        return f"{type}/{_ENCODED}{urlsafe_b64encode(self.key.encode()).decode().rstrip('=')}"

    @classmethod
    def of_source(cls, source: str) -> EntityRef:
        """The entity that sends under a CloudEvents source. Raises `ValueError` if no entity does."""
        type, *key = source.split("/")
        values = tuple(map(_value, key)) if not source.startswith(_ENCODED, len(type) + 1) else _decoded(key[0])
        ref = cls(unquote(type), values[:-1] or values, str(values[-1])) if values else None
        if ref is None or ref.source != source:
            raise ValueError(f"{source!r} is not the source of an entity.")
        return ref

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, EntityRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class Origin:
    """A message handled for an entity: the origin of ids and chance."""

    entity: EntityRef
    message: str

    def output_id(self, index: int) -> str:
        """Id of the index-th output: the same in every attempt, so that receivers recognize copies."""
        return derived_id(self.entity, message_hash(self.message), index)

    def new_id(self, index: int) -> str:
        """Id of the index-th call of `new_id`."""
        return self._derive("id", index)

    def random(self) -> Random:
        """A generator of random numbers seeded by the origin. Not for secrets."""
        return Random(self._derive("random", 0))

    def _derive(self, purpose: str, index: int) -> str:
        return str(uuid5(_NAMESPACE, _ASCII.encode([self.entity.key, self.message, purpose, index])))


def derived_id(entity: EntityRef, cause: str, index: int) -> str:
    """Id of an entity's index-th output for the message whose hash is `cause`. Every SQL engine has the needed functions, so
    that an audit can compute the outputs of a message."""
    return hashlib.sha256(f"{entity.key}\n{cause}\n{index}".encode()).hexdigest()[:32]


def _part(value: PartitionValue) -> str:
    return quote(value, safe="") if isinstance(value, str) else f"={quote(_ASCII.encode(value), safe='')}"


def _value(part: str) -> PartitionValue:
    """The value of a part. A part in no valid form gives a value that is written otherwise than the part."""
    if not part.startswith("="):
        return unquote(part)
    with suppress(ValueError, RecursionError):
        value = json.loads(unquote(part[1:]))
        if isinstance(value, (bool, int, float)):
            return value
    return part


def _decoded(part: str) -> tuple[PartitionValue, ...]:
    """The values of a key in base64; none if the part is no key."""
    with suppress(ValueError, RecursionError):
        key = json.loads(urlsafe_b64decode(f"{part.removeprefix(_ENCODED)}==="))
        if isinstance(key, list) and all(isinstance(value, (str, bool, int, float)) for value in key):
            return tuple(key[1:])
    return ()


def renewed_id(entity: str, message: str, time: datetime) -> str:
    """Id under which a message, parked under the key of an entity, is sent as a new message of this time: no id is sent with
    two times."""
    at = time.astimezone(timezone.utc).isoformat()
    return str(uuid5(_NAMESPACE, _ASCII.encode([entity, message, "renewed", at])))


def _encode(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""Longest envelope that is read. Transports limit the sending, to less on most queues."""

MAX_ATTRIBUTE_LENGTH: Final = 1024
"""Longest `id` and `type`, in characters: they become part of every record."""

_LONGEST: Final[Mapping[str, int]] = {
    "id": MAX_ATTRIBUTE_LENGTH,
    "source": MAX_SOURCE_LENGTH,
    "type": MAX_ATTRIBUTE_LENGTH,
}

MOST_NESTED: Final = MAX_NESTING + 10
"""Levels of an envelope. Data that was read alone, such as a request's body, is some levels deeper in a message."""

DATAREF: Final = "dataref"
MILLISECOND: Final = timedelta(milliseconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, timezone.utc)
STABLE_TIME: Final = "stabletime"
"""Extension attribute: a time that is the same in all copies of a message, as its sender promises."""

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
MAX_TRACESTATE_LENGTH: Final = 512
"""Longest `tracestate` that is passed on: the minimum of W3C Trace Context."""

REQUEUED: Final = "requeued"
"""Extension attribute: how often a message was sent to its queue once more, by the library or by an operator."""
UNEXPLAINED: Final = "unexplained"
"""Extension attribute: how often, among these returns, its queue gave the message up for an unknown reason."""

_REQUIRED_ATTRIBUTES: Final = ("specversion", "id", "source", "type")

_MOST_COUNTED: Final = 1_000_000
"""Far more than a lifetime has room for, and far less than AMQP's integers hold."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HALF: Final = re.compile(r"[\ud800-\udfff]")
_UNFIT: Final = re.compile(f"{_CONTROL.pattern}|{_HALF.pattern}")

_ATTRIBUTE: Final = re.compile(r"[a-z0-9]+")
_LONGEST_SHOWN: Final = 40
_LONGEST_SAID: Final = 300

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):([0-5]\d|60)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_JSON_TYPE: Final = re.compile(r"\s*[\w.+-]+/(?:[\w.-]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)

_UUID7: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_OLDEST_UUID7: Final = 1_577_836_800_000
"""A UUID of version 7 with an earlier time, in milliseconds, counts as untimed: the version is of 2021."""
_NEWEST_UUID7: Final = 4_102_444_800_000
"""The same for this time and later times, from the year 2100 on."""

_NO_ENVELOPE: Final = "The message is not a CloudEvents 1.0 envelope"
_ADVICE: Final = "Correct the sender, or give this queue an adapter for foreign bodies."
_OWN_ATTRIBUTES: Final = frozenset({"specversion", "id", "source", "type", "time", "subject", "datacontenttype"})

Extension = str | int | bool
Extensions = tuple[tuple[str, Extension], ...]
"""Attributes beyond those of every CloudEvent, sorted by name."""


def unfit(text: object, longest: int | None = None) -> str | None:
    """Why a text cannot be an attribute of an envelope, as the end of a sentence such as "The id …"; None if it can.

    Args:
        text: the value of the attribute.
        longest: most characters of an `id`, `source` or `type`, which may not be blank either; None for further attributes.
    """
    if not isinstance(text, str):
        return f"is a {type(text).__name__}, not a string"
    if _UNFIT.search(text):  # Ids are written to logs, and neither stores nor queues take half a pair.
        part = "a control character" if _CONTROL.search(text) else "half a surrogate pair"
        return f"has {part}, which CloudEvents forbids"
    if longest is None:
        return None
    if not text or text.isspace():
        return "is empty, or blank"
    return f"has {len(text)} characters; at most {longest} are allowed" if len(text) > longest else None


def require_name(what: str, name: object, longest: int | None = None) -> str:
    """A declared name as a plain string. Raises `ConfigurationError` unless every receiver can read the name.

    Args:
        what: the beginning of the error.
        name: the declared name.
        longest: most characters of the name; None for a name that is percent-encoded in a source.
    """
    text = require_text(what, name)
    why = unfit(text, longest or LONGEST_TYPE)
    if why is None and longest is None and len(quote(text, safe="")) > LONGEST_TYPE:
        why = f"has more than {LONGEST_TYPE} characters, once it is percent-encoded"
    if why is not None:
        raise ConfigurationError(f"{what} {why}, so no receiver could read its messages. Give it another name.")
    return text


def printable(text: str) -> str:
    """A text from a stranger, made fit for a log."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def written_time(time: datetime) -> str:
    """A time in the form of the wire."""
    text = time.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def milliseconds(time: datetime) -> int:
    """A time in whole milliseconds since 1970, rounded down."""
    return (time - _EPOCH) // MILLISECOND


def time_of(milliseconds: int) -> datetime:
    """A time in milliseconds since 1970."""
    return _EPOCH + milliseconds * MILLISECOND


def microseconds(time: datetime) -> int:
    """A time in microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def moment_of(microseconds: object) -> datetime:
    """A time in microseconds since 1970. Raises `ValueError` if the value is no time."""
    with suppress(OverflowError):
        if type(microseconds) is int:
            return _EPOCH + microseconds * _MICROSECOND
    raise ValueError("a time has to be a number of microseconds since 1970")


def stable_text(since: int) -> str:
    """A time in milliseconds since 1970, as the attribute `STABLE_TIME` has it."""
    return f"{time_of(since).isoformat(timespec='milliseconds')[:-6]}Z"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message: an event in the words of CloudEvents. The pair (`source`, `id`) identifies it.

    Attributes:
        source: the sender, as a URI reference.
        id: unique within the source; an equal id means the same message.
        type: the registered name of the message type, such as `shooting-range.fire-at`.
        data: the message's content.
        time: time at which the message came about; with a time zone.
        subject: the message's subject, for people and routers; the library does not use it.
        extensions: further attributes (`traceparent` and the like) as sorted pairs.
        asked: fingerprint of the request behind the message; None if it came by a queue. It never travels.
        opened: session token of a view that shows the document of an opened request. It never travels.
        key: source and id as a string, made by `message_key`.

    Raises:
        MalformedMessage: a receiver could not read the message, or could not tell it from another message.
    """

    source: str
    id: str
    type: str
    data: Json
    time: datetime | None = None
    subject: str | None = None
    extensions: Extensions = ()
    asked: str | None = None
    opened: str | None = None
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, longest in _LONGEST.items():
            if (why := unfit(getattr(self, name), longest)) is not None:
                raise MalformedMessage(f"The message's {name} {why}.")
        if self.time is not None and self.time.utcoffset() is None:
            raise MalformedMessage("The message's time has no time zone.")
        if self.subject is not None and (why := unfit(self.subject)) is not None:
            raise MalformedMessage(f"The message's subject {why}.")
        for name, value in self.extensions:
            if isinstance(value, str) and (why := unfit(value)) is not None:
                raise MalformedMessage(f"The message's attribute {_shown(name)} {why}.")
            if not isinstance(value, (str, int, bool)):
                raise MalformedMessage(
                    f"The extension attribute {_shown(name)} is neither a string, an integer nor a boolean."
                )
        object.__setattr__(self, "key", message_key(self.source, self.id))

    def to_json(self) -> Json:
        """The envelope in the JSON event format of CloudEvents 1.0, as the package writes it but for blanks and escapes.
        Raises `CloudEventValidationError`: the package rejects the attributes."""
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "datacontenttype": "application/json",
        }
        if self.time is not None:
            attributes["time"] = self.time
        if self.subject is not None:
            attributes["subject"] = self.subject
        attributes.update(self.extensions)
        # A copy: the package fills in the present where there is no time, which must not leak into a pure value.
        CloudEvent(dict(attributes))
        if self.time is not None:
            attributes["time"] = written_time(self.time)
        written = Json.of(attributes)
        return written if self.data.text == "null" else written.plus("data", self.data)

    @property
    def content(self) -> str:
        """A digest of type and data: 8 characters, 48 bits. Neither order of properties nor spelling of numbers counts.

        Every entry keeps the digest, so it is short. Different contents share a digest in one of 280,000,000,000,000 cases.
        """
        written = Json.of(canonical([self.type, self.data.value])).text
        return b64encode(hashlib.sha256(written.encode()).digest()[:6]).decode()

    @property
    def since(self) -> int | None:
        """The stable time of a timed message, in milliseconds since 1970; None for an untimed message.

        A message is timed if all copies certainly carry the same time: its sender promises the attribute `stabletime`, or its
        id, a UUID of version 7, contains the time. The `time` of a message may differ between copies.
        """
        stated = dict(self.extensions).get(STABLE_TIME)
        if isinstance(stated, str):
            try:
                return milliseconds(_read_time(stated))
            except (TypeError, ValueError, OverflowError):
                return None
        uuid = _UUID7.fullmatch(self.id)
        stated_by_id = 0 if uuid is None else int(f"{uuid[1]}{uuid[2]}", 16)
        return stated_by_id if _OLDEST_UUID7 <= stated_by_id < _NEWEST_UUID7 else None

    @property
    def judged_by(self) -> datetime | None:
        """The time by which the age of the message is judged: its stable time, or else its own time."""
        since = self.since
        return self.time if since is None else time_of(since)

    def by_reference(self, address: str) -> Envelope:
        """The envelope without its data, which is at this address ("Dataref" extension of CloudEvents: the claim check)."""
        return replace(self._with({DATAREF: address}), data=Json("null"))

    @property
    def reference(self) -> str | None:
        """The address of the data, if the data does not travel in the envelope."""
        address = dict(self.extensions).get(DATAREF)
        return address if isinstance(address, str) else None

    def with_data(self, data: Json) -> Envelope:
        """The envelope with the data at its reference."""
        return replace(self._with({}, DATAREF), data=data)

    def with_stable_time(self, since: int | None = None) -> Envelope:
        """The envelope with the promise that all copies carry the same time.

        Args:
            since: the stable time, in milliseconds since 1970; None for the message's `time`. Without either, no promise is
                made.
        """
        if since is None and self.time is not None:
            since = milliseconds(self.time)
        return self._with({} if since is None else {STABLE_TIME: stable_text(since)}, STABLE_TIME)

    @property
    def requeued(self) -> int:
        """How often the message was sent to its queue again; 0 in its sender's copy."""
        return self._count(REQUEUED)

    @property
    def unexplained(self) -> int:
        """How often, among these returns, its queue gave the message up for an unknown reason."""
        return self._count(UNEXPLAINED)

    def once_more(self, unexplained: int = 0) -> Envelope:
        """The envelope for a return to its queue: identity and time stay, so it is a copy like any other.

        The mark is on every message that is sent again, so that a queue with an adapter does not take it for a foreign body.

        Args:
            unexplained: how often its queue gave the message up for an unknown reason; 0 after an operator's look.
        """
        why = {UNEXPLAINED: unexplained} if unexplained else {}
        return self._with({REQUEUED: self.requeued + 1, **why}, UNEXPLAINED)

    def _count(self, name: str) -> int:
        """The number in a counting attribute; a stranger's value counts as 0."""
        number = dict(self.extensions).get(name)
        return number if type(number) is int and 0 <= number <= _MOST_COUNTED else 0

    @property
    def trace(self) -> Extensions:
        """The attributes of the "Distributed Tracing" extension of CloudEvents: the context in which the message came about.

        Empty without a valid context: the forwarded attributes must not grow with a stranger's input.
        """
        attributes = dict(self.extensions)
        parent, state = attributes.get(TRACEPARENT), attributes.get(TRACESTATE)
        if not isinstance(parent, str) or not _TRACEPARENT.fullmatch(parent):
            return ()
        if not isinstance(state, str) or not 0 < len(state) <= MAX_TRACESTATE_LENGTH:
            return ((TRACEPARENT, parent),)
        return ((TRACEPARENT, parent), (TRACESTATE, state))

    def with_trace(self, trace: Extensions) -> Envelope:
        """The envelope with the trace attributes of another envelope's `trace`."""
        return self._with(dict(trace), TRACEPARENT, TRACESTATE)

    def _with(self, added: Mapping[str, Extension], *removed: str) -> Envelope:
        """The envelope with other extension attributes."""
        kept = {name: value for name, value in self.extensions if name not in removed}
        return replace(self, extensions=tuple(sorted({**kept, **added}.items())))

    @classmethod
    def read(cls, body: bytes | str, *, limit: int = MAX_MESSAGE_BYTES) -> Envelope:
        """Read an envelope from the wire, or from a document of the library.

        Args:
            body: the envelope in JSON.
            limit: most bytes. A message that came by reference is longer than a queue allows.

        Raises:
            MalformedMessage: the body is not JSON, not a CloudEvents 1.0 envelope, carries binary data, or is over a limit.
        """
        size = len(body.encode(errors="surrogatepass")) if isinstance(body, str) else len(body)
        if size > limit:
            raise MalformedMessage(
                f"The message has {size} bytes; at most {limit} are read. Send what is large as a blob and "
                "its address in the message."
            )
        try:
            content = read_json(body, nesting=MOST_NESTED)
        except ValueError as error:
            raise MalformedMessage(f"{_NO_ENVELOPE} in JSON. {error} {_ADVICE}") from None
        if isinstance(content, list):
            raise MalformedMessage("The message is a batch of CloudEvents. Send each of them as a message of its own.")
        try:
            return cls._of(content)
        except MalformedMessage:
            raise
        except BaseCloudEventException as error:
            said = printable(str(error))[:_LONGEST_SAID]
            raise MalformedMessage(f"{_NO_ENVELOPE}: {said}. {_ADVICE}") from None  # Names in it are a stranger's.
        # A text in place of an object, and whatever the package meets.
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
            raise MalformedMessage(f"{_NO_ENVELOPE} in JSON ({type(error).__name__}). {_ADVICE}") from error

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Envelope:
        """The envelope from the members of an event in JSON."""
        data, binary = content.pop("data", None), content.pop("data_base64", None)
        if binary is not None:
            raise MalformedMessage("The message carries binary data (data_base64); handlers take JSON data only.")
        # Serializers write unset attributes as null, which the JSON format treats as unset.
        attributes = {name: value for name, value in content.items() if value is not None}
        if missing := [name for name in _REQUIRED_ATTRIBUTES if not attributes.get(name)]:
            raise MalformedMessage(f"{_NO_ENVELOPE}: it has no {' and no '.join(missing)}. {_ADVICE}")
        if odd := [name for name in attributes if not _ATTRIBUTE.fullmatch(name)]:
            raise MalformedMessage(
                f"The message has an attribute {_shown(odd[0])}: names have lower-case letters and digits only. "
                f"{_ADVICE}"
            )
        if "time" in attributes:
            try:
                attributes["time"] = _read_time(attributes["time"])
            except (TypeError, ValueError, OverflowError):
                raise MalformedMessage(
                    "The message's time is no time of RFC 3339 with a time zone, such as 2026-01-01T12:00:00Z. Correct the "
                    "sender."
                ) from None
        # A copy: the package makes up a time where there is none.
        CloudEvent(dict(attributes))
        _require_json(attributes.pop("datacontenttype", None), data)
        return cls(
            source=attributes["source"],
            id=attributes["id"],
            type=attributes["type"],
            data=Json.of(data),
            time=attributes.get("time"),
            subject=attributes.get("subject"),
            extensions=tuple(
                sorted(attribute for attribute in attributes.items() if attribute[0] not in _OWN_ATTRIBUTES)
            ),
        )


def _read_time(text: str) -> datetime:
    """A time of RFC 3339, to the microsecond. A leap second is read as the next second: `datetime` has no leap seconds.
    Raises `TypeError`, `ValueError`, `OverflowError`: the text is no such time."""
    if (parts := _TIME.fullmatch(text)) is None:
        raise ValueError("It is no time of RFC 3339.")
    date, minute, second, fraction, offset = parts.groups()
    leap = second == "60"
    offset = "+00:00" if offset in "Zz" else offset
    time = datetime.fromisoformat(f"{date}T{minute}:{59 if leap else second}.{(fraction or '')[:6]:0<6}{offset}")
    if not leap:
        return time
    time += timedelta(seconds=1)
    if f"{time.astimezone(timezone.utc):%H%M%S}" != "000000":
        raise ValueError("Leap seconds are at the end of a day in UTC.")
    return time


def _require_json(media_type: str | None, data: object) -> None:
    """Refuse text data of a declared type that is not JSON.

    An object or a list is JSON, whatever type an SDK writes for a sender that never sets the type.
    """
    if media_type is not None and isinstance(data, str) and not _JSON_TYPE.match(media_type):
        raise MalformedMessage(
            f"The message's data is of type {_shown(printable(media_type))}; handlers take JSON data only. Correct the "
            "sender, or give this queue an adapter."
        )


def _shown(name: str) -> str:
    """The name of an attribute for an error: a stranger may have chosen the name."""
    return repr(name[:_LONGEST_SHOWN])


def key_of(envelope: Envelope) -> str:
    """The key of a message in records."""
    return envelope.key
