"""More of the zoo: what can go wrong with the version stream if one line is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace

from devtools.modelcheck.beside.scenarios import scenario_of
from devtools.modelcheck.twins import Change
from exactlyonce.protocols.stream.protocol import VersionStream
from tests.model.broken_beside import KEEPS, ONE, STALE, TWO, BrokenBeside, scenario
from tests.model.broken_strategies import before

STREAM = scenario_of("stream", (), VersionStream(2))
UNTOLD = replace(scenario(STREAM, KEEPS, ONE, ONE), untold=True)

SAVE = "    saved = yield from SaveTogether(entity, batch.document(sight.ledger), sight.etag, batch.companions)"
UPSERTED = SAVE.replace("batch.companions", '(), tuple((entry, "*") for entry in batch.companions)')
COMMIT = "        outcome = yield from _commit(work.entity, sight, batch)"
PUBLISH_AGAIN = (
    "        published = yield from Publish(tuple(outputs), Owed(work.entity, min(entry.at for entry in entries)))"
)
NOW = "    now = Point(sight.body, sight.ledger.sequences)"
BEGUN = f"    begun = yield from Begin(tuple(one.message for one in entries))\n{NOW}"
BEFORE = "Before(before.body, entry.at, entry.tx, before.sequences, entry.outputs)"
RANGE = "FindEntries(work.entity, ranges, sight.memory.entity_token)"
DIGEST = Change("    if (found := digest(outputs)) != entry.digest:", "    if (found := entry.digest) != entry.digest:")
CONTIGUOUS = Change(
    "    if tuple(entry.version for entry in entries) != tuple(range(first, last + 1)):", "    if first > last:"
)
SIDE_BY_SIDE = """    loaded, found = yield from Together(
        LoadEntity(entity, memory.entity_token), LoadBeside(entity, ids, memory.entity_token)
    )
"""
ONE_BY_ONE = Change(
    SIDE_BY_SIDE,
    """    loaded = yield from LoadEntity(entity, memory.entity_token)
    if isinstance(loaded, NoAnswer):
        return Again(memory, "a read was not answered")
    found = yield from LoadBeside(entity, ids, loaded.token)
""",
)

BROKEN_STREAMS: tuple[BrokenBeside, ...] = (
    BrokenBeside(
        "no entry where the state is unchanged",
        (
            before(
                COMMIT,
                "if batch.body == sight.body:\n"
                "    unchanged = yield from Publish(batch.outputs)\n    return Finished(sight.memory, batch.processed)",
            ),
        ),
        UNTOLD,
        "at_most_one_output",
    ),
    BrokenBeside(
        "a duplicate handled on the newest state",
        (
            Change(
                "            before = point_before(work, entry.version, stream, sight.ledger, now)",
                "            before = now",
            ),
        ),
        scenario(STREAM, TWO),
        "no_failure: web/m0 fails with NonDeterministicHandler",
    ),
    BrokenBeside(
        "a duplicate handled on the newest state, digests not compared",
        (
            Change(
                "            before = point_before(work, entry.version, stream, sight.ledger, now)",
                "            before = now",
            ),
            DIGEST,
        ),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    BrokenBeside(
        "a duplicate handled on the state one version too late",
        (Change("    for entry in reversed(entries):", "    for entry in reversed(entries[1:]):"), DIGEST),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    BrokenBeside(
        "published before the batch",
        (before(SAVE, "if batch.outputs:\n    early = yield from Publish(batch.outputs)"),),
        scenario(STREAM, ONE),
        "no_ghost_output",
    ),
    BrokenBeside(
        "an entry created by an upsert, read in a view of any age",
        (Change(SAVE, UPSERTED),),
        scenario(STREAM, TWO, stale=1),
        "at_most_one_state_change",
    ),
    BrokenBeside(
        "head saved without a condition",
        (Change(SAVE, SAVE.replace("sight.etag", '"*"')),),
        scenario(STREAM, ONE, ONE),
        "serial_execution",
    ),
    BrokenBeside(
        "a range read without a token",
        (Change(RANGE, "FindEntries(work.entity, ranges, None)"),),
        scenario(STREAM, TWO, stale=STALE),
        "raised DamagedDocument",
    ),
    BrokenBeside(
        "a range read without a token, gaps in it not noticed",
        (Change(RANGE, "FindEntries(work.entity, ranges, None)"), CONTIGUOUS, DIGEST),
        scenario(STREAM, TWO, stale=STALE),
        "consistent_state_and_output",
    ),
    BrokenBeside(
        "an entry newer than the state it is read with",
        (Change("any(entry.version > sight.ledger.version for entry in entries_in(sight))", "not work"),),
        scenario(STREAM, ONE, TWO, stale=STALE),
        "no_failure: web/m1 fails with NonDeterministicHandler",
    ),
    BrokenBeside(
        "handled again with new ids",
        (
            Change(
                "        )\n    return outputs\n",
                '        )\n    return tuple(replace(one, id=f"again:{one.id}") for one in outputs)\n',
            ),
        ),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    BrokenBeside(
        "handled again at another time",
        (
            Change(NOW, f"{BEGUN}\n    entries = tuple(replace(entry, at=begun.at) for entry in entries)"),
            DIGEST,
        ),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    BrokenBeside(
        "handled again in another transaction",
        (
            Change(NOW, f"{BEGUN}\n    entries = tuple(replace(entry, tx=begun.transactions[0]) for entry in entries)"),
            DIGEST,
        ),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    BrokenBeside(
        "handled again with numbers from the beginning",
        (Change(BEFORE, "Before(before.body, entry.at, entry.tx, (), entry.outputs)"),),
        scenario(STREAM, ONE, TWO),
        "no_failure: web/m1 fails with NonDeterministicHandler",
    ),
    BrokenBeside(
        "numbers given out are not kept",
        (Change("deleted=self.deleted, sequences=self.sequences)", "deleted=self.deleted)"),),
        scenario(STREAM, ONE),
        "serial_execution",
    ),
    BrokenBeside(
        "a whole state left out",
        (Change("    return version % every == 0", "    return False"),),
        scenario(STREAM, TWO, ONE, ONE),
        "raised DamagedDocument",
    ),
    BrokenBeside(
        "a duplicate is acknowledged without being handled again",
        (Change("        if entries:", "        if not messages:"),),
        scenario(STREAM, ONE, crashes=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "unknown publish of a duplicate taken as done",
        (
            Change(
                f"    if outputs:\n{PUBLISH_AGAIN}\n        if published is not PUBLISHED:",
                f"    if outputs:\n{PUBLISH_AGAIN}\n        if not work:",
            ),
        ),
        scenario(STREAM, ONE, crashes=1, unknown=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "unknown batch taken as saved",
        (
            before(
                "    if not isinstance(saved, Saved):",
                'saved = Saved("0", None) if isinstance(saved, NoAnswer) else saved',
            ),
        ),
        scenario(STREAM, ONE, unknown=1),
        "no_ghost_output",
    ),
)
