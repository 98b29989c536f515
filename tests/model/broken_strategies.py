"""The zoo: what can go wrong with the outbox if one line is missing, and where it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from devtools.modelcheck.scenarios import Budget, Scenario
from devtools.modelcheck.twins import Change, broken_outbox
from exactlyonce import Outbox

ONE = Scenario("one message, two copies", (2,), Outbox(window=1), budget=Budget(crashes=1, unknown=1, repeated=1))
TWO = Scenario("two messages", (2, 1), Outbox(window=1), budget=Budget(crashes=1))
STAGED = Scenario("staged outputs", (2, 1), Outbox.transaction_id(), budget=Budget(crashes=1))


@dataclass(frozen=True, slots=True)
class Twin:
    """A broken strategy, a scenario in which it shows, and the property that falls there."""

    name: str
    changes: tuple[Change, ...]
    scenario: Scenario
    falls: str

    def scenario_with_twin(self) -> Scenario:
        broken = broken_outbox(self.name, *self.changes)
        shipped = self.scenario.strategy
        twin = broken(shipped.window, shipped.inline_limit)
        return replace(self.scenario, name=f"{self.scenario.name}, {self.name}", strategy=twin)


def before(line: str, added: str) -> Change:
    """Lines added in front of a line; both as they stand, the addition with the line's indentation."""
    indent = line[: len(line) - len(line.lstrip())]
    return Change(line, "".join(f"{indent}{one}\n" for one in added.splitlines()) + line)


def unknown(scenario: Scenario, **more: int) -> Scenario:
    return replace(scenario, budget=replace(scenario.budget, **{"unknown": 1, **more}))


SAVE = "        saved = yield from SaveEntity(entity, document, view.etag)"
LOST = "            return start_over(view.memory, saved)"
PUBLISH_HITS = "        remembered = yield from publish_owed(work.entity, hits, view)"
PUBLISH_LEAVING = "        remembered = yield from publish_owed(entity, leaving, view)"
WRITE_APART = "        token = yield from _write_apart(entity, leaving, view, draft)"
STALE_FIND = "not at_or_after(found.token, ledger.token)"
GONE = "return replace(view.memory, published=view.memory.published | {one.tx for one in owing})"
DELETE_STAGED = "yield from DeleteStaged(entity, tuple(one.tx for one in draft.staged))"

TWINS: tuple[Twin, ...] = (
    Twin(
        "publish before commit",
        (before(SAVE, "if draft.outputs:\n    early = yield from Publish(draft.outputs)"),),
        ONE,
        "no_ghost_output",
    ),
    Twin("save without If-Match", (Change(SAVE, SAVE.replace("view.etag", '"*"')),), TWO, "serial_execution"),
    Twin(
        "upsert for an absent entity",
        (Change(SAVE, SAVE.replace("view.etag", 'view.etag or "*"')),),
        TWO,
        "serial_execution",
    ),
    Twin("stale find accepted", (Change(STALE_FIND, "False"),), TWO, "at_most_one_state_change"),
    Twin(
        "token not carried",
        (
            Change(
                "next_ledger(self._limits(work), view, draft, token)",
                "next_ledger(self._limits(work), view, draft, view.ledger.token)",
            ),
        ),
        TWO,
        "at_most_one_state_change",
    ),
    Twin(
        "entry dropped without a record",
        (Change("    if leaving:\n        recorded", "    if not entity:\n        recorded"),),
        TWO,
        "at_most_one_state_change",
    ),
    Twin(
        "what leaving entries owe is not published",
        (Change(PUBLISH_LEAVING, "        remembered = view.memory"),),
        TWO,
        "nothing_lost",
    ),
    Twin("hits not published", (Change(PUBLISH_HITS, "        remembered = view.memory"),), TWO, "nothing_lost"),
    Twin(
        "records not looked at",
        (Change("known = view.done | {entry.message for entry in hits}", "known = {entry.message for entry in hits}"),),
        TWO,
        "at_most_one_state_change",
    ),
    Twin(
        "unknown publish taken as done",
        (Change("            if published is not PUBLISHED:", "            if not entity:"),),
        ONE,
        "nothing_lost",
    ),
    Twin(
        "unknown save taken as saved",
        (
            before(
                "        if not isinstance(saved, Saved):",
                'saved = Saved("0", None) if isinstance(saved, NoAnswer) else saved',
            ),
        ),
        ONE,
        "no_ghost_output",
    ),
    Twin(
        "conflict taken as somebody else's success",
        (before(LOST, "if isinstance(saved, Conflict):\n    return Finished(view.memory)"),),
        TWO,
        "nothing_lost",
    ),
    Twin(
        "unknown record taken as written",
        (
            Change("if isinstance(recorded, NoAnswer):", "if not entity:"),
            Change("token = recorded.token", 'token = getattr(recorded, "token", token)'),
        ),
        unknown(TWO),
        "at_most_one_state_change",
    ),
    Twin(
        "unknown stage taken as staged",
        (
            Change("if isinstance(staged, NoAnswer) or staged.token is None:", "if not entity:"),
            Change("token = staged.token", 'token = getattr(staged, "token", token)'),
        ),
        unknown(STAGED),
        "nothing_lost",
    ),
    Twin(
        "staged after the commit",
        (
            Change("    if draft.staged:\n        staged", "    if not entity:\n        staged"),
            before("        if draft.outputs:", "if draft.staged:\n    late = yield from Stage(entity, draft.staged)"),
        ),
        STAGED,
        "nothing_lost",
    ),
    Twin(
        "staged deleted on conflict",
        (before(LOST, f"if isinstance(saved, Conflict) and draft.staged:\n    {DELETE_STAGED}"),),
        replace(STAGED, copies=(1, 1), budget=Budget(crashes=1, repeated=1)),
        "nothing_lost",
    ),
    Twin(
        "staged deleted on unknown outcome",
        (before(LOST, f"if isinstance(saved, NoAnswer) and draft.staged:\n    {DELETE_STAGED}"),),
        unknown(replace(STAGED, copies=(1, 1))),
        "nothing_lost",
    ),
    Twin(
        "token of staging not carried",
        (Change("        token = staged.token", "        del staged"),),
        STAGED,
        "nothing_lost",
    ),
    Twin(
        "one transaction id for a group",
        (
            Change(
                "zip(fresh.items(), begun.transactions, strict=True)",
                "zip(fresh.items(), begun.transactions[:1] * len(fresh), strict=True)",
            ),
        ),
        Scenario("a group, staged", (1, 1, 1), Outbox(window=2, inline_limit=0), group=2, budget=Budget(crashes=1)),
        "nothing_lost",
    ),
    Twin(
        "remembered as published before publishing",
        (
            before(
                "        if draft.outputs:",
                "memory = replace(memory, published=memory.published | {entry.tx for entry in draft.entries})",
            ),
        ),
        unknown(ONE),
        "nothing_lost",
    ),
    Twin(
        "behind taken as gone",
        (before('            return Again(view.memory, "staged outputs could not be read")', GONE),),
        replace(STAGED, budget=Budget(crashes=1, stale=1)),
        "nothing_lost",
    ),
)
