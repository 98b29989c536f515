"""An entity that calls a service on this library, for tests: an errand opens a request, has it carried out, and closes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from exactlyonce import Api, Context, Destination, Entity, Outbox, Reply, message


@message("errand.run")
@dataclass
class Run:
    errand: str
    counter: str
    amount: int


@dataclass
class Amount:
    amount: int


@message("errand.opened")
class Opened(Reply):
    """The service's reply to the opening."""


@message("errand.carried-out")
class CarriedOut(Reply):
    """Its answer to the request."""


@message("errand.closed")
class Closed(Reply):
    """Its reply to the closing."""


@dataclass
class Errand:
    """State of an errand.

    Attributes:
        place: address of its request.
        statuses: of the replies, in the order in which they were handled.
        answers: the totals that the service answered.
    """

    place: str = ""
    statuses: list[int | None] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


errand_queue = Destination("errands", receives=(Opened, CarriedOut, Closed), to="errand")


def counters_at(base: str) -> Api:
    """The service, at its address."""
    return Api("counters", base, key_lifetime=timedelta(days=29))


def errands(api: Api) -> Entity[Errand]:
    """A fresh entity type with its handlers."""
    entity = Entity("errand", state=Errand, container="errands", strategy=Outbox())

    @entity.handles(Run, key=lambda run: run.errand)
    def run(state: Errand, given: Run, context: Context) -> Errand:
        context.call(
            api, "POST", f"/api/counters/{given.counter}/adds", Amount(given.amount), then=Opened, tag=given.errand
        )
        return state

    @entity.handles(Opened, key=lambda got: got.tag)
    def opened(state: Errand, got: Opened, context: Context) -> Errand:
        place = got.headers["Location"]
        context.call(api, "POST", place, then=CarriedOut, tag=got.tag)
        return Errand(place, [*state.statuses, got.status], state.answers)

    @entity.handles(CarriedOut, key=lambda got: got.tag)
    def carried_out(state: Errand, got: CarriedOut, context: Context) -> Errand:
        context.call(api, "DELETE", state.place, then=Closed, tag=got.tag)
        total = got.body["total"] if isinstance(got.body, dict) else None
        assert isinstance(total, int)
        return Errand(state.place, [*state.statuses, got.status], [*state.answers, total])

    @entity.handles(Closed, key=lambda got: got.tag)
    def closed(state: Errand, got: Closed, context: Context) -> Errand:
        del context
        return Errand(state.place, [*state.statuses, got.status], state.answers)

    return entity
