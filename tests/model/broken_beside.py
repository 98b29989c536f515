"""More of the zoo: what can go wrong with the protocols of one partition if one line is missing, and where it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from devtools.modelcheck.beside.scenarios import BesideBudget, BesideScenario, Message, scenario_of
from devtools.modelcheck.scenarios import UNLIMITED
from devtools.modelcheck.twins import Change, broken_beside
from exactlyonce.protocols.colocated import Colocated
from tests.model.broken_strategies import before


@dataclass(frozen=True, slots=True)
class BrokenBeside:
    """A broken protocol, a scenario in which it shows, and the property that falls there."""

    name: str
    changes: tuple[Change, ...]
    scenario: BesideScenario
    falls: str

    def scenario_with_twin(self) -> BesideScenario:
        """The scenario with the twin in place of what ships; its sweeper as well."""
        shipped = self.scenario.strategy
        module = broken_beside(self.name, self.scenario.protocol, *self.changes)
        settings = {name: getattr(shipped, name) for name in getattr(shipped, "__slots__", ())}
        twin = vars(module)[type(shipped).__name__](**settings)
        sweep = vars(module).get("sweep", self.scenario.sweep)
        return replace(self.scenario, name=f"{self.scenario.name}, {self.name}", strategy=twin, sweep=sweep)


def scenario(base: BesideScenario, *messages: Message, **budget: int) -> BesideScenario:
    """The scenario with other messages and another budget."""
    return scenario_of(base.name, messages, base.strategy, budget=BesideBudget(**budget), apart=True)


ONE, TWO = Message(), Message(2)
KEEPS = Message(2, "keeps")
STALE = UNLIMITED

COLOCATED = scenario_of("co-located", (), Colocated())

SAVE = "        saved = yield from SaveTogether(entity, document, sight.etag, batch.companions)"
UPSERTED = SAVE.replace("batch.companions", '(), tuple((record, "*") for record in batch.companions)')
DROP = "            yield from ReplaceBeside(entity, _settled(tuple((record, None) for record in batch.companions)))"
OWED = "    settled = _settled(found)"

BROKEN_COLOCATED: tuple[BrokenBeside, ...] = (
    BrokenBeside(
        "published before the commit",
        (before(SAVE, "if batch.outputs:\n    early = yield from Publish(batch.outputs)"),),
        scenario(COLOCATED, ONE),
        "no_ghost_output",
    ),
    BrokenBeside(
        "a record without outputs",
        (Change("owed=handled.outputs or None", "owed=None"),),
        scenario(COLOCATED, ONE, crashes=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "a record created by an upsert",
        (Change(SAVE, UPSERTED),),
        scenario(COLOCATED, TWO, stale=1),
        "at_most_one_state_change",
    ),
    BrokenBeside(
        "saved without a condition",
        (Change(SAVE, SAVE.replace("sight.etag", '"*"')),),
        scenario(COLOCATED, ONE, ONE),
        "serial_execution",
    ),
    BrokenBeside(
        "outputs dropped before they are published",
        (before("            published = yield from Publish(batch.outputs)", DROP.strip()),),
        scenario(COLOCATED, ONE, crashes=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "owed outputs dropped before they are published",
        (before("        published = yield from Publish(outputs, Owed(", "yield from ReplaceBeside(entity, settled)"),),
        scenario(COLOCATED, ONE, crashes=2),
        "nothing_lost",
    ),
    BrokenBeside(
        "a hit is not published",
        (
            Change(
                "        owed = yield from publish_records(entity, sight.companions, sight.memory)\n"
                "        if isinstance(owed, Again):\n            return owed\n",
                "",
            ),
        ),
        scenario(COLOCATED, ONE, crashes=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "unknown publish taken as done",
        (Change("            if published is not PUBLISHED:", "            if not entity:"),),
        scenario(COLOCATED, ONE, unknown=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "conflict taken as one's own success",
        (
            before(
                "        if not isinstance(saved, Saved):",
                "if not isinstance(saved, Saved):\n    saved = Saved('0', sight.memory.entity_token)",
            ),
        ),
        scenario(COLOCATED, ONE, ONE),
        "no_ghost_output",
    ),
    BrokenBeside(
        "a sweeper that drops without publishing",
        (
            Change(
                "    if not isinstance(found, FoundBeside):\n",
                "    if isinstance(found, FoundBeside):\n"
                "        yield from ReplaceBeside(entity, _settled(found.companions))\n        return Finished(memory)\n"
                "    if not isinstance(found, FoundBeside):\n",
            ),
        ),
        scenario(COLOCATED, ONE, crashes=1, sweeps=1),
        "nothing_lost",
    ),
)
