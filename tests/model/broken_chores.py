"""More of the zoo: what can go wrong with sweeper, settler and clean-up if one line is missing, and where it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from devtools.modelcheck.scenarios import Budget, Scenario
from devtools.modelcheck.twins import Change, broken_chores
from exactlyonce import Outbox

SWEPT = Scenario("swept", (1, 1), Outbox(window=1), budget=Budget(crashes=1, unknown=1, sweeps=1))
GIVEN_UP = Scenario("given up", (1,), Outbox(window=1), budget=Budget(crashes=1, unknown=1, stale=1, poisoned=1))
CLEANED = Scenario("cleaned", (1,), Outbox.transaction_id(), budget=Budget(crashes=1, unknown=1, cleanings=1))

FENCED = """    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
"""
EXISTING = "".join(f"    {line}\n" for line in FENCED.splitlines())
DELETE = "    yield from DeleteStaged(entity, garbage)\n"


@dataclass(frozen=True, slots=True)
class BrokenChore:
    """A broken chore, a scenario in which it shows, and the property that falls there."""

    name: str
    changes: tuple[Change, ...]
    scenario: Scenario
    falls: str

    def scenario_with_twin(self) -> Scenario:
        return replace(self.scenario, name=self.name, chores=broken_chores(self.name, *self.changes))


BROKEN_CHORES: tuple[BrokenChore, ...] = (
    BrokenChore(
        "a sweeper that marks and does not publish",
        (
            Change(
                "    remembered = yield from publish_owed(entity, view.ledger.entries, view)\n"
                "    if isinstance(remembered, Again):\n        return remembered\n    marked",
                "    remembered = replace(view.memory, published=view.ledger.owing)\n    marked",
            ),
        ),
        SWEPT,
        "nothing_lost",
    ),
    BrokenChore(
        "a sweeper without If-Match",
        (Change("SaveEntity(entity, marked, view.etag)", 'SaveEntity(entity, marked, "*")'),),
        SWEPT,
        "serial_execution",
    ),
    BrokenChore(
        "a sweeper that marks though publishing failed",
        (
            Change(
                "    if isinstance(remembered, Again):\n        return remembered\n    marked",
                "    if isinstance(remembered, Again):\n"
                "        remembered = replace(view.memory, published=view.ledger.owing)\n    marked",
            ),
        ),
        SWEPT,
        "nothing_lost",
    ),
    BrokenChore(
        "a settler without a fence",
        (Change(f"{FENCED}    begun", "    fenced = view.memory\n    begun"),),
        GIVEN_UP,
        "parked_is_unprocessed",
    ),
    BrokenChore(
        "a settler that takes an unknown fence for one",
        (
            Change(
                "    if not isinstance(saved, Saved):\n        return start_over(view.memory, saved)\n    return",
                "    return",
            ),
            Change("entity_token=saved.token, saved=None)", "saved=None)"),
        ),
        GIVEN_UP,
        "parked_is_unprocessed",
    ),
    BrokenChore(
        "a settler that does not publish what its message owes",
        (
            Change(
                "        remembered = yield from publish_owed(entity, hits, view)\n",
                "        remembered = view.memory\n",
            ),
        ),
        replace(GIVEN_UP, budget=Budget(crashes=1, poisoned=1)),
        "nothing_lost",
    ),
    BrokenChore(
        "a settler that looks for no record",
        (
            Change(
                '    return Settled("processed", view.memory) if message in found.messages else None', "    return None"
            ),
        ),
        replace(GIVEN_UP, copies=(1, 1), budget=Budget(crashes=1, poisoned=1)),
        "parked_is_unprocessed",
    ),
    BrokenChore(
        "clean-up without a fence",
        (Change(f"{FENCED}{DELETE}", f"    fenced = view.memory\n{DELETE}"),),
        CLEANED,
        "nothing_lost",
    ),
    BrokenChore(
        "clean-up with the fence after the deletion",
        (Change(f"{FENCED}{DELETE}", f"{DELETE}{FENCED}"),),
        CLEANED,
        "nothing_lost",
    ),
    BrokenChore(
        "clean-up that takes an unknown fence for one",
        (
            Change(
                f"{FENCED}{DELETE}", f"    yield from fence(entity, view, absent)\n    fenced = view.memory\n{DELETE}"
            ),
        ),
        CLEANED,
        "nothing_lost",
    ),
    BrokenChore(
        "clean-up without a fence where the entity is absent",
        (
            Change(
                f"{FENCED}{DELETE}",
                f"    if view.document is None:\n        fenced = view.memory\n    else:\n{EXISTING}{DELETE}",
            ),
        ),
        CLEANED,
        "nothing_lost",
    ),
    BrokenChore(
        "clean-up of what entries name",
        (Change("tuple(tx for tx in candidates if tx not in named)", "candidates if named else ()"),),
        CLEANED,
        "nothing_lost",
    ),
)
