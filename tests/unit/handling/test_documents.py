"""Documents over releases: the state that is read next is the one that was returned, and what nobody here knows survives."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    MISSING,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    computed_field,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from exactlyonce import Colocated, ConfigurationError, Entity, Outbox, VersionStream, message
from exactlyonce.effects.attempt import Before
from exactlyonce.errors import DamagedDocument, HandlerFailed
from exactlyonce.handling.documents import Declared
from exactlyonce.handling.entities import StateShape
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.testing import App
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from tests.unit.handling.test_runner import AT

ORDER = EntityRef("order", ("o",), "o")
NUMBERS = st.integers(-3, 3)


def shape(model: Any, **declared: tuple[str, ...]) -> StateShape:
    return StateShape(model, ("/id",), Declared(**declared))


def saved(model: Any, state: Any, stored: dict[str, Any], **declared: tuple[str, ...]) -> dict[str, Any]:
    """The document after a save, without its id; the state that it holds is the one that was saved."""
    kind = shape(model, **declared)
    body = kind.write(ORDER, state, Json.of({"id": "o", **stored}))
    assert kind.read(ORDER, body) == state
    return {name: value for name, value in body.value.items() if name != "id"}


class Plain(BaseModel):
    total: int = 0
    note: str | None = None


class ByValidator(Plain):
    @model_validator(mode="before")
    @classmethod
    def _old(cls, given: Any) -> Any:
        if isinstance(given, dict) and "sum" in given:
            given = {**given, "total": given["sum"]}
            del given["sum"]
        return given


class NewFirst(Plain):
    @model_validator(mode="before")
    @classmethod
    def _old(cls, given: Any) -> Any:
        early = {"note": "closed"} if "closed" in given else {}
        return {**early, **({"total": given["sum"]} if "sum" in given else {}), **given}


class OldFirst(Plain):
    total: int = Field(0, validation_alias=AliasChoices("sum", "total"), serialization_alias="total")


class ByPath(Plain):
    total: int = Field(0, validation_alias=AliasChoices(AliasPath("amounts", "sum"), "total"))


class LeftOut(Plain):
    total: int = Field(0, exclude_if=lambda value: not value)
    note: str | None = Field(None, exclude_if=lambda value: value is None)


class WithoutEmpty(Plain):
    @model_serializer(mode="wrap")
    def _write(self, handler: Any) -> Any:
        return {name: value for name, value in handler(self).items() if value not in (None, 0)}


class Open(Plain):
    model_config = ConfigDict(extra="allow")


class Root(RootModel[dict[str, int]]):
    root: dict[str, int] = {}


class Absent(Plain):
    total: int | MISSING = MISSING  # type: ignore[assignment]


class Line(BaseModel):
    quantity: int = Field(0, validation_alias=AliasChoices("pieces", "quantity"), exclude_if=lambda value: not value)


class Lines(Plain):
    lines: dict[str, Line] = {}
    first: Line | None = None
    more: list[Line] = []


class Sparse(TypedDict, total=False):
    quantity: int


class Typed(Plain):
    lines: dict[str, Sparse] = {}


@dataclass
class Data:
    total: int = Field(default=0, validation_alias=AliasChoices("sum", "total"))
    lines: dict[str, Line] = Field(default_factory=dict)


TEXTS = st.sampled_from([None, "", "x"])
PLAIN: dict[str, st.SearchStrategy[Any]] = {"total": NUMBERS, "note": TEXTS}
LINE = st.builds(Line.model_construct, quantity=NUMBERS)
MAPS = st.dictionaries(st.sampled_from("ab"), LINE)
MODELS: dict[type, st.SearchStrategy[Any]] = {
    **{
        model: st.builds(model.model_construct, **PLAIN)
        for model in (Plain, ByValidator, OldFirst, ByPath, LeftOut, WithoutEmpty)
    },
    Open: st.builds(Open, extra=NUMBERS, **PLAIN) | st.builds(Open, **PLAIN),
    Root: st.builds(Root, st.dictionaries(st.sampled_from(["a", "b", "total"]), NUMBERS)),
    Absent: st.builds(Absent.model_construct, total=NUMBERS | st.just(MISSING), note=TEXTS),
    Lines: st.builds(
        Lines.model_construct, lines=MAPS, first=st.none() | LINE, more=st.lists(LINE, max_size=2), **PLAIN
    ),
    Typed: st.builds(
        Typed, lines=st.dictionaries(st.sampled_from("ab"), st.fixed_dictionaries({}, optional={"quantity": NUMBERS}))
    ),
    Data: st.builds(Data, total=NUMBERS, lines=MAPS),
}
OLD_LINES = st.fixed_dictionaries({}, optional={"quantity": NUMBERS, "pieces": NUMBERS, "price": NUMBERS})
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "total": NUMBERS,
        "sum": NUMBERS,
        "note": TEXTS,
        "other": st.just({"deep": [1]}),
        "amounts": st.fixed_dictionaries({"sum": NUMBERS}),
        "lines": st.dictionaries(st.sampled_from("abc"), OLD_LINES),
        "first": st.none() | OLD_LINES,
        "more": st.lists(OLD_LINES, max_size=2),
    },
)
"""As former and newer releases, and other programs, may have left them."""


@pytest.mark.parametrize("model", MODELS)
@given(data=st.data())
def test_the_state_that_is_read_next_is_the_one_that_was_saved_or_the_save_names_a_property(
    model: type, data: Any
) -> None:
    kind = shape(model)
    stored, states = data.draw(DOCUMENTS), data.draw(st.lists(MODELS[model], min_size=1, max_size=3))
    body = Json.of({"id": "o", **stored})
    try:
        kind.read(ORDER, body)
    except DamagedDocument:
        return
    for state in states:
        try:
            body = kind.write(ORDER, state, body)
        except DamagedDocument as error:
            assert "'sum'" in str(error) or ".price'" in str(error) or "'amounts'" in str(error), error  # noqa: PT017
            return
        assert kind.read(ORDER, body) == state


@pytest.mark.parametrize("model", [Plain, ByValidator, LeftOut, Lines, Typed])
@given(data=st.data())
def test_properties_that_no_release_declared_survive_every_save(model: type, data: Any) -> None:
    kind, other = shape(model), {"deep": [{"a": 1}]}
    body = Json.of({"id": "o", **data.draw(st.sampled_from([{}, {"total": 1, "note": None}])), "other": other})
    for state in data.draw(st.lists(MODELS[model], min_size=1, max_size=3)):
        body = kind.write(ORDER, state, body)
        assert body.value["other"] == other


@message("documents.put")
class Put(BaseModel):
    key: str = "k"
    state: dict[str, Any] = {}


@pytest.mark.parametrize(
    "strategy",
    [Outbox(), Colocated(), VersionStream()],
    ids=["outbox", "colocated", "stream"],
)
@given(data=st.data())
def test_every_strategy_stores_the_state_that_was_returned(strategy: Any, data: Any) -> None:
    model = data.draw(st.sampled_from([LeftOut, WithoutEmpty, Open, Root, Lines, Typed, Data]))
    states = iter(wanted := data.draw(st.lists(MODELS[model], min_size=2, max_size=3)))
    kept: list[Any] = []
    entity: Entity[Any] = Entity("order", state=model, container="c", partition_key="/key", strategy=strategy)

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Any, given: Put, context: Any) -> Any:
        kept.append(state)
        return next(states)

    app = App(entity)
    for _ in wanted:
        app.send(entity, Put())
    assert [app.state(entity, "k"), *reversed(kept[1:])] == list(reversed(wanted))


class Priced(BaseModel):
    quantity: int = 0


class Basket(BaseModel):
    lines: dict[str, Priced] = {}
    rows: list[Priced] = []
    best: Priced | None = None


PRICED = {"quantity": 1, "price": 300}


def test_properties_of_a_newer_release_survive_in_mappings_and_models() -> None:
    stored = {"lines": {"tea": PRICED, "cup": PRICED}, "rows": [], "best": {**PRICED, "deep": {"more": 1}}}
    state = Basket(lines={"tea": Priced(quantity=2), "pot": Priced()}, best=Priced(quantity=3))
    document = saved(Basket, state, stored)
    assert document["lines"] == {"tea": {"quantity": 2, "price": 300}, "pot": {"quantity": 0}}
    assert document["best"] == {"quantity": 3, "price": 300, "deep": {"more": 1}}


def test_properties_of_a_newer_release_survive_in_a_list_that_only_grows() -> None:
    rows = [Priced(quantity=1), Priced(quantity=1)]
    for more in ([], [Priced(quantity=7)]):
        document = saved(Basket, Basket(rows=[*rows, *more]), {"rows": [PRICED, PRICED]})
        assert document["rows"] == [PRICED, PRICED, *({"quantity": 7} for _ in more)]


@pytest.mark.parametrize("rows", [[], [Priced(quantity=2)], [Priced(quantity=7), Priced(quantity=1)]])
def test_a_list_that_changed_with_properties_that_are_not_known_is_refused(rows: list[Priced]) -> None:
    with pytest.raises(DamagedDocument, match=r"order/o has 'rows\.\*\.price'.*list.*Nothing was changed") as caught:
        saved(Basket, Basket(rows=rows), {"rows": [PRICED, {**PRICED, "price": 987}]})
    assert "987" not in str(caught.value)


@pytest.mark.parametrize("more", [{}, {"other": 3}], ids=str)
def test_a_result_that_would_be_read_as_something_else_is_refused_over_a_stored_document_too(more: Any) -> None:
    with pytest.raises(HandlerFailed, match="would be read as something else"):
        saved(Plain, Plain.model_construct(total="7"), {"total": 5, "note": None, **more})  # type: ignore[arg-type]


class Seat(BaseModel):
    model_config = ConfigDict(frozen=True)
    number: int = 0


class Seats(Plain):
    seats: frozenset[Seat] = frozenset()


def test_properties_of_a_newer_release_survive_in_a_set_whose_order_tells_their_items() -> None:
    stored = {"total": 1, "note": None, "seats": [{"number": 1, "row": 7}, {"number": 2, "row": 6}]}
    state = Seats(total=2, seats=frozenset({Seat(number=1), Seat(number=2)}))
    assert saved(Seats, state, stored) == {**stored, "total": 2}


@pytest.mark.parametrize(
    "seats", [[{"number": 2, "row": 6}, {"number": 1, "row": 7}], [{"number": 1, "row": 6}, {"number": 1, "row": 7}]]
)
def test_a_property_in_a_set_that_may_be_of_another_item_is_refused(seats: list[dict[str, int]]) -> None:
    stored = {"total": 1, "note": None, "seats": seats}
    with pytest.raises(DamagedDocument, match=r"'seats\.\*\.row'.*set, so its item is unknown"):
        saved(Seats, shape(Seats).read(ORDER, Json.of(stored)), stored)


def test_keys_of_mappings_are_not_quoted() -> None:
    with pytest.raises(DamagedDocument, match=r"'lines\.\*\.pieces'.*lacks 'quantity'") as caught:
        saved(Basket, Basket(lines={"sEcReT": Priced()}), {"lines": {"sEcReT": {"pieces": 4}}, "rows": []})
    assert "sEcReT" not in str(caught.value)


class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str = ""


class Cash(BaseModel):
    kind: Literal["cash"] = "cash"
    given: int = 0


class Payment(BaseModel):
    by: Annotated[Card | Cash, Field(discriminator="kind")] = Cash()
    history: dict[str, Card | Cash] = {}


def test_a_property_of_one_variant_does_not_go_into_another() -> None:
    card = {"kind": "card", "number": "1", "expires": "12/30"}
    state = Payment(by=Cash(), history={"a": Cash(), "b": Card(number="2")})
    document = saved(Payment, state, {"by": card, "history": {"a": card, "b": card}})
    assert document["by"] == document["history"]["a"] == {"kind": "cash", "given": 0}
    assert document["history"]["b"] == {**card, "number": "2"}


def test_a_field_that_was_renamed_without_more_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        DamagedDocument, match=r"'sum', which no field.*lacks 'total'.*AliasChoices.*removed=.*foreign="
    ) as caught:
        saved(Plain, Plain(total=10), {"sum": 987, "note": None})
    assert "987" not in str(caught.value)
    assert saved(Plain, Plain(total=10), {"sum": 5, "note": None}, removed=("sum",)) == {"total": 10, "note": None}
    assert saved(Plain, Plain(total=10), {"sum": 5}, foreign=("sum",)) == {"total": 10, "note": None, "sum": 5}


class ByAlias(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    line_total: int = 0


class HoldsAliases(BaseModel):
    by: dict[str, dict[str, ByAlias]] = {}
    rows: list[ByAlias] = []


@pytest.mark.parametrize(
    ("model", "stored", "name"),
    [
        (ByAlias, {"line_total": 5}, "line_total"),
        (HoldsAliases, {"by": {"a": {"b": {"line_total": 5}}}, "rows": []}, r"by\.\*\.\*\.line_total"),
        (HoldsAliases, {"by": {}, "rows": [{"line_total": 5}]}, r"rows\.\*\.line_total"),
    ],
)
def test_an_alias_that_replaced_the_name_of_its_field_is_a_renamed_field(
    model: type, stored: dict[str, Any], name: str
) -> None:
    with pytest.raises(DamagedDocument, match=f"'{name}', which no field.*lacks 'lineTotal'"):
        saved(model, shape(model).read(ORDER, Json.of(stored)), stored)


def test_an_alias_beside_the_name_of_its_field_takes_over_the_value() -> None:
    class ByBoth(ByAlias):
        model_config = ConfigDict(populate_by_name=True)

    read = shape(ByBoth).read(ORDER, Json.of({"line_total": 5}))
    assert saved(ByBoth, ByBoth(lineTotal=read.line_total + 1), {"line_total": 5}) == {"lineTotal": 6}


@pytest.mark.parametrize(
    ("old", "kind", "empty"), [(True, int, 0), (1, bool, False), (False, float, 1.5), (0, bool | None, None)]
)
def test_a_truth_value_and_a_number_are_no_two_names_of_one_field(old: Any, kind: Any, empty: Any) -> None:
    model = create_model("Model", total=(int, 0), more=(kind, empty))
    assert saved(model, model(total=7), {"total": 5, "old": old}) == {"total": 7, "more": empty, "old": old}


@pytest.mark.parametrize(
    "stored", [{"sum": "x", "note": ""}, {"sum": 0, "note": ""}, {"sum": 5, "total": 1, "note": ""}]
)
def test_an_unknown_property_is_no_old_name_where_no_value_could_be_lost(stored: dict[str, Any]) -> None:
    assert saved(Plain, Plain(total=10, note=""), stored)["sum"] == stored["sum"]


def test_an_adopted_document_lacks_fields_that_were_not_renamed() -> None:
    body = shape(Plain).write(ORDER, Plain(total=3), Json.of({"id": "o", "sum": 5}), adopted=True)
    assert body.value == {"id": "o", "total": 3, "note": None, "sum": 5}


def test_a_removed_property_goes_at_any_depth_and_a_foreign_one_stays() -> None:
    stored = {"lines": {"a": {**PRICED, "note": "p"}}, "rows": [PRICED], "owner": "p", "tag": 1}
    document = saved(
        Basket,
        Basket(lines={"a": Priced(quantity=1)}, rows=[]),
        stored,
        removed=("lines.*.note", "rows.*.price", "owner"),
        foreign=("tag", "lines.*.price"),
    )
    assert document == {"lines": {"a": PRICED}, "rows": [], "best": None, "tag": 1}


def test_a_foreign_property_stays_in_what_nobody_knows() -> None:
    stored = {"total": 1, "note": None, "crm": {"rank": 3, "more": {"rank": 4}, "other": 5}, "deep": {"a": {"b": 6}}}
    document = saved(Plain, Plain(total=2), stored, foreign=("crm.rank", "crm.more.rank", "deep.a.b"))
    assert document == {**stored, "total": 2}


@pytest.mark.parametrize("extra", ["allow", "forbid", "ignore"])
def test_no_model_sees_removed_and_foreign_properties(extra: Any) -> None:
    class Exact(BaseModel):
        model_config = ConfigDict(extra=extra)
        total: int = 0

    assert saved(Exact, Exact(total=2), {"total": 1, "old": 1, "tag": 2}, removed=("old",), foreign=("tag",)) == {
        "total": 2,
        "tag": 2,
    }


@pytest.mark.parametrize("name", ["total", "sum", "id", "_ledger", "ttl", "", "a.", "a.*"])
def test_a_property_that_is_read_or_reserved_is_neither_removed_nor_foreign(name: str) -> None:
    for kind in ("removed", "foreign"):
        with pytest.raises(ConfigurationError, match="removed= "):
            shape(OldFirst, **{kind: (name,)})
    with pytest.raises(ConfigurationError, match=r"lines\.\*\.quantity"):
        shape(Basket, removed=("lines.*.quantity",))
    with pytest.raises(ConfigurationError, match="'old' is in removed= and in foreign="):
        shape(Plain, removed=("old",), foreign=("old",))


def test_a_document_without_a_ledger_is_refused_unless_the_entity_adopts_such() -> None:
    def handled(version: int | None, *, adopts: bool) -> Any:
        entity: Entity[Any] = Entity("order", state=Plain, container="c", strategy=Outbox(), adopts=adopts)
        entity.handles(Put, key=lambda put: put.key)(lambda state, put, context: Plain(total=state.total + 1))
        before = Before(Json.of({"id": "k", "total": 4}), AT, "tx", version=version)
        return Runner(entity, entity.ref("k"), Routes())(
            before, Envelope("web", "m", "documents.put", Json.of({}))
        ).body.value

    with pytest.raises(DamagedDocument, match=r"web/m.*order/k has no ledger.*adopts=True"):
        handled(1, adopts=False)
    assert (
        handled(1, adopts=True)["total"]
        == handled(2, adopts=False)["total"]
        == handled(None, adopts=False)["total"]
        == 5
    )


def test_a_state_with_a_computed_field_is_read_whatever_its_model_thinks_of_more_properties() -> None:
    for extra in ("allow", "forbid", "ignore"):

        class Doubling(BaseModel):
            model_config = ConfigDict(extra=extra)
            total: int = 0

            @computed_field
            def double(self) -> int:
                return 2 * self.total

        class Holder(BaseModel):
            model_config = ConfigDict(extra=extra)
            inner: list[Doubling] = []
            by: dict[str, Doubling] = {}

        state = Holder(inner=[Doubling(total=1)], by={"a": Doubling(total=2)})
        document = saved(Holder, state, {"inner": [], "by": {"a": {"total": 9, "double": 18}}})
        assert document == {"inner": [{"total": 1, "double": 2}], "by": {"a": {"total": 2, "double": 4}}}


def test_a_serializer_that_writes_no_object_is_refused() -> None:
    class Number(BaseModel):
        total: int = 0

        @model_serializer
        def _write(self) -> int:
            return self.total

    with pytest.raises(HandlerFailed, match="Number"):
        shape(Number).write(ORDER, Number(), None)


def test_a_clock_in_a_default_is_no_sign_that_a_property_is_read() -> None:
    ticks = iter(range(100))

    class Ticking(BaseModel):
        total: int = 0
        at: int = Field(default_factory=lambda: next(ticks))

    assert saved(Ticking, Ticking(total=1, at=5), {"total": 1, "other": [1]})["other"] == [1]


class NewWins(Plain):
    @model_validator(mode="before")
    @classmethod
    def _old(cls, given: Any) -> Any:
        return {"total": given["sum"], **given} if isinstance(given, dict) and "sum" in given else given


class ByInit(Plain):
    def __init__(self, **given: Any) -> None:
        super().__init__(**{"total": given.get("sum", 0), **given})


class Resetting(Plain):
    """A model that no probe shows to read an old name: only the stored value matters."""

    @model_validator(mode="before")
    @classmethod
    def _old(cls, given: Any) -> Any:
        return {**given, "total": 0} if given.get("sum") == 0 else given


@pytest.mark.parametrize("more", [{}, {"other": [1]}], ids=["alone", "beside a foreign property"])
@pytest.mark.parametrize(
    ("model", "old"),
    [
        (ByValidator, {"sum": 5, "note": ""}),
        (ByValidator, {"sum": 5}),
        (ByValidator, {"sum": 0}),
        (OldFirst, {"sum": 5}),
        (OldFirst, {"sum": 0}),
        (NewFirst, {"sum": 5, "note": ""}),
        (NewFirst, {"sum": 0, "note": ""}),
        (NewFirst, {"total": 5, "closed": False}),
        (NewWins, {"sum": 5, "note": ""}),
        (ByInit, {"sum": 5, "note": ""}),
        (Resetting, {"sum": 0, "total": 0, "note": None}),
    ],
)
def test_an_old_name_that_the_model_reads_goes_and_is_no_sign_of_a_renamed_field(
    model: type[Plain], old: dict[str, Any], more: dict[str, Any]
) -> None:
    state = model.model_construct(total=7, note=None)
    assert saved(model, state, {**old, **more}) == {"total": 7, "note": None, **more}


def test_an_old_name_that_tells_variants_apart_goes() -> None:
    def sort(stored: Any) -> Any:
        return stored.get("sort") or stored.get("kind") if isinstance(stored, dict) else stored.kind

    class Paid(BaseModel):
        by: Annotated[Annotated[Card, Tag("card")] | Annotated[Cash, Tag("cash")], Discriminator(sort)] = Cash()

    document = saved(
        Paid, Paid(by=Card(number="2")), {"by": {"sort": "card", "kind": "card", "number": "1", "other": 3}}
    )
    assert document == {"by": {"kind": "card", "number": "2", "other": 3}}


class Cost(BaseModel):
    quantity: int = 0
    cost: int | None = None


class Costs(BaseModel):
    lines: dict[str, Cost] = {}
    rows: list[Cost] = []
    mixed: list[dict[str, int]] = []


class Peeking(Costs):
    @model_validator(mode="before")
    @classmethod
    def _same(cls, given: Any) -> Any:
        return given


@pytest.mark.parametrize("model", [Costs, Peeking])
@pytest.mark.parametrize("more", [{"unknown": "x", "other": {"a": 1}}, {"cost": 1}])
def test_a_save_reads_a_document_as_often_whatever_its_size(model: type, more: dict[str, Any]) -> None:
    def work(size: int) -> tuple[int, int]:
        line = {"quantity": 1, **more}
        mixed = [*({"a": 1} for _ in range(size)), *({"b": 1} for _ in range(size))]
        stored = {"mixed": mixed, "lines": {str(key): line for key in range(size)}, "rows": [line] * size}
        state = shape(model).read(ORDER, Json.of(stored))
        calls = reads = 0

        def count(_: Any, event: str, called: Any) -> None:
            nonlocal calls, reads
            calls += 1
            reads += event == "c_call" and called.__name__ == "validate_json"

        sys.setprofile(count)
        try:
            saved(model, state, stored)
        finally:
            sys.setprofile(None)
        return calls, reads

    work(1)  # Schemas are made once.
    (few, reads), (many, as_many) = work(20), work(80)
    assert many < 5 * few
    assert reads == as_many > 0


@pytest.mark.parametrize("stored", [{"a": {"old": 5}, "b": {"old": None}}, {"a": {"old": "x"}, "b": {"old": 5}}])
def test_a_renamed_field_is_seen_though_not_all_of_its_values_fit(stored: dict[str, Any]) -> None:
    class Exact(BaseModel):
        new: int = 0

    class Mapping(BaseModel):
        lines: dict[str, Exact] = {}

    with pytest.raises(DamagedDocument, match=r"'lines\.\*\.old'.*lacks 'new'"):
        saved(Mapping, Mapping(), {"lines": stored})
