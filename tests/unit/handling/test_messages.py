"""Message types: registration, names on the wire, and errors of data that does not fit."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import core_schema

from exactlyonce import ConfigurationError, message
from exactlyonce.errors import InvalidMessage
from exactlyonce.handling.messages import MessageType, decode, encode, message_type
from exactlyonce.values.frozen_json import Json

SECRET = "sEcReT-4711"


@message("shots.fired", formerly=("shots.shot",))
class Fired(BaseModel):
    game: str
    position: int = Field(default=0, alias="pos")


@message("shots.counted")
@dataclass
class Counted:
    shots: int


@message("shots.upgraded")
class Upgraded(BaseModel):
    game: str

    @model_validator(mode="before")
    @classmethod
    def _old(cls, data: Any) -> Any:
        return {"game": data["old-game"]} if "game" not in data else data


def test_a_model_travels_under_its_registered_name_and_its_aliases() -> None:
    assert message_type(Fired) == MessageType("shots.fired", ("shots.shot",))
    assert encode(Counted(3)) == ("shots.counted", Json.of({"shots": 3}))
    name, data = encode(Fired(game="g", pos=4))
    assert (name, data) == ("shots.fired", Json.of({"game": "g", "pos": 4}))
    assert decode(Fired, data, source="web", id="m-1").position == 4
    assert decode(Upgraded, Json.of({"old-game": "g"}), source="web", id="m-1").game == "g"


def test_a_class_that_is_not_registered_cannot_be_sent() -> None:
    @dataclass
    class Unregistered:
        a: int = 0

    with pytest.raises(ConfigurationError, match=r'@message\("a-name"\)'):
        encode(Unregistered())
    with pytest.raises(ConfigurationError):
        encode("a string")


def test_a_subclass_is_another_type_and_needs_a_name_of_its_own() -> None:
    class Loud(Fired):
        pass

    with pytest.raises(ConfigurationError, match="Loud"):
        message_type(Loud)
    assert message_type(message("shots.loud")(Loud)).name == "shots.loud"
    assert message_type(Fired).name == "shots.fired"


@pytest.mark.parametrize("data", [None, SECRET, [SECRET], {"pos": SECRET, "game": {"pin": SECRET}}, {}])
def test_data_that_does_not_fit_names_message_and_fields_but_no_values(data: Any) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode(Fired, Json.of(data), source="web", id="m/1")
    assert "web/m%2F1" in str(caught.value)
    assert "Fired" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_every_field_that_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidMessage, match=r"game: .*; pos: "):
        decode(Fired, Json.of({"game": 5, "pos": "x"}), source="web", id="m-1")


@pytest.mark.parametrize("data", [{}, SECRET, 7])
def test_a_validator_that_raises_whatever_it_likes_makes_the_message_invalid(data: Any) -> None:
    with pytest.raises(InvalidMessage, match="web/m-1"):
        decode(Upgraded, Json.of(data), source="web", id="m-1")


@message("game.prices")
class Prices(BaseModel):
    by_customer: dict[str, int] = {}


def test_keys_of_mappings_are_values_and_are_not_named() -> None:
    data = Json.of({"by_customer": {"alice@example.org": "free"}, "colour": "red"})
    with pytest.raises(InvalidMessage, match=r"by_customer\.…: Input should be a valid integer") as caught:
        decode(Prices, data, source="web", id="m-1")
    assert "alice" not in str(caught.value)


class Opaque:
    """Of no kind that JSON Schema knows."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.read)

    @classmethod
    def read(cls, value: Any) -> Opaque:
        raise ValueError(type(value).__name__)


@message("game.opaque")
class Hidden(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    inner: list[Opaque]


def test_a_model_that_no_json_schema_describes_names_its_own_properties() -> None:
    with pytest.raises(InvalidMessage, match=r"inner\.0: a validator of the model refused it"):
        decode(Hidden, Json.of({"inner": ["x"]}), source="web", id="m-1")
