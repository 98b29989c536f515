"""An app for stories: members of a club with points, recharged by card, with a board of points, and visits as events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from pydantic import BaseModel

from exactlyonce import Api, Context, Destination, Entity, Outbox, Reply, Resequencer, VersionStream, message

payments = Api("payments", base="https://payments.example/v1", key_lifetime=timedelta(hours=24))
LASTS = timedelta(hours=1)


@message("club.join")
class Join(BaseModel):
    member: str
    name: str


@message("club.expire")
@dataclass
class Expire:
    member: str


@message("club.gift")
class Gift(BaseModel):
    member: str
    to: str
    points: int


@message("club.gifted")
class Gifted(BaseModel):
    member: str
    giver: str
    points: int


@message("club.recharge")
class Recharge(BaseModel):
    member: str
    points: int


@message("club.recharged")
class Recharged(Reply):
    """The tag is the member."""


@message("club.leave")
class Leave(BaseModel):
    member: str


@message("club.points")
class Points(BaseModel):
    member: str
    points: int


@message("club.visit")
class Visit(BaseModel):
    member: str
    bar: bool = False


@message("club.visited")
class Visited(BaseModel):
    at: datetime
    bar: bool


class Charge(BaseModel):
    points: int


class Balance(BaseModel):
    points: int


class Level(Enum):
    GUEST = "guest"
    MEMBER = "member"


class Member(BaseModel):
    name: str = ""
    level: Level = Level.GUEST
    points: int = 0
    card: str = ""
    until: datetime | None = None
    latest_gift: datetime | None = None
    givers: set[str] = set()


class Board(BaseModel):
    points: dict[str, int] = {}


class Guestbook(BaseModel):
    visits: int = 0
    latest: datetime | None = None


members = Entity("member", state=Member, container="members", partition_key="/member", strategy=Outbox())
boards = Entity("board", state=Board, container="boards", partition_key="/board", strategy=Resequencer())
guestbooks = Entity(
    "guestbook", state=Guestbook, container="guestbooks", partition_key="/member", strategy=VersionStream()
)
to_members = Destination("members", receives=(Join, Expire, Gift, Gifted, Recharge, Recharged, Leave), to=members)
to_boards = Destination("boards", receives=(Points,), to=boards)
to_guestbooks = Destination("guestbooks", receives=(Visit,), to=guestbooks)
ENTITIES = (members, boards, guestbooks)
DESTINATIONS = (to_members, to_boards, to_guestbooks, payments)


def with_points(member: str, state: Member, points: int, context: Context) -> Member:
    context.announce(Points(member=member, points=points))
    return state.model_copy(update={"points": points})


@members.handles(Join, key=lambda it: it.member)
def join(state: Member, it: Join, context: Context) -> Member:
    if state.name:
        context.reply(Balance(points=state.points), status=409)
        return state
    until = context.now + LASTS
    context.send(to_members, Expire(it.member), at=until)
    context.reply(Balance(points=0), status=201)
    return Member(name=it.name, level=Level.MEMBER, card=context.new_id(), until=until)


@members.handles(Expire, key=lambda it: it.member)
def expire(state: Member, it: Expire, context: Context) -> Member:
    del it
    return state.model_copy(update={"level": Level.GUEST, "until": context.now})


@members.handles(Gift, key=lambda it: it.member)
def gift(state: Member, it: Gift, context: Context) -> Member:
    if state.points < it.points:
        context.reply(Balance(points=state.points), status=409)
        return state
    context.announce(Gifted(member=it.to, giver=it.member, points=it.points))
    context.reply(Balance(points=state.points - it.points))
    return with_points(it.member, state, state.points - it.points, context)


@members.handles(Gifted, key=lambda it: it.member)
def gifted(state: Member, it: Gifted, context: Context) -> Member:
    state = state.model_copy(update={"latest_gift": context.now, "givers": state.givers | {it.giver}})
    return with_points(it.member, state, state.points + it.points, context)


@members.handles(Recharge, key=lambda it: it.member)
def recharge(state: Member, it: Recharge, context: Context) -> Member:
    context.call(payments, "POST", "/charges", Charge(points=it.points), then=Recharged, tag=it.member)
    context.reply(status=202)
    return state


@members.handles(Recharged, key=lambda it: it.tag)
def recharged(state: Member, it: Recharged, context: Context) -> Member:
    points = it.body["points"] if isinstance(it.body, dict) else None
    return with_points(it.tag, state, state.points + points, context) if it.ok and isinstance(points, int) else state


@members.handles(Leave, key=lambda it: it.member)
def leave(state: Member, it: Leave, context: Context) -> Member:
    if state.points:
        raise ValueError(f"{it.member} has points")
    context.delete()
    return state


@boards.handles(Points, key=lambda it: "all")
def note(state: Board, it: Points, context: Context) -> Board:
    del context
    return Board(points={**state.points, it.member: it.points})


@guestbooks.handles(Visit, key=lambda it: it.member)
def visit(state: Guestbook, it: Visit, context: Context) -> list[object]:
    del state
    return [Visited(at=context.now, bar=it.bar)]


@guestbooks.applies(Visited)
def visited(state: Guestbook, it: Visited) -> Guestbook:
    return Guestbook(visits=state.visits + 1, latest=it.at)
