"""A database: a name for a few containers."""

from __future__ import annotations

from dataclasses import dataclass, field

from local_cosmos.semantics.container import Container
from local_cosmos.values import JsonObject


@dataclass(slots=True)
class Database:
    """One database.

    Attributes:
        name: The id.
        rid: Its resource id.
        modified: When it was created, in seconds since 1970.
        containers: By name, in the order of their creation.
    """

    name: str
    rid: str
    modified: int
    containers: dict[str, Container] = field(default_factory=dict)

    def document(self) -> JsonObject:
        """What a client reads of the database itself."""
        return {
            "id": self.name,
            "_rid": self.rid,
            "_self": f"dbs/{self.rid}/",
            "_etag": f'"{self.modified:08x}-0000-0000-0000-000000000000"',
            "_colls": "colls/",
            "_users": "users/",
            "_ts": self.modified,
        }
