"""Identities of any script: each is refused before the commit, or arrives and is known again as a copy."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import azure.functions as func
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from exactlyonce import (
    Api,
    Colocated,
    ConfigurationError,
    Context,
    Destination,
    Entity,
    EntityKey,
    Outbox,
    VersionStream,
    message,
)
from exactlyonce.effects.attempt import Finished, Memory, Strategy
from exactlyonce.errors import HandlerFailed, InvalidMessage, MalformedMessage
from exactlyonce.hosting.deliveries.triggers import PlainJson, id_of
from exactlyonce.testing import App
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

STRATEGIES: list[Strategy] = [
    Outbox(),
    Colocated(),
    VersionStream(),
]
TEXTS = st.builds(
    lambda text, times: text * times,
    st.text(st.characters(exclude_categories=()) | st.sampled_from("日é🙂\u0627\x00\ud800/ "), min_size=1, max_size=4),
    st.sampled_from([1, 10, 60, 113, 255, 500]),
)


@message("test.identities.told")
class Told(BaseModel):
    id: str
    partition: str
    amount: int = 1


@message("test.identities.heard")
class Heard(BaseModel):
    by: str
    amount: int


class Total(BaseModel):
    total: int = 0


def application(strategy: Strategy | None = None) -> tuple[App, Entity[Total], Entity[Total]]:
    tellers = Entity("teller", state=Total, container="tellers", partition_key="/place", strategy=strategy or Outbox())
    hearers = Entity("hearer", state=Total, container="hearers", strategy=Outbox())

    @tellers.handles(Told, key=lambda told: EntityKey(told.id, told.partition))
    def tell(state: Total, told: Told, context: Context) -> Total:
        context.announce(Heard(by=context.new_id(), amount=told.amount))
        return Total(total=state.total + told.amount)

    @hearers.handles(Heard, key=lambda _: "h")
    def hear(state: Total, heard: Heard, _: Context) -> Total:
        return Total(total=state.total + heard.amount)

    return App(tellers, hearers, destinations=[Destination("hearers", to=hearers, receives=(Heard,))]), tellers, hearers


@given(id=TEXTS, partition=TEXTS, message_id=TEXTS)
def test_an_identity_is_refused_before_the_commit_or_arrives_and_is_known_again(
    id: str, partition: str, message_id: str
) -> None:
    app, tellers, hearers = application()
    try:
        for _ in range(2):
            app.send(tellers, Told.model_construct(id=id, partition=partition), message_id=message_id)
    except (HandlerFailed, InvalidMessage, MalformedMessage, UnicodeEncodeError):
        assert app.state(hearers, "h") is None
    else:
        assert app.state(hearers, "h") == Total(total=1)
        assert app.state(tellers, EntityKey(id, partition)) == Total(total=1)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize(
    ("id", "partition"),
    [
        ("中" * 255, "中" * 255),
        ("🙂" * 255, "p"),
        ("\u0627" * 170 + "x" * 80, "p"),
        ("x" * 200, "p" * 900),
        ("x", "é" * 900),
    ],
)
def test_a_long_id_in_any_script_arrives(strategy: Strategy, id: str, partition: str) -> None:
    app, tellers, hearers = application(strategy)
    for amount in (1, 2):
        app.send(tellers, Told(id=id, partition=partition, amount=amount))
    assert app.state(hearers, "h") == Total(total=3)


def test_a_key_that_no_container_takes_is_refused() -> None:
    app, tellers, hearers = application()
    with pytest.raises(InvalidMessage, match="2048 as partition key"):
        app.send(tellers, Told(id="x", partition="p" * 2_048))
    assert app.state(hearers, "h") is None


@given(TEXTS)
def test_an_adapter_makes_an_envelope_that_every_receiver_reads_or_refuses_the_body(id: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    adapter = PlainJson(Told, "till", id=lambda _: id, time=lambda _: at)
    with suppress(MalformedMessage):
        envelope = adapter(b"{}")
        assert Envelope.read(envelope.to_json().text) == envelope


NO_NAMES = ["", " ", "a\nb", "a\x1bb", "a\x00", "\ud800", "x" * 1_025]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_no_receiver_could_read_is_refused_where_it_is_declared(name: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    declare: list[Any] = [
        lambda: message(name)(type("M", (BaseModel,), {})),
        lambda: message("test.identities.renamed", formerly=(name,)),
        lambda: Entity(name, state=Total, container="c", strategy=Outbox()),
        lambda: Destination(name),
        lambda: Api(name, "https://api.example", key_lifetime=at - at.replace(year=2025)),
    ]
    for each in declare:
        with pytest.raises(ConfigurationError):
            each()


def test_a_name_that_is_too_long_once_it_is_encoded_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="once it is percent-encoded"):
        Entity("日" * 30, state=Total, container="c", strategy=Outbox())
    Entity("日" * 28, state=Total, container="c", strategy=Outbox())


def test_a_source_of_an_adapter_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="source= of a PlainJson"):
        PlainJson(Told, "a\nb", id=str, time=lambda _: datetime.now(timezone.utc))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_another_content_under_a_known_identity_is_told_and_changes_nothing(
    strategy: Strategy, caplog: pytest.LogCaptureFixture
) -> None:
    app, tellers, hearers = application(strategy)
    with caplog.at_level(logging.WARNING, "exactlyonce"):
        for _ in range(2):
            app.send(tellers, Told(id="a", partition="p", amount=4711), message_id="m-1")
        assert caplog.messages == []
        app.send(tellers, Told(id="a", partition="p", amount=4712), message_id="m-1")
    (told,) = caplog.messages
    assert "entity teller/p/a: message test/m-1 is a duplicate" in told
    assert "471" not in told
    assert app.state(tellers, EntityKey("a", "p")) == app.state(hearers, "h") == Total(total=4711)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_a_copy_that_was_written_in_another_way_is_the_same(
    strategy: Strategy, caplog: pytest.LogCaptureFixture
) -> None:
    app, tellers, _ = application(strategy)
    attributes = {"specversion": "1.0", "id": "m-1", "source": "web", "type": "test.identities.told"}
    dated = {**attributes, "time": app.now.isoformat()}
    data = {"id": "a", "partition": "p", "amount": 1}
    copies = [
        {**dated, "data": data},
        {"data": dict(reversed(data.items())), **dated, "traceparent": f"00-{'1' * 32}-{'2' * 16}-01", "subject": "s"},
    ]
    with caplog.at_level(logging.WARNING, "exactlyonce"):
        for indent, body in enumerate(copies):
            app.run(app.host.take(tellers, Envelope.read(json.dumps(body, indent=indent))))
    assert caplog.messages == []
    assert app.state(tellers, EntityKey("a", "p")) == Total(total=1)


def test_copies_of_one_group_that_differ_are_told() -> None:
    first, other = (Envelope("web", "m-1", "t", Json(text)) for text in ("1", "2"))
    assert Finished(Memory(), processed=("web/m-1",)).differing((first, other)) == (first,)
    assert Finished(Memory()).differing((first, first)) == ()


def test_an_id_that_the_sender_of_a_queue_message_chose_is_printable() -> None:
    class Chosen(func.ServiceBusMessage):
        message_id = "m\nERROR\x1b[2J"

    assert id_of(Chosen(body=b"")).isprintable()
