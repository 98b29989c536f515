"""States and messages are read as they were written; those that would change on the way are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from exactlyonce import Entity, EntityKey, Outbox, message
from exactlyonce.attempt import Before
from exactlyonce.errors import HandlerFailed, InvalidMessage
from exactlyonce.handling.messages import encode
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.unit.handling.test_runner import AT


@message("count.up")
@dataclass
class Up:
    by: int = 1


class Counter(BaseModel):
    count: int = 0


class Asymmetric(BaseModel):
    count: int = Field(0, validation_alias="Count")


class Forgetful(BaseModel):
    count: int = Field(0, exclude=True)


class Other(BaseModel):
    count: int = 0


class Anything(BaseModel):
    value: Any = None


def run(state: type, result: Any) -> Any:
    """Let a handler return something for an entity with this state model."""
    entity: Entity[Any] = Entity("counter", state=state, container="counters", strategy=Outbox())
    entity.handles(Up, key=lambda up: "c")(lambda before, up, context: result)
    envelope = Envelope("web", "m-1", "count.up", Json.of({}))
    return Runner(entity, entity.ref("c"), Routes())(Before(None, AT, "tx"), envelope).body.value


@pytest.mark.parametrize(
    ("state", "result"),
    [
        (Counter, Other(count=5)),
        (Counter, {"count": 5}),
        (Asymmetric, Asymmetric.model_validate({"Count": 5})),
        (Forgetful, Forgetful(count=5)),
        (Counter, Counter().model_copy(update={"count": "many"})),
    ],
    ids=["another model", "no model", "written and read under two names", "an excluded field", "a wrong type"],
)
def test_a_state_that_would_be_read_as_something_else_is_refused(state: type, result: Any) -> None:
    with pytest.raises(HandlerFailed, match="web/m-1 on entity counter/c: The handler's result"):
        run(state, result)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 1_767_225_600_123_456_789, 10**400])
def test_a_whole_number_that_the_store_would_round_is_refused(number: int) -> None:
    for value in (number, {"deep": [number]}):
        with pytest.raises(HandlerFailed, match=r"counter/c: The handler's result .* 2\^53.* string"):
            run(Anything, Anything(value=value))


@pytest.mark.parametrize("value", [2**53, -(2**53), 2**60, 0.1234567890123456789, 1e300, str(10**20)])
def test_a_number_that_a_double_keeps_is_read_unchanged(value: Any) -> None:
    assert run(Anything, Anything(value=value))["value"] == value


def test_a_state_has_the_same_numbers_in_a_group_as_alone() -> None:
    """To the service 1.0 and 1 are one value; which of them it gives back is its own affair."""
    body = run(Anything, Anything(value=[1.0, -0.0, 2.5, 2.0**53, 1e16]))
    assert repr(body["value"]) == "[1, 0, 2.5, 9007199254740992, 1e+16]"


def test_a_message_that_its_receiver_could_not_read_is_not_sent() -> None:
    with pytest.raises(InvalidMessage, match="would read something else"):
        encode(Up(by="two"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2**53, -(2**53), 2.0**60])
def test_a_number_that_a_double_does_not_keep_is_no_partition_key(value: float) -> None:
    entity = Entity("counter", state=Counter, container="counters", partition_key="/shard", strategy=Outbox())
    with pytest.raises(InvalidMessage, match="numbers up to"):
        entity.ref(EntityKey("c", value))
