"""An application that starts with the settings of its environment."""

from __future__ import annotations

import base64

from exactlyonce import Destination, Entity, Outbox
from exactlyonce.hosting import ExactlyOnce
from tests.samples import Account

WRONG_KEY = base64.b64encode(b"a key that is wrong").decode()
GAMES = Entity("game", state=Account, container="games", partition_key="/gameId", strategy=Outbox())
BOARDS = Entity("board", state=Account, container="boards", partition_key=("/region", "/boardId"), strategy=Outbox())
RECEIPTS = Destination("receipts")
SETTINGS = {
    "COSMOS__accountEndpoint": "https://name.documents.azure.com:443/",
    "COSMOS__database": "shop",
    "AzureWebJobsStorage": "UseDevelopmentStorage=true",
}


def start() -> ExactlyOnce:
    """The application, if its settings are right."""
    return ExactlyOnce.from_environment(GAMES, BOARDS, destinations=[RECEIPTS])
