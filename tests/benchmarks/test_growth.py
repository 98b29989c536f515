"""The measurement of growth: seeded histories are what the library would have written, and it finds what grows."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.charts import growth_chart
from benchmarks.contenders import ROUTES
from benchmarks.growth import cost_after, growing_costs
from benchmarks.library_growth import library_costs
from benchmarks.seeding import History
from benchmarks.subjects import Subject, subjects
from local_cosmos.inprocess import running_emulator

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize(
    "subject", [one for one in subjects() if "event-sourced" in one.name], ids=lambda one: one.name
)
async def test_a_seeded_history_is_what_the_library_would_have_written(subject: Subject) -> None:
    with running_emulator() as emulator:
        costs = await cost_after(subject, 40, emulator)
    assert [cost["requests"] for cost in costs.values()] == [3, 3, 3]


async def test_a_history_that_the_library_would_not_have_written_is_noticed() -> None:
    subject = subjects()[0]

    class Forgetful(History):
        def grow(self, messages: int) -> bool:
            grown = super().grow(messages)
            self.apart.popitem()
            self.apart.pop(next(iter(self.apart)))
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
    bounded = {"after": {"10": costs(2, 10.0), "4000": costs(2, 1_500.0)}, "most": 4_008}
    library = {"Outbox()": {"0": costs(3, 20.0), "1000000": costs(3, among)}}
    strategies = {"Outbox()": {"after": after, "most": None}, "bounded": bounded}
    return {"strategies": strategies, "library": library}


def test_unbounded_growth_is_reported() -> None:
    assert list(growing_costs(result())) == []
    for dearer in (costs(3.1, 20.0), costs(3, 21.1)):
        (sentence,) = growing_costs(result({"100000": dearer}))
        assert sentence.startswith("Outbox(), first: ")
    (sentence,) = growing_costs(result(among=21.1))
    assert sentence.startswith("Outbox() among records, first: ")


async def test_records_of_other_entities_cost_a_message_nothing() -> None:
    costs = await library_costs(["Outbox()"], (0, 1_000))
    alone, among = costs["Outbox()"].values()
    assert alone["first"]["requests"] == among["first"]["requests"] == pytest.approx(3.0625)
    assert among["first"]["request units"] == pytest.approx(alone["first"]["request units"], rel=0.01)
    assert alone["duplicate of the oldest"] == among["duplicate of the oldest"]


def test_the_chart_shows_every_strategy_and_where_one_ends() -> None:
    drawn = growth_chart(result())
    assert drawn.count(">Outbox()<") == drawn.count(">bounded<") == 1
    assert drawn.count("no more than 4,008") == 2
