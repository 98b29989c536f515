"""Round trips of values through JSON: what is read is what was written, and a value that would be lost is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import (
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    SecretBytes,
    SecretStr,
    ValidationError,
    computed_field,
    create_model,
    field_serializer,
)
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from exactlyonce.errors import HandlerFailed
from exactlyonce.values.round_trips import lost, read_text, shown, written, written_text

BERLIN = ZoneInfo("Europe/Berlin")
AFTER = datetime.fromisoformat("1971-01-01T00:00")  # Offsets were whole minutes.
NIGHT = datetime(2026, 10, 25, tzinfo=timezone.utc)
Item = TypeVar("Item")


class Colour(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    at: datetime | None = None


class Typed(TypedDict, total=False):
    at: datetime
    names: set[str]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    tags: frozenset[str] = frozenset()
    at: datetime | None = None

    @computed_field
    def size(self) -> int:
        return len(self.tags)


@dataclass
class Plain:
    at: datetime | None = None
    tags: set[str] = field(default_factory=set)


class Generically(BaseModel, Generic[Item]):
    item: Item


class Root(RootModel[list[set[str]]]):
    pass


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    names: set[str] = set()


TEXTS = st.sets(st.text("abcdef", max_size=3), max_size=4)
DEEP = st.frozensets(TEXTS.map(frozenset))
TIMES = st.integers(-8_000, 8_000).map(lambda minutes: (NIGHT + timedelta(minutes=minutes)).astimezone(BERLIN))
FROZEN = st.builds(Frozen, tags=TEXTS.map(frozenset), at=st.none() | TIMES)
ZOO: list[tuple[Any, dict[str, Any], st.SearchStrategy[Any]]] = [
    (datetime, {}, TIMES | st.datetimes() | st.datetimes(timezones=st.timezones(), min_value=AFTER)),
    (dict[datetime, int], {}, st.dictionaries(TIMES, st.integers(0, 9), max_size=2)),
    (set[datetime], {}, st.sets(TIMES, max_size=2)),
    (date, {"strict": True}, st.dates()),
    (datetime, {"strict": True}, TIMES),
    (UUID, {"strict": True}, st.uuids()),
    (Colour, {"strict": True}, st.just(Colour.RED)),
    (tuple[int, str], {"strict": True}, st.tuples(st.integers(0, 9), st.text("ab"))),
    (time, {}, st.times()),
    (timedelta, {}, st.timedeltas()),
    (timedelta, {"ser_json_timedelta": "float"}, st.integers(0, 10**6).map(lambda seconds: timedelta(seconds=seconds))),
    (Decimal, {}, st.decimals(allow_nan=False, allow_infinity=False)),
    (Annotated[Decimal, Field(allow_inf_nan=True)], {}, st.sampled_from(list(map(Decimal, ("NaN", "Infinity", "1.50"))))),
    (float, {"ser_json_inf_nan": "strings"}, st.floats()),
    (float, {}, st.floats(allow_nan=False, allow_infinity=False)),
    (bytes, {"ser_json_bytes": "base64", "val_json_bytes": "base64"}, st.binary()),
    (bytes, {"ser_json_bytes": "hex", "val_json_bytes": "hex"}, st.binary()),
    (bytes, {}, st.text("aé").map(str.encode)),
    (Json[list[int]], {}, st.lists(st.integers(0, 9))),
    (Json[dict[str, list[int]]] | None, {}, st.none() | st.dictionaries(st.text("ab"), st.lists(st.integers(0, 9)))),
    (AbstractSet[str], {}, TEXTS.map(frozenset)),
    (list[dict[str, frozenset[frozenset[str]]]], {}, st.lists(st.dictionaries(st.text("ab"), DEEP))),
    (set[Frozen], {"extra": "forbid"}, st.sets(FROZEN, max_size=3)),
    (dict[str, Frozen], {"extra": "allow"}, st.dictionaries(st.text("ab"), FROZEN)),
    (Typed, {}, st.fixed_dictionaries({}, optional={"at": TIMES, "names": TEXTS})),
    (Point, {}, st.builds(Point, st.integers(0, 9), st.none() | TIMES)),
    (Plain, {}, st.builds(Plain, at=st.none() | TIMES, tags=TEXTS)),
    (Root, {}, st.lists(TEXTS).map(Root)),
    (Generically[set[str]], {}, TEXTS.map(lambda tags: Generically[set[str]](item=tags))),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {}, st.builds(Cat) | st.builds(Dog, names=TEXTS)),
    (str, {"alias_generator": to_camel, "validate_by_alias": False, "validate_by_name": True}, st.text("ab")),
    (str, {"alias_generator": AliasGenerator(validation_alias=to_camel, serialization_alias=to_camel)}, st.text("ab")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "config", "values"), ZOO)
@given(data=st.data())
def test_a_value_of_any_type_is_read_as_it_was_written(kind: Any, config: Any, values: Any, data: Any) -> None:
    model = create_model("Zoo", __config__=config, the_value=(kind, ...))
    value = model.model_construct(the_value=data.draw(values))
    text = written_text(model, value)
    assert lost(model, value, text) is None
    assert written(model, read_text(model, text)) == json.loads(text)


class Child(Cat):
    name: str = "Tom"


class Hiding(BaseModel):
    shown: int = 0
    hidden: int = Field(0, exclude=True)
    _private: int = PrivateAttr(0)


class Rounding(BaseModel):
    amount: float = 0.0

    @field_serializer("amount")
    def _write(self, amount: float) -> float:
        return round(amount, 1)


class Alike(Hiding):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self.shown == other.shown


@dataclass
class Partly:
    shown: int = 0
    hidden: Annotated[int, Field(exclude=True)] = field(default=0, compare=False)


class Holder(BaseModel):
    value: Any = None
    secret: SecretStr | SecretBytes = SecretStr("")
    inner: list[Hiding | Alike | Partly | Rounding] = []
    cats: dict[str, Cat] = {}
    number: float | None = None
    by: int = Field(0, validation_alias="read", serialization_alias="written")


def private() -> Hiding:
    hiding = Hiding()
    hiding._private = 4
    return hiding


LOST = [
    (Holder(secret=SecretStr("sEcReT")), "secret"),
    (Holder(inner=[Hiding(), Hiding(hidden=5)]), "inner.1.hidden"),
    (Holder(inner=[private()]), "inner.0._private"),
    (Holder(cats={"sEcReT": Child()}), "cats.…"),
    (Holder(value=NIGHT), "value"),
    (Holder(value={1}), "value"),
    (Holder(value=(1,)), "value"),
    (Holder(value=[{"a": Decimal("1.5")}]), "value.0.…"),
    (Holder(number=float("nan")), "number"),
    (Holder(number=float("inf")), "number"),
    (Holder.model_construct(by=3), "by"),
    (Holder().model_copy(update={"number": "many"}), "number"),
]


@pytest.mark.parametrize(("value", "place"), LOST)
def test_a_value_that_would_be_lost_is_named_by_its_field(value: Any, place: str) -> None:
    what = lost(type(value), value, written_text(type(value), value))
    assert what is not None
    assert what.startswith(place)
    assert "sEcReT" not in what


@pytest.mark.parametrize("value", [Alike(hidden=5), Partly(hidden=5), Rounding(amount=1.25)])
def test_a_loss_is_seen_whatever_the_class_compares(value: Any) -> None:
    what = lost(type(value), value, written_text(type(value), value))
    assert what in {"hidden would be another value", "amount would be another value"}


def test_another_class_and_what_cannot_be_read_are_named() -> None:
    assert lost(Dog, Cat(), written_text(Dog, Cat())) == "it is no Dog"
    assert "kind" in str(lost(Cat, Cat().model_copy(update={"kind": "dog"}), '{"kind":"dog"}'))


class Many(BaseModel):
    tags: set[str] = set()
    deep: dict[str, list[frozenset[str]]] = {}
    anything: Any = None
    pairs: frozenset[tuple[str, int]] = frozenset()
    own: Annotated[set[str], PlainSerializer(lambda names: sorted(names, key=len))] = set()

    @computed_field
    def upper(self) -> set[str]:
        return {tag.upper() for tag in self.tags}


@example({"amber", "black", "blue", "green", "red", "teal", "white"})
@given(TEXTS)
def test_sets_are_written_in_the_order_of_their_items_json(names: set[str]) -> None:
    value = Many(
        tags=names, deep={"a": [frozenset(names)]}, anything=[names], pairs=frozenset((name, 1) for name in names)
    )
    for content in (written(Many, value), shown(value)):
        order = sorted(names, key=json.dumps)
        assert content["tags"] == content["deep"]["a"][0] == content["anything"][0] == order
        assert content["upper"] == sorted(content["upper"])
        assert content["pairs"] == [[name, 1] for name in order]


def test_every_process_writes_the_same() -> None:
    program = (
        "from tests.unit.values.test_round_trips import *\n"
        "names = {'amber', 'black', 'blue', 'green', 'red'}\n"
        "value = Many(tags=names, deep={'a': [frozenset(names)]}, pairs=frozenset((name, 1) for name in names))\n"
        "print(written_text(Many, value), shown(value))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(said) == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_does_not_have_is_not_shown(number: float) -> None:
    with pytest.raises(HandlerFailed, match="A Holder holds NaN"):
        shown(Holder(number=number))


class Sum(BaseModel):
    model_config = ConfigDict(strict=True)
    amount: Decimal = Decimal(0)
    at: datetime | None = None
    rate: float = 0


class Sums(BaseModel):
    model_config = ConfigDict(strict=True)
    by: dict[str, Sum | int] = {}
    rows: tuple[Sum | None, ...] = ()
    day: date | None = None
    amounts: frozenset[Decimal] = frozenset()
    either: Decimal | int = 0


def test_a_strict_model_reads_times_beside_numbers_of_more_digits_than_a_double_keeps() -> None:
    line = '{"amount": 99999999999999.99, "at": "2026-01-02T00:00:00Z", "rate": 0.12345678901234567891}'
    text = (
        f'{{"by": {{"a": {line}}}, "rows": [{line}, null], "day": "2026-01-02", "amounts": [0.10000000000000000001], '
        '"either": 99999999999999.99}'
    )
    line_read = Sum(
        amount=Decimal("99999999999999.99"), at=datetime(2026, 1, 2, tzinfo=timezone.utc), rate=0.12345678901234568
    )
    assert read_text(Sums, text) == Sums(
        by={"a": line_read},
        rows=(line_read, None),
        day=date(2026, 1, 2),
        amounts=frozenset({Decimal("0.10000000000000000001")}),
        either=Decimal("99999999999999.99"),
    )
    with pytest.raises(ValidationError, match="amounts"):
        read_text(Sums, '{"amounts": 99999999999999.99, "day": "2026-01-02"}')
