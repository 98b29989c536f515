"""State models and entity documents: properties that the library adds, keeps and refuses, and states read as written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    computed_field,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass

from exactlyonce import ConfigurationError, Entity, EntityKey, Outbox, message
from exactlyonce.effects.attempt import Before
from exactlyonce.errors import DamagedDocument, HandlerFailed, IdentityChanged, InvalidMessage
from exactlyonce.handling.entities import RESERVED, StateShape
from exactlyonce.handling.messages import encode
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from tests.unit.handling.test_runner import AT

GAME = EntityRef("range", ("game-7",), "game-7")


class Range(BaseModel):
    target: int = 3
    shots: list[int] = []


@dataclass
class RangeAsDataclass:
    target: int = 3
    shots: list[int] = field(default_factory=list)


class Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")
    target: int = 3


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    target: int = 3


class Aliased(BaseModel):
    game_id: str = Field(default="", alias="gameId")
    hits: int = Field(default=0, alias="hitCount")


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str = ""


def shape(state: type, *paths: str) -> StateShape:
    return StateShape(state, paths or ("/gameId",))


@pytest.mark.parametrize("model", [Range, RangeAsDataclass])
def test_models_and_dataclasses_make_the_same_documents(model: type) -> None:
    range = shape(model)
    state = range.start(GAME)
    assert (state.target, state.shots) == (3, [])
    state.shots.append(5)
    body = range.write(GAME, state, None)
    assert body.text == '{"id":"game-7","gameId":"game-7","target":3,"shots":[5]}'
    assert range.read(GAME, body) == state


def test_each_read_gives_a_fresh_state() -> None:
    range, body = shape(Range), Json.of({"shots": [1]})
    range.read(GAME, body).shots.append(2)
    assert range.read(GAME, body).shots == [1]
    range.start(GAME).shots.append(2)
    assert range.start(GAME).shots == []


class Serialized(BaseModel):
    target: int = 3

    @model_serializer
    def _write(self) -> dict[str, Any]:
        return {"target": self.target} | ({"ttl": 60} if self.target > 3 else {})


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_state_with_room_for_any_property_cannot_bring_a_reserved_one(name: str) -> None:
    state = Open.model_validate({"target": 1, name: "sEcReT"})
    with pytest.raises(HandlerFailed, match=f"reserved property '{name}'.*another name") as caught:
        shape(Open).write(GAME, state, None)
    assert "sEcReT" not in str(caught.value)


def test_a_serializer_of_the_model_cannot_bring_a_reserved_property() -> None:
    serialized = shape(Serialized)
    assert serialized.write(GAME, Serialized(), None).value["target"] == 3
    with pytest.raises(HandlerFailed, match=r"Serialized.*reserved property 'ttl'"):
        serialized.write(GAME, Serialized(target=4), None)


def test_a_document_that_would_expire_with_its_ledger_is_not_adopted() -> None:
    before = Json.of({"id": "game-7", "gameId": "game-7", "target": 1, "ttl": 987654})
    for state in (Range(target=2), Open(target=2)):
        with pytest.raises(DamagedDocument, match=r"range/game-7.*'ttl'.*Nothing was changed.*[Rr]emove") as caught:
            shape(type(state)).write(GAME, state, before)
        assert "987654" not in str(caught.value)


def test_a_reserved_name_deeper_in_the_state_is_the_users_own() -> None:
    body = shape(Open).write(GAME, Open.model_validate({"cache": {"ttl": 60, "_ts": 1}}), None)
    assert body.value["cache"] == {"ttl": 60, "_ts": 1}


@pytest.mark.parametrize("path", ["/ttl", "/_ledger/type", "/_kind"])
def test_a_reserved_property_cannot_be_the_partition_key(path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{path}.*reserved"):
        shape(Range, path)


def test_a_model_that_forbids_extras_does_not_see_id_and_key() -> None:
    exact = shape(Exact)
    body = exact.write(GAME, Exact(target=9), None)
    assert exact.read(GAME, body) == Exact(target=9)
    with pytest.raises(DamagedDocument, match="colour"):
        exact.read(GAME, Json.of({**body.value, "colour": "red"}))


def test_a_model_that_declares_the_key_under_an_alias_is_given_it() -> None:
    aliased = shape(Aliased)
    state = aliased.start(GAME)
    assert state.game_id == "game-7"
    assert aliased.write(GAME, state, None).value["gameId"] == "game-7"


def test_a_nested_key_path_shares_its_property_with_the_users_own() -> None:
    nested = shape(Range, "/game/id")
    assert nested.tombstone(GAME).value == {"id": "game-7", "game": {"id": "game-7"}}
    before = Json.of({"id": "game-7", "game": {"id": "game-7", "title": "t"}})
    assert nested.write(GAME, Range(), before).value["game"] == {"id": "game-7", "title": "t"}


def test_a_hierarchical_key_writes_every_path() -> None:
    ref = EntityRef("range", ("eu", 2026), "game-7")
    assert shape(Range, "/region", "/year").tombstone(ref).value == {"id": "game-7", "region": "eu", "year": 2026}


class Keyed(BaseModel):
    id: str = ""
    gameId: str = ""  # noqa: N815


def test_a_handler_may_hold_id_and_key_but_not_change_them() -> None:
    keyed = shape(Keyed)
    state = keyed.start(GAME)
    assert (state.id, state.gameId) == ("game-7", "game-7")
    assert keyed.write(GAME, state, None).value == {"id": "game-7", "gameId": "game-7"}
    for changed in ({"id": "other"}, {"gameId": "other"}):
        with pytest.raises(IdentityChanged, match=f"/{next(iter(changed))} of entity range/game-7"):
            keyed.write(GAME, state.model_copy(update=changed), None)


@pytest.mark.parametrize(
    ("kind", "empty", "key", "other"),
    [
        (int, 0, "7", 8),
        (UUID, UUID(int=0), f"{UUID(int=0xAB)}".upper(), UUID(int=3)),
        (date, date.min, "2026-01-31", date.max),
    ],
)
def test_a_key_that_the_model_declares_as_another_type_is_stored_as_its_messages_have_it(
    kind: Any, empty: Any, key: str, other: Any
) -> None:
    model = create_model("Keyed", id=(kind, empty), gameId=(kind, empty), shots=(int, 0))
    keyed, game = shape(model), EntityRef("range", (key,), key)
    state = keyed.start(game)
    body = keyed.write(game, state.model_copy(update={"shots": 1}), None)
    assert body.value == {"id": key, "gameId": key, "shots": 1}
    assert keyed.write(game, keyed.read(game, body), body) == body
    with pytest.raises(IdentityChanged, match="/id of entity range/"):
        keyed.write(game, state.model_copy(update={"id": other}), body)


def test_a_document_that_does_not_fit_is_named_without_its_values() -> None:
    with pytest.raises(DamagedDocument, match=r"range/game-7.*Range: target: .*; shots\.0: ") as caught:
        shape(Range).read(GAME, Json.of({"target": "sEcReT", "shots": ["sEcReT"]}))
    assert "sEcReT" not in str(caught.value)


class Upgrading(BaseModel):
    target: int = 3

    @model_validator(mode="before")
    @classmethod
    def _old(cls, properties: Any) -> Any:
        return {"target": properties["aim"]} if "colour" in properties else properties


def test_a_validator_of_the_model_may_raise_anything() -> None:
    with pytest.raises(DamagedDocument, match=r"range/game-7.*Upgrading.*KeyError"):
        shape(Upgrading).read(GAME, Json.of({"colour": "red"}))


def test_a_field_without_a_default_is_refused_at_registration() -> None:
    @dataclass
    class Unstartable:
        target: int

    for model in (Unstartable, create_model("Unstartable", target=(int, ...))):
        with pytest.raises(ConfigurationError, match=r"target.*default"):
            shape(model)


def test_the_key_itself_needs_no_default() -> None:
    model = create_model("Numbered", year=(int, ...))
    assert shape(model, "/year").start(EntityRef("range", (2026,), "game-7")).year == 2026


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_reserved_properties_cannot_be_used(name: str) -> None:
    pydantic = create_model("Reserving", mine=(int, Field(default=0, alias=name)))
    with pytest.raises(ConfigurationError, match=f"reserved property '{name}'"):
        shape(pydantic)


@pydantic_dataclass
class AliasedDataclass:
    lifetime: int = Field(default=60, alias="ttl")


@dataclass
class AnnotatedDataclass:
    lifetime: Annotated[int, Field(serialization_alias="ttl")] = 60


class Computing(BaseModel):
    target: int = 3

    @computed_field
    def ttl(self) -> int:
        return 60


@pytest.mark.parametrize("model", [AliasedDataclass, AnnotatedDataclass, Computing])
def test_a_reserved_property_under_another_name_in_the_model_is_found_when_it_is_declared(model: type) -> None:
    with pytest.raises(ConfigurationError, match=f"{model.__name__} uses the reserved property 'ttl'"):
        shape(model)


def test_a_model_that_raises_for_its_key_fails_the_messages_of_that_entity_alone() -> None:
    @dataclass
    class Yearly:
        year: str = ""

        def __post_init__(self) -> None:
            self.decade = {"sample": 0, "2026": 202}[self.year]

    yearly = shape(Yearly, "/year")
    assert yearly.start(EntityRef("range", ("2026",), "game-7")).decade == 202
    with pytest.raises(ConfigurationError, match=r"Yearly.*range.*KeyError") as caught:
        yearly.start(EntityRef("range", ("sEcReT",), "game-7"))
    assert "sEcReT" not in str(caught.value)


def test_a_model_that_does_not_take_its_key_is_named() -> None:
    model = create_model("Numbered", year=(int, 0))
    with pytest.raises(ConfigurationError, match=r"Numbered.*range.*year"):
        shape(model, "/year").start(EntityRef("range", ("many",), "game-7"))
    nested = create_model("Nested", game=(Inner, Inner()))
    with pytest.raises(ConfigurationError, match=r"game\.id"):
        shape(nested, "/game/id").start(GAME)


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
