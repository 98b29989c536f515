"""The screen clears entities that are in order. That it clears no other is what the findings of all cases show."""

from __future__ import annotations

import json

from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.screen import screened
from tests.spark.transforms import healthy_cases
from tests.spark.transforms.planting import LIMITS, seconds


def test_of_what_is_in_order_the_screen_clears_most(planted_facts: Facts) -> None:
    doubts = screened(planted_facts, LIMITS, seconds()).where("doubtful")
    doubted = {json.loads(row["entity"])[-1] for row in doubts.collect()}
    assert len(doubted & set(healthy_cases.CASES)) < len(healthy_cases.CASES) / 2, sorted(
        doubted & set(healthy_cases.CASES)
    )
