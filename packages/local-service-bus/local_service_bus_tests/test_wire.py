"""Messages on the wire, and clients that do not keep to it."""

from __future__ import annotations

import socket
from contextlib import suppress
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from local_service_bus.broker.messages import DeathCertificate, Stored
from local_service_bus.broker.refusals import RefusedError
from local_service_bus.testing import require_endpoint

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint


@pytest.fixture
def proton() -> Any:
    require_endpoint()
    return import_module("proton")


@pytest.fixture
def sections(proton: Any) -> Any:
    return import_module("local_service_bus.amqp.sections")


def encoded(proton: Any, body: object = b"body", **fields: Any) -> bytes:
    message = proton.Message(body=body, **fields)
    message.inferred = isinstance(body, bytes)
    payload: bytes = message.encode()
    return payload


def test_the_broker_reads_what_it_needs_and_no_more(proton: Any, sections: Any) -> None:
    at = {proton.symbol("x-opt-scheduled-enqueue-time"): proton.timestamp(5000)}
    fields = {"id": "i", "group_id": "g", "subject": "s", "correlation_id": 7, "properties": {"n": 1}, "ttl": 2.5}
    content = sections.read(encoded(proton, annotations=at, **fields))
    assert (content.message_id, content.session_id, content.subject, content.correlation_id) == ("i", "g", "s", "7")
    assert (content.time_to_live, content.scheduled_for, content.properties) == (2.5, 5.0, {"n": 1})


@pytest.mark.parametrize("body", [b"x" * 1000, "text", ["a", 1], {"a": None}, 5, None], ids=type)
def test_a_body_of_any_kind_passes_as_it_is(proton: Any, sections: Any, body: object) -> None:
    payload = encoded(proton, body, properties={"n": 1})
    stored = Stored(sections.read(payload), 9, 1.0, delivery_count=2)
    written = proton.Message()
    written.decode(sections.write(stored))
    assert (sections.owned(written.body), written.delivery_count, written.properties) == (body, 2, {"n": 1})
    assert written.annotations["x-opt-sequence-number"] == 9


def test_a_dead_letter_has_its_reason_among_its_own_properties(proton: Any, sections: Any) -> None:
    stored = Stored(sections.read(encoded(proton, properties={"n": 1})), 1, 1.0)
    stored.death = DeathCertificate("bad", None, "q")
    written = proton.Message()
    written.decode(sections.write(stored))
    assert written.properties == {"n": 1, "DeadLetterReason": "bad"}


def test_a_batch_has_its_messages_in_data_sections_whatever_its_envelope_says(proton: Any, sections: Any) -> None:
    one, two = encoded(proton, b"1"), encoded(proton, b"2")
    data = b"".join(sections.encode(proton.Described(proton.ulong(sections.DATA), part)) for part in (one, two))
    envelope = encoded(proton, b"", properties={"n": 1}, durable=True)[: -len(b"\x00\x53\x75\xa0\x00")]
    assert sections.messages_in(data) == sections.messages_in(envelope + data) == [one, two]
    for none in (encoded(proton, "text"), b""):
        with pytest.raises(RefusedError, match="no AMQP message"):
            sections.messages_in(none)


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 64, 10_000])
def test_frames_are_separated_however_they_come(proton: Any, sections: Any, size: int) -> None:
    frames = import_module("local_service_bus.amqp.frames")

    def frame(*fields: object, body: bytes = b"") -> bytes:
        payload: bytes = sections.encode(proton.Described(proton.ulong(0x14), list(fields))) + body
        return (8 + len(payload)).to_bytes(4, "big") + b"\x02\x00\x00\x00" + payload

    single = frame(proton.uint(0), proton.uint(0), b"tag", proton.uint(0), False)
    batch = frame(proton.uint(0), proton.uint(1), b"tag", proton.uint(frames.BATCH), False, body=b"x" * 5000)
    rest, empty = frame(proton.uint(0), body=b"x" * 5), b"\x00\x00\x00\x08\x02\x00\x00\x00"
    stream = b"AMQP\x00\x01\x00\x00" + single + batch + empty + rest
    ends = {8 + len(single): 0, 8 + len(single + batch): frames.BATCH, len(stream) - len(rest): 0, len(stream): 0}
    reader, read, found = frames.Frames(), 0, {}
    for start in range(0, len(stream), size):
        for piece in reader.cut(stream[start : start + size]):
            read += len(piece)
            if read in ends:
                found[read] = reader.message_format()
    assert found == ends


def test_what_is_no_message_is_refused(proton: Any, sections: Any) -> None:
    whole = encoded(proton, properties={"n": 1}, id="i")
    for payload in (b"\x00", b"abc", whole[:-1], whole + b"\x00", b"\x00\x53\x73\x43", b"\x00\x53\x10\x45"):
        with pytest.raises(RefusedError, match="no AMQP message"):
            sections.read(payload)


def test_noise_never_harms_the_reader(proton: Any, sections: Any) -> None:
    chance, whole = Random(1), encoded(proton, properties={"n": 1}, id="i")
    for _ in range(500):
        noisy = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            noisy[chance.randrange(len(noisy))] = chance.randrange(256)
        with suppress(RefusedError):  # Any other error is a failure.
            sections.read(bytes(noisy))


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"AMQP\x00\x00\x09\x01", b"AMQP\x03\x01\x00\x00" + b"\xff" * 64]
)
def test_a_client_that_does_not_speak_amqp_is_sent_away(endpoint: RunningEndpoint, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port)) as raw:
        raw.sendall(sent)
        while raw.recv(4096):
            pass
    assert endpoint.counts("plain-0").active == 0, "the endpoint still serves"
