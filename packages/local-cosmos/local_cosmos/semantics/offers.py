"""Offers: the throughput of databases and containers, read and replaced. Nothing here is ever throttled by it.

Documented behaviour: a container without a throughput of its own, in a database without one, gets 400 RU/s. Manual
throughput goes in steps of 100 from 400, autoscale in steps of 1,000 from 1,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from local_cosmos.semantics import feeds
from local_cosmos.semantics.errors import bad_request, not_found
from local_cosmos.semantics.requests import Reply, Request, resource
from local_cosmos.values import JsonObject

LARGEST: Final = 1_000_000
"""RU per second that a container may have unless Microsoft raises the limit."""

_SMALLEST: Final = 400
_STEP: Final = 100
_AUTOSCALE_STEP: Final = 1_000


@dataclass(frozen=True, slots=True)
class Throughput:
    """Request units per second.

    Attributes:
        most: What it is set to; with autoscale, the maximum.
        autoscale: Whether the service scales between a tenth of that and that.
        increment: By how many percent the maximum rises by itself; it never does here.
    """

    most: int = _SMALLEST
    autoscale: bool = False
    increment: int | None = None

    @classmethod
    def checked(cls, most: object, *, autoscale: bool, increment: int | None = None) -> Throughput:
        """A throughput that can be set.

        Raises:
            RefusedError: 400; it cannot.
        """
        least, step = (_AUTOSCALE_STEP, _AUTOSCALE_STEP) if autoscale else (_SMALLEST, _STEP)
        if isinstance(most, int) and most < least:
            raise bad_request(f"Requested throughput {most} is less than required minimum throughput {least}.")
        if not isinstance(most, int) or isinstance(most, bool) or most % step or most > LARGEST:
            raise bad_request(
                f"A throughput is from {least} to {LARGEST} RU per second, in steps of {step}; not {most!r}."
            )
        return cls(most, autoscale, increment)

    def content(self) -> JsonObject:
        """The content of an offer."""
        if not self.autoscale:
            return {"offerThroughput": self.most}
        settings: JsonObject = {"maxThroughput": self.most}
        if self.increment is not None:
            settings["autoUpgradePolicy"] = {"throughputPolicy": {"incrementPercent": self.increment}}
        return {"offerThroughput": self.most // 10, "offerAutopilotSettings": settings}


@dataclass(frozen=True, slots=True)
class _Offer:
    id: str
    rid: str
    link: str
    throughput: Throughput
    modified: int

    def document(self) -> JsonObject:
        return {
            "id": self.id,
            "_rid": self.id,
            "_self": f"offers/{self.id}/",
            "_etag": f'"{self.modified:08x}-0000-0000-0000-000000000000"',
            "_ts": self.modified,
            "resource": self.link,
            "offerResourceId": self.rid,
            "offerType": "Invalid",
            "offerVersion": "V2",
            "content": self.throughput.content(),
        }


class Offers:
    """The offers of an account."""

    def __init__(self) -> None:
        # By their owners: every new container asks whether its database has one.
        self._offers: dict[str, _Offer] = {}
        self._numbers = count(1)

    def add(self, owner: JsonObject, throughput: Throughput, now: float) -> None:
        """A database or container, as a client reads it, has a throughput from now on."""
        offer_id = f"o{next(self._numbers):03}"
        self._offers[owner["_rid"]] = _Offer(offer_id, owner["_rid"], owner["_self"], throughput, int(now))

    def has(self, rid: str) -> bool:
        """Whether a database or container has a throughput of its own."""
        return rid in self._offers

    def forget(self, link: str) -> None:
        """A database or container is gone, with all below it."""
        self._offers = {key: offer for key, offer in self._offers.items() if not offer.link.startswith(link)}

    def query(self, request: Request) -> Reply:
        """All offers, or those that a query asks for."""
        return feeds.answer_listed(request, "", "Offers", [offer.document() for offer in self._offers.values()])

    def read(self, request: Request) -> Reply:
        """One offer."""
        return resource(self._named(request).document())

    def replace(self, request: Request, now: float) -> Reply:
        """Set another throughput of the same kind."""
        offer = self._named(request)
        content = request.content.get("content") if isinstance(request.content, dict) else None
        if not isinstance(content, Mapping):
            raise bad_request("An offer is an object with content.")
        present = offer.throughput
        increment = _increment(content, present)
        wanted = Throughput.checked(_wanted(content, present), autoscale=present.autoscale, increment=increment)
        offer = replace(offer, throughput=wanted, modified=int(now))
        self._offers[offer.rid] = offer
        return resource(offer.document())

    def _named(self, request: Request) -> _Offer:
        offer = next((item for item in self._offers.values() if item.id == request.offer), None)
        if offer is None:
            raise not_found(f"offer {request.offer}")
        return offer


def _wanted(content: Mapping[str, Any], present: Throughput) -> object:
    if not present.autoscale:
        if content.get("offerAutopilotSettings"):
            raise bad_request("This emulator does not change manual throughput to autoscale.")
        return content.get("offerThroughput")
    settings = content.get("offerAutopilotSettings")
    return settings.get("maxThroughput") if isinstance(settings, Mapping) else None


def _increment(content: Mapping[str, Any], present: Throughput) -> int | None:
    """By how many percent the maximum rises, where a client says so; else as it is."""
    settings = content.get("offerAutopilotSettings")
    policy = settings.get("autoUpgradePolicy") if isinstance(settings, Mapping) else None
    increment = policy.get("throughputPolicy", {}).get("incrementPercent") if isinstance(policy, Mapping) else None
    return increment if isinstance(increment, int) else present.increment
