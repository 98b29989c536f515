"""Rules for trouble: which can be, and which operations they hit."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from local_service_bus.faults import FaultRule, Faults


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"operation": "read"}, "There is no operation 'read'; there are send"),
        ({"operation": "send", "action": "explode"}, "There is no action 'explode'; there are cut_before"),
        ({"operation": "send", "action": "lock_lost"}, "send has no lock to lose"),
        ({"operation": "peek", "action": "redeliver"}, "peek delivers nothing again"),
        ({"operation": "send", "probability": 2.0}, "A probability is between 0 and 1, not 2.0."),
        ({"operation": "send", "action": "slow", "seconds": -1}, "Nothing can be slow by -1 seconds."),
    ],
)
def test_a_rule_that_could_never_hit_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FaultRule(**wrong)


def test_a_rule_hits_so_many_times_and_after_so_many() -> None:
    faults = Faults(Random(0))
    rule = faults.add(FaultRule("send", times=2, skip=1))
    assert [faults.strike("send", "q") is not None for _ in range(5)] == [False, True, True, False, False]
    assert faults.hits(rule) == 2


def test_a_rule_hits_only_what_it_names() -> None:
    faults = Faults(Random(0))
    faults.add(FaultRule("complete", "Orders", times=None, message_id="a"))
    assert faults.strike("complete", "orders", ("b", "a"))
    for operation, entity, ids in (
        ("abandon", "orders", ("a",)),
        ("complete", "q", ("a",)),
        ("complete", "orders", ()),
    ):
        assert not faults.strike(operation, entity, ids)
    faults.clear()
    assert not faults.strike("complete", "orders", ("a",))


def test_chance_is_the_same_with_the_same_seed() -> None:
    def struck(seed: int) -> list[bool]:
        faults = Faults(Random(seed))
        faults.add(FaultRule("send", times=None, probability=0.5))
        return [faults.strike("send", "q") is not None for _ in range(50)]

    assert struck(3) == struck(3) != struck(4)
    assert 10 < sum(struck(3)) < 40
