"""Seeded histories of `benchmarks.growth` are documents as the library writes them."""

from __future__ import annotations

import pytest

from benchmarks.contenders import ROUTES
from benchmarks.growth import cost_after
from benchmarks.seeding import History
from benchmarks.subjects import TIMED, UNTIMED, Subject, subjects
from benchmarks.targets import kept_a_message
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
