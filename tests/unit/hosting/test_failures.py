"""The failure of a message, as kept with it when it is parked: fields and what is wrong with them, never a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from exactlyonce import Context, Entity, Outbox, message
from exactlyonce.effects.attempt import Before
from exactlyonce.errors import HandlerFailed, InvalidMessage
from exactlyonce.handling.messages import decode
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.hosting.deliveries.triggers import Failures, described
from exactlyonce.values.frozen_json import Json
from tests.samples import Account, accounts, deposit
from tests.unit.script import AT

SECRET = "what-the-body-says"


def reports(value: str) -> str:
    raise ValueError(f"{value} is no good")


def reports_otherwise(value: str) -> str:
    raise PydanticCustomError(value, "{found} is no good", {"found": value})


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    model_config = ConfigDict(extra="forbid")


@message("reasons.order")
class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = 1
    name: Annotated[str, Field(max_length=3)] = ""
    called: str = Field("", validation_alias="Called")
    amounts: dict[str, int] = {}
    judged: Annotated[str, AfterValidator(reports)] | None = None
    marked: Annotated[str, AfterValidator(reports_otherwise)] | None = None
    owner: Owner | None = None
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({"number": SECRET}, "number: Input should be a valid integer, unable to parse string as an integer"),
        ({"name": SECRET}, "name: does not fit"),
        ({"Called": [SECRET]}, "Called: Input should be a valid string"),
        (
            {"amounts": {SECRET: "x"}},
            "amounts, inside: Input should be a valid integer, unable to parse string as an integer",
        ),
        ({"discount": 1}, "discount: Extra inputs are not permitted"),
        ({"a\nb" + "c" * 50: 1}, rf"'a\nb{'c' * 37}': Extra inputs are not permitted"),
        ({"owner": {"age": SECRET}}, "owner, inside, age: Extra inputs are not permitted"),
        ({"judged": SECRET}, "judged: does not fit"),
        ({"marked": SECRET}, "marked: does not fit"),
        ({"pet": {"kind": SECRET}}, "pet: does not fit"),
        (SECRET, "the whole: does not fit"),
    ],
)
def test_the_kept_text_has_no_value_of_the_message(data: Any, kept: str) -> None:
    with pytest.raises(InvalidMessage) as raised:
        decode(Order, Json.of(data), source="web", id="m-1")
    assert raised.value.kept is not None
    assert SECRET not in raised.value.kept
    assert raised.value.kept == kept


def test_the_kept_text_is_found_behind_the_error_of_a_delivery() -> None:
    kind = accounts()
    bad = deposit("m-1", amount="many")
    with pytest.raises(InvalidMessage) as raised:
        Runner(kind, kind.ref("a"), Routes())(Before(None, AT, "tx"), bad)
    failures = Failures()
    failures.note("account", "web/m-1", raised.value, 3)
    assert failures.reason("account", "web/m-1") == (
        "its queue gave it up; delivery 3 failed with InvalidMessage: amount: Input should be a valid integer, unable to parse "
        "string as an integer"
    )


@message("reasons.shout")
@dataclass
class Shout:
    account: str


def test_of_errors_that_business_code_raises_only_the_class_is_kept() -> None:
    kind: Entity[Any] = Entity("shouting", state=Account, container="c", partition_key="/owner", strategy=Outbox())

    @kind.handles(Shout, key=lambda shout: shout.account)
    def shout(state: Account, given: Shout, context: Context) -> Account:
        raise HandlerFailed(SECRET) from KeyError(SECRET)

    loud = deposit("m-1")
    loud = type(loud)("web", "m-1", "reasons.shout", Json.of({"account": "a"}))
    with pytest.raises(HandlerFailed) as raised:
        Runner(kind, kind.ref("a"), Routes())(Before(None, AT, "tx"), loud)
    assert described(raised.value) == "HandlerFailed (KeyError)"
