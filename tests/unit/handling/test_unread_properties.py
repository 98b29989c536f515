"""Properties that a message has and its model does not read: told once in the log, by their names alone."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    computed_field,
    model_validator,
)

from exactlyonce import Entity, Envelope, Outbox, message
from exactlyonce.errors import InvalidMessage
from exactlyonce.handling.documents import Declared
from exactlyonce.handling.entities import StateShape
from exactlyonce.handling.messages import decode
from exactlyonce.telemetry import notices
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json, unread

Thing = TypeVar("Thing")


class Line(BaseModel):
    item: str = ""
    parts: list[Line] = []


@dataclass
class Plain:
    size: int = 0


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    line: Line | None = None


class Named(RootModel[dict[str, Line]]):
    pass


class Box(BaseModel, Generic[Thing]):
    thing: Thing


class Upgraded(BaseModel):
    item: str = ""

    @model_validator(mode="before")
    @classmethod
    def _old(cls, data: Any) -> Any:
        return data


class Checked(BaseModel):
    item: str = ""

    @model_validator(mode="after")
    def _sound(self) -> Checked:
        return self


class Aliased(BaseModel):
    item: str = Field("", validation_alias=AliasChoices("product", "article"))
    first: str = Field("", validation_alias=AliasPath("names", 0))
    size: int = Field(0, alias="Size")


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    size: int = Field(0, alias="Size")


class Computed(BaseModel):
    size: int = 0

    @computed_field(alias="Double")  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.size

    @computed_field  # type: ignore[prop-decorator]
    @property
    def half(self) -> float:
        return self.size / 2


class Order(BaseModel):
    line: Line = Line()
    lines: dict[str, Line] = {}
    pair: tuple[Line, Plain] | None = None
    many: tuple[Line, ...] = ()
    plain: Plain | None = None
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    either: Line | Plain | str | None = None
    open: Open | None = None
    named: Named | None = None
    box: Box[Line] | None = None
    raw: dict[str, Any] = {}
    any: Any = None
    upgraded: Upgraded | None = None
    checked: Checked | None = None
    converted: Annotated[Line, BeforeValidator(lambda value: value)] | None = None
    aliased: Aliased | None = None
    by_name: ByName | None = None
    computed: Computed | None = None


CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, set()),
    ({"discount": 1}, {"discount"}),
    ({"line": {"price": 3, "parts": [{"price": 3}, {"item": "x"}]}}, {"line.price", "line.parts.….price"}),
    ({"lines": {"secret": {"item": "tea", "price": 3}}}, {"lines.….price"}),
    ({"pair": [{"price": 1}, {"weight": 1}]}, {"pair.….price", "pair.….weight"}),
    ({"many": [{}, {"price": 1}]}, {"many.….price"}),
    ({"plain": {"weight": 1}}, {"plain.weight"}),
    ({"pet": {"kind": "dog", "lives": 1}}, {"pet.lives"}),
    ({"pet": {"kind": "cat", "lives": 1}}, set()),
    ({"either": {"size": 1}}, set()),
    ({"either": {"weight": 1}}, {"either.weight"}),
    ({"open": {"price": 1, "line": {"price": 1}}}, {"open.line.price"}),
    ({"named": {"secret": {"price": 1}}}, {"named.….price"}),
    ({"box": {"thing": {"price": 1}, "lid": 1}}, {"box.thing.price", "box.lid"}),
    ({"raw": {"secret": 1}, "any": {"secret": 1}}, set()),
    ({"upgraded": {"sum": 1}, "converted": {"sum": 1}}, set()),
    ({"checked": {"sum": 1}}, {"checked.sum"}),
    ({"aliased": {"product": "", "article": "", "names": ["a"], "Size": 1}}, set()),
    ({"aliased": {"item": "", "size": 1}}, {"aliased.item", "aliased.size"}),
    ({"by_name": {"size": 1}}, set()),
    ({"computed": {"size": 1, "Double": 2, "half": 0.5}}, set()),
    ({"computed": {"double": 2}}, {"computed.double"}),
    ({"a\nERROR paid": 1}, {"'a\\nERROR paid'"}),
    ({"x" * 100: 1}, {f"'{'x' * 40}'"}),
]


@pytest.mark.parametrize(("data", "names"), CASES)
def test_an_unread_property_is_found_at_any_depth(data: dict[str, Any], names: set[str]) -> None:
    decode(Order, Json.of(data), source="web", id="m-1")
    assert unread(Order, data) == names


Names = st.sampled_from(["item", "parts", "price", "weight"])
Lines = st.recursive(
    st.fixed_dictionaries({}, optional={"item": st.text(), "price": st.integers(), "weight": st.integers()}),
    lambda lines: st.fixed_dictionaries({}, optional={"parts": st.lists(lines, max_size=3), "price": st.integers()}),
    max_leaves=8,
)


@given(Lines)
def test_unread_properties_are_those_that_reading_and_writing_loses(data: dict[str, Any]) -> None:
    def names(value: Any) -> set[str]:
        if isinstance(value, list):
            return {name for item in value for name in names(item)}
        return set(value) | names(value.get("parts", [])) if isinstance(value, dict) else set()

    kept = Line.model_validate(data).model_dump(exclude_unset=True)
    assert {name.rpartition(".")[2] for name in unread(Line, data)} == names(data) - names(kept)


@message("unread.order")
class Sent(Order):
    pass


@message("unread.strict")
class Strict(Order):
    model_config = ConfigDict(extra="forbid")


class State(BaseModel):
    n: int = 0


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    notices._told.clear()
    yield
    notices._told.clear()


def read(type: str, **data: Any) -> Any:
    entity = Entity("order", state=State, container="orders", strategy=Outbox())
    for model in (Sent, Strict):
        entity.handles(model, key=lambda _: "o")(lambda state, given, context: state)
    return entity.read(Envelope("web", "m-1", type, Json.of(data)))[1]


def test_an_unread_property_is_told_once_by_type_and_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "exactlyonce"):
        for _ in range(3):
            assert read("unread.order", discount="sEcReT") == Sent()
        read("unread.order", discount=2, lines={"sEcReT": {"price": "sEcReT"}})
    first, second = (record.getMessage() for record in caplog.records)
    assert "properties of messages of type unread.order are lost, since their model" in first
    assert "read them: discount. Is this instance older" in first
    assert "read them: lines.….price." in second
    assert "sEcReT" not in caplog.text


class Street(BaseModel):
    street: str = ""


class Flat(BaseModel):
    street: str = ""
    lines: dict[str, Street] = {}
    note: str | None = Field(None, exclude_if=lambda note: note is None)


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ({"address": {"street": "sEcReT"}, "lines": {}, "note": "x"}, "address"),
        ({"street": "", "lines": {"sEcReT": {"place": {"street": "sEcReT"}}}, "note": "x"}, r"lines\.\*\.place"),
        ({"street": "", "lines": {}, "remark": "sEcReT"}, "remark"),
        ({"street": "", "lines": {}, "a\nERROR paid": 1}, r"a\\nERROR paid"),
    ],
)
def test_a_property_that_nothing_reads_is_told_once_where_a_field_is_absent(
    caplog: pytest.LogCaptureFixture, stored: dict[str, Any], name: str
) -> None:
    def save(**declared: tuple[str, ...]) -> None:
        shape, order = StateShape(Flat, ("/id",), Declared(**declared)), EntityRef("order", ("o",), "o")
        body = Json.of({"id": "o", **stored})
        shape.write(order, shape.read(order, body), body)

    with caplog.at_level(logging.WARNING, "exactlyonce"):
        save(foreign=(name.replace("\\n", "\n").replace("\\", ""),))
        assert not caplog.records
        save()
        save()
    (record,) = caplog.records
    assert re.search(
        f"properties of documents of Flat stay there unread.*: '{name}'. Was a field renamed", record.getMessage()
    )
    assert "sEcReT" not in caplog.text


def test_a_property_that_nothing_reads_is_not_told_where_no_field_is_absent(caplog: pytest.LogCaptureFixture) -> None:
    shape, order = StateShape(Street, ("/id",)), EntityRef("order", ("o",), "o")
    body = Json.of({"id": "o", "street": "", "remark": "x"})
    with caplog.at_level(logging.WARNING, "exactlyonce"):
        assert shape.write(order, shape.read(order, body), body).value == body.value
    assert not caplog.records


def test_senders_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "exactlyonce"):
        for number in range(1_500):
            read("unread.order", **{f"made-up-{number}": 1})
    assert len(caplog.records) == 1_000


def test_a_forbidden_property_is_named_in_what_is_kept() -> None:
    with pytest.raises(InvalidMessage) as caught:
        read("unread.strict", discount="sEcReT", **{"a\nb": 1})
    assert caught.value.kept == "discount: Extra inputs are not permitted; 'a\\nb': Extra inputs are not permitted"
    assert "\n" not in str(caught.value)
    assert "sEcReT" not in str(caught.value)
