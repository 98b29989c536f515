"""A document that has no room for more lets its entries go, however few they are: an entity does not wedge on its ledger."""

from __future__ import annotations

from random import Random

from exactlyonce import EntityTooLarge, Outbox
from exactlyonce.records import MAX_DOCUMENT_BYTES
from exactlyonce.testing.world import World
from tests.samples import accounts, deposit, ledger_queue


async def test_many_small_outputs_make_entries_leave_before_the_window_is_full() -> None:
    world = World([ledger_queue], random=Random(1))
    process, entity = world.process(), accounts(Outbox(inline_limit=0))
    for number in range(8):
        await process.deliver(entity, deposit(f"m-{number}", answers=3_500))
    await process.close()
    (partition,) = world.store.entities.values()
    sizes = [version.document.size for version in partition.log if version.document is not None]
    assert max(sizes) <= MAX_DOCUMENT_BYTES
    assert len(world.published) == 8 * 3_500
    assert any(world.store.library.values()), "records were written"


async def test_what_departing_entries_owe_is_published_first() -> None:
    world = World([ledger_queue], random=Random(1))
    entity = accounts(Outbox(window=64, inline_limit=None))
    for number in range(40):
        process = world.process()  # It dies before it marks, so that every entry still owes as far as anybody knows.
        await process.deliver(entity, deposit(f"m-{number}", padding="x", repeat=45_000))
        await process.crash()
    commits = {commit.message for commit in world.facts().commits}
    assert commits == {f"web/m-{number}" for number in range(40)}


async def test_where_the_ledger_keeps_everything_the_error_says_what_to_use() -> None:
    world = World([ledger_queue], random=Random(1))
    entity = accounts(Outbox.embedded())
    told = None
    for number in range(40):
        process = world.process()
        try:
            await process.deliver(entity, deposit(f"m-{number}", padding="x", repeat=45_000))
        except EntityTooLarge as error:
            told = str(error)
        await process.crash()
    assert told is not None
    assert "use Outbox()" in told
