"""Putting an application together: what contradicts itself is refused before the first message."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from exactlyonce import ConfigurationError, Destination, Entity, Outbox, OutputTooLarge, UnknownDestination, message
from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from tests.samples import Deposit, accounts


def application(
    *entities: Entity[Any], destinations: tuple[Destination, ...] = (), mapping: dict[str, str] | None = None
) -> ExactlyOnce:
    """An application that is not connected to anything."""
    given = Settings(
        account_endpoint="http://127.0.0.1:9/",
        account_key=SecretStr("c2VjcmV0"),
        database="shop",
        destinations=mapping or {},
    )
    storage = StorageConnection(
        "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;QueueEndpoint=http://127.0.0.1:9/a;"
    )
    return ExactlyOnce(entities, destinations=destinations, settings=given, storage=storage)


def test_two_entities_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Two entities have the name 'account'"):
        application(accounts(), accounts())


def test_two_destinations_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Two destinations have the name 'a'"):
        application(destinations=(Destination("a"), Destination("a")))


def test_two_models_that_travel_under_one_name_are_refused() -> None:
    @message("account.deposit")
    class Impostor(BaseModel):
        pass

    class Nothing(BaseModel):
        pass

    other = Entity("other", state=Nothing, container="others", strategy=Outbox())
    other.handles(Impostor, key=lambda _: "o")(lambda state, given, context: state)
    with pytest.raises(ConfigurationError, match=r"both travel as 'account\.deposit'"):
        application(accounts(), other)


def test_a_mapping_for_a_destination_that_nobody_declared_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'bord', which is no destination"):
        application(destinations=(Destination("board"),), mapping={"bord": "queue"})


async def test_sending_to_a_destination_that_nobody_declared_is_refused() -> None:
    once = application(accounts(), destinations=(Destination("board"),))
    with pytest.raises(UnknownDestination, match="known are: board"):
        await once.send("bord", Deposit("a"), message_id="m-1")
    await once.close()


async def test_sending_more_than_a_queue_takes_is_refused() -> None:
    once = application(accounts(), destinations=(Destination("board"),))
    with pytest.raises(OutputTooLarge, match="its queue takes 49152"):
        await once.send("board", Deposit("a", padding="x" * 50_000), message_id="m-1")
    await once.close()
