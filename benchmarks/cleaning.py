"""What clean-up costs for each message: the pages that messages have left are deleted as the clean-up job does it."""

from __future__ import annotations

from typing import Any, Final

from azure.cosmos.aio import CosmosClient

from benchmarks.accounting import Till
from benchmarks.application import running
from benchmarks.contenders import Contender
from demo.stack import create_containers
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER
from local_cosmos.inprocess import running_emulator

MESSAGES: Final = 1_700
"""Messages of one entity: a hundred pages."""
_DATABASE: Final = "bench"


async def clean_up_costs(contender: Contender, messages: int = MESSAGES) -> dict[str, Any]:
    """Request units and documents for each message, of finding and deleting all pages of an entity.

    Args:
        contender: takes timed messages, which come one by one.
        messages: that the entity processes.
    """
    with running_emulator() as emulator:
        create_containers(emulator, _DATABASE)
        async with running(contender, emulator, _DATABASE) as application:
            await application.feed((contender.message("game", number) for number in range(1, messages + 1)), 1)
        till = Till(emulator, _DATABASE)
        till.bill()
        async with CosmosClient(emulator.endpoint, emulator.key) as client:
            library = client.get_database_client(_DATABASE).get_container_client(LIBRARY_CONTAINER)
            query = (
                'SELECT c.id, c.pk, c._etag, c["until"], c._ts FROM c WHERE c.kind = \'page\' AND c["until"] < @oldest'
            )
            pages = library.query_items(query, parameters=[{"name": "@oldest", "value": 1 << 42}])
            found = [page async for page in pages]
            for first in range(0, len(found), 100):
                batch = found[first : first + 100]
                deletions = [("delete", (page["id"],), {"if_match_etag": page["_etag"]}) for page in batch]
                await library.execute_item_batch(deletions, batch[0]["pk"])
        bill = till.bill()
    costs = {"pages": len(found), "request units": round(bill.units / messages, 3)}
    print("clean-up", costs, flush=True)
    return costs
