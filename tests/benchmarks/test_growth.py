"""The measurement of growth: seeded histories are what the library would have written, and it finds what grows."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.charts import growth_chart
from benchmarks.contenders import ROUTES, own
from benchmarks.entity_growth import memory_after
from benchmarks.growth import cost_after, growing_costs
from benchmarks.library_growth import library_costs
from benchmarks.seeding import History
from benchmarks.subjects import TIMED, UNTIMED, Subject, subjects
from benchmarks.targets import growth_targets, kept_a_message, missed
from local_cosmos.inprocess import running_emulator

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize(
    ("subject", "requests"),
    [
        pytest.param(item, requests, id=item.name)
        for item in subjects()
        if (requests := {TIMED: [1 + 1 / 20, 0, 1], "VersionStream(), event-sourced": [3, 3, 3]}.get(item.name))
    ],
)
async def test_a_seeded_history_is_what_the_library_would_have_written(subject: Subject, requests: list[float]) -> None:
    with running_emulator() as emulator:
        costs = await cost_after(subject, 40, emulator)
    assert [cost["requests"] for cost in costs.values()] == pytest.approx(requests, abs=0.01)


def test_messages_leave_less_than_a_hundred_bytes_each_in_pages_and_none_in_the_document() -> None:
    kept = {}
    for subject in subjects()[:2]:
        stored = {}
        for messages in (340, 3_400):
            history = History(subject, ROUTES)
            history.grow(messages)
            stored[str(messages)] = history.stored
        kept[subject.name] = kept_a_message(stored)
    assert kept[TIMED] == pytest.approx({"document": 0, "other documents": 43}, abs=1)
    assert kept[UNTIMED] == pytest.approx({"document": 0, "other documents": 62}, abs=1)


async def test_what_a_process_remembers_of_entities_is_measured_in_ascending_order() -> None:
    measured = await memory_after(own()[0], (20, 40))
    assert list(measured) == ["20", "40"]
    assert all(kib > 1_000 for kib in measured.values())


def test_a_process_or_a_document_that_grows_is_reported() -> None:
    def grown(document: int = 900, kib: int = 50_000) -> dict[str, Any]:
        stored = {
            "100": {"document": 900, "other documents": 200},
            "1100": {"document": document, "other documents": 50_200},
        }
        return {"strategies": {TIMED: {"bytes": stored}}, "entities": {"20": 50_000, "100": kib}}

    assert list(missed(growth_targets(grown()))) == []
    assert list(missed(growth_targets(grown(document=904)))) == [], "less than a hundredth of a byte"
    for larger, sentence in (
        (grown(document=910), "Bytes kept a message in the entity's document: 0.01; at most 0 is wanted."),
        (
            grown(kib=53_000),
            "Memory of the process after 100 entities, times that after a fifth: 1.06; at most 1.05 is",
        ),
    ):
        (reported,) = missed(growth_targets(larger))
        assert reported.startswith(sentence)


async def test_a_history_that_the_library_would_not_have_written_is_noticed() -> None:
    subject = next(item for item in subjects() if item.name == UNTIMED)

    class Forgetful(History):
        def grow(self, messages: int) -> bool:
            grown = super().grow(messages)
            self.apart = {id: {**page, "marks": "", "hashes": []} for id, page in self.apart.items()}
            return grown

    history = Forgetful(subject, ROUTES)
    with running_emulator() as emulator, pytest.raises(RuntimeError, match="message 1 of 40 was not a duplicate"):
        await cost_after(subject, 40, emulator, history=history)


def costs(requests: float, units: float) -> dict[str, Any]:
    return {
        "first": {"requests": requests, "request units": units},
        "duplicate of the oldest": {"requests": 2, "request units": 2},
    }


def result(changed: dict[str, Any] | None = None, among: float = 20.0) -> dict[str, Any]:
    after = {"10": costs(3, 20.0), "1000": costs(3, 20.5), "100000": costs(3, 20.9), **(changed or {})}
    library = {"Outbox()": {"0": costs(3, 20.0), "1000000": costs(3, among)}}
    return {"strategies": {"Outbox()": {"after": after}}, "library": library}


def test_unbounded_growth_is_reported() -> None:
    assert list(growing_costs(result())) == []
    for dearer in (costs(3.1, 20.0), costs(3, 21.1)):
        (sentence,) = growing_costs(result({"100000": dearer}))
        assert sentence.startswith("Outbox(), first: ")
    (sentence,) = growing_costs(result(among=21.1))
    assert sentence.startswith("Outbox() among records, first: ")


async def test_records_of_other_entities_cost_a_message_nothing() -> None:
    costs = await library_costs([UNTIMED], (0, 1_000))
    alone, among = costs[UNTIMED].values()
    assert alone["first"]["requests"] == among["first"]["requests"] == pytest.approx(2 + 1 / 20, abs=0.05)
    assert among["first"]["request units"] == pytest.approx(alone["first"]["request units"], rel=0.01)
    copy, other = alone["duplicate of the oldest"], among["duplicate of the oldest"]
    assert copy["request units"] == pytest.approx(other["request units"], rel=0.01)
    assert {**copy, "request units": 0} == {**other, "request units": 0}


def test_what_costs_nothing_must_go_on_costing_nothing() -> None:
    nothing = {"requests": 0.0, "request units": 0.0}
    for cost, reported in ((nothing, 0), ({"requests": 0.1, "request units": 0.1}, 1)):
        after = {"10": costs(1, 11.0) | {"duplicate of the oldest": nothing}, "100": costs(1, 11.0)}
        after["100"]["duplicate of the oldest"] = cost
        grown = {"strategies": {TIMED: {"after": after}}, "library": {}}
        assert len(list(growing_costs(grown))) == reported


def test_the_chart_shows_every_strategy() -> None:
    assert growth_chart(result()).count(">Outbox()<") == 1
