"""The broken twins of the protocols of one partition, each of which is found; and what holds next to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.broken_cleaners import BROKEN_CLEANERS, HARMLESS_CLEANERS
from tests.model.broken_companions import BROKEN_COLOCATED, BrokenCompanions
from tests.model.broken_replays import BROKEN_REPLAYS
from tests.model.broken_resequencers import BROKEN_RESEQUENCERS
from tests.model.broken_streams import BROKEN_STREAMS
from tests.model.harmless_companions import HARMLESS
from tests.model.searches import assert_falls, assert_holds
from verification.checker.search import explore
from verification.world.scenario import Scenario

ZOO: tuple[BrokenCompanions, ...] = (
    *BROKEN_COLOCATED,
    *BROKEN_STREAMS,
    *BROKEN_RESEQUENCERS,
    *BROKEN_REPLAYS,
    *BROKEN_CLEANERS,
)


LIMIT = 10_000
"""More states than any twin takes to fall."""


def name_of(twin: BrokenCompanions) -> str:
    return f"{twin.scenario.protocol}, {twin.name}"


@pytest.mark.parametrize("twin", ZOO, ids=name_of)
def test_a_broken_twin_is_found(twin: BrokenCompanions) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("scenario", dict.fromkeys(twin.scenario for twin in ZOO), ids=lambda item: f"{item.name}")
def test_the_shipped_protocol_stands_where_its_twins_fall(scenario: Scenario) -> None:
    assert_holds(replace(scenario, traceless=False))


@pytest.mark.parametrize(
    ("variant", "reason"),
    [*HARMLESS, *HARMLESS_CLEANERS],
    ids=lambda item: item if isinstance(item, str) else item.name,
)
def test_a_harmless_variant_holds_and_gets_stuck_nowhere(variant: BrokenCompanions, reason: str) -> None:
    assert_holds(variant.scenario_with_twin())
    assert reason.endswith(".")


def test_a_story_says_who_did_what_and_what_lies_in_the_partition() -> None:
    twin = next(twin for twin in BROKEN_RESEQUENCERS if twin.name.startswith("messages that were released meanwhile"))
    report = explore(twin.scenario_with_twin())
    assert report.ending == (
        "A takes web/m1 and loads version 0",
        "A holds web/m1",
        "B takes web/m0 and loads version 1",
        "A takes web/m0 and loads version 1",
        "B reads the companions web/m1, held",
        "B commits web/m0, web/m1",
        "A reads the companions web/m1",
        "  entity: version 2, >m0>m1 in its state; b0.0000001, b0.0000002 owes; 3 is next in web1",
        "  entity, companions: web/m1 as number 2, web/m0 as number 1",
        "  published: outputs of nothing",
    )
