"""What twins do otherwise, shown on a function of three effects; and twins are what their names say, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from exactlyonce.effects.effect import UNKNOWN, Begin, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import DeleteStaged, HasPages
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.values.envelope import EntityRef
from verification.twins.alterations import (
    answers,
    asks,
    called,
    comes_to,
    deferred,
    ending,
    first,
    followed,
    instead,
    replaced,
    seeing,
    unasked,
)
from verification.twins.modules import EVERYTHING, Patch, around, constant, imports_of, modules_of
from verification.twins.twin import Twin
from verification.world.scenario import Message, scenario_of
from yieldcheck.situations import Situations

ENTITY = EntityRef("account", ("e0",), "e0")
HAS, DELETE = HasPages(ENTITY), DeleteStaged(ENTITY, ("t0",))
SENT = Publish(())


def shipped(name: str) -> Step[Any]:
    """Asks whether there are pages, publishes, deletes; comes to its name and the replies."""
    known = yield from HAS
    published = yield from SENT
    yield from DELETE
    return name, known, published


def run(function: Callable[..., Step[Any]]) -> tuple[list[Any], Any]:
    """What it asks, and what it comes to."""
    answers_of = {HasPages: True, Publish: PUBLISHED}
    step, asked, reply = function("it"), [], None
    while True:
        try:
            asked.append(step.send(reply))
        except StopIteration as end:
            return asked, end.value
        reply = answers_of.get(type(asked[-1]))


ALTERED: dict[str, tuple[Any, list[Any], Any]] = {
    "as shipped": (lambda function: function, [HAS, SENT, DELETE], ("it", True, PUBLISHED)),
    "asks another way": (
        asks(DeleteStaged, lambda delete, name: replace(delete, transactions=(name,))),
        [HAS, SENT, DeleteStaged(ENTITY, ("it",))],
        ("it", True, PUBLISHED),
    ),
    "takes a reply for another": (
        answers(HasPages, lambda reply, effect, name: (reply, effect, name)),
        [HAS, SENT, DELETE],
        ("it", (True, HAS, "it"), PUBLISHED),
    ),
    "does not ask": (unasked(Publish, UNKNOWN), [HAS, DELETE], ("it", True, UNKNOWN)),
    "does not ask in some cases": (
        unasked(Publish, UNKNOWN, lambda _, name: name == "another"),
        [HAS, SENT, DELETE],
        ("it", True, PUBLISHED),
    ),
    "does something else instead": (
        instead(Publish, lambda *_: shipped("instead")),
        [HAS, HAS, SENT, DELETE, DELETE],
        ("it", True, ("instead", True, PUBLISHED)),
    ),
    "asks for more before": (first(lambda _: DELETE), [DELETE, HAS, SENT, DELETE], ("it", True, PUBLISHED)),
    "asks for nothing before": (first(lambda _: None), [HAS, SENT, DELETE], ("it", True, PUBLISHED)),
    "asks for more afterwards": (
        followed(Publish, lambda reply, *_: HAS if reply is PUBLISHED else None),
        [HAS, SENT, HAS, DELETE],
        ("it", True, PUBLISHED),
    ),
    "asks later": (deferred(HasPages, False, until=Publish), [SENT, HAS, DELETE], ("it", False, PUBLISHED)),
    "ends early": (
        ending(Publish, lambda reply, effect, name: (reply, effect, name)),
        [HAS, SENT],
        (PUBLISHED, SENT, "it"),
    ),
    "does not end early": (ending(Publish, lambda *_: None), [HAS, SENT, DELETE], ("it", True, PUBLISHED)),
    "comes to something else": (comes_to(lambda result, name: (name, result[1])), [HAS, SENT, DELETE], ("it", True)),
    "is called otherwise": (called(lambda name: (name * 2,)), [HAS, SENT, DELETE], ("itit", True, PUBLISHED)),
    "is another function": (replaced(lambda _: shipped("other")), [HAS, SENT, DELETE], ("other", True, PUBLISHED)),
}


@pytest.mark.parametrize(("wrapper", "asked", "result"), ALTERED.values(), ids=ALTERED)
def test_an_altered_function_does_what_its_alteration_says_and_else_what_ships(
    wrapper: Any, asked: list[Any], result: Any
) -> None:
    assert run(wrapper(shipped)) == (asked, result)


@pytest.mark.parametrize(
    "wrapper", [instead(Publish, lambda *_: shipped("instead")), deferred(Publish, PUBLISHED, Begin)]
)
def test_altered_functions_at_the_same_place_are_one_situation(wrapper: Any) -> None:
    """Else the search of a twin would never come to an end that the search of what ships comes to."""

    def forgetful(_: str) -> Step[Any]:
        yield from HAS
        yield from SENT
        yield from DELETE

    situations: Situations[str] = Situations(wrapper(forgetful))
    known, unknown = (situations.after(situations.first("it"), reply) for reply in (True, False))
    assert known is unknown


def test_a_patch_is_what_everything_that_imports_it_gets() -> None:
    made = modules_of(
        "patched", {outbox.__name__, resequencer.__name__}, patches=(around(outbox.publish_owed, replaced(run)),)
    )
    assert made[resequencer.__name__].publish_owed is run
    assert vars(resequencer)["publish_owed"] is outbox.publish_owed
    assert made.keys() >= {outbox.__name__, resequencer.__name__}


def test_a_constant_has_another_value_in_every_module_that_imports_it() -> None:
    made = modules_of("constant", {gaps.__name__}, patches=(constant(resequencing, "BATCH_DOCUMENTS", 3),))
    assert made[gaps.__name__].BATCH_DOCUMENTS == 3
    assert vars(gaps)["BATCH_DOCUMENTS"] == 99


MOST = 3


def has_room(taken: int, *, more: int = 1) -> bool:
    return taken + more <= MOST


def test_a_function_sees_a_constant_with_another_value_and_no_other_function_does() -> None:
    cramped = seeing(MOST=1)(has_room)
    assert (cramped(0), cramped(1), has_room(1), cramped(0, more=2)) == (True, False, True, False)
    with pytest.raises(LookupError, match="has_room sees no constant LEAST"):
        seeing(LEAST=1)(has_room)


def test_a_patch_of_something_that_is_not_there_is_an_error_and_no_twin() -> None:
    with pytest.raises(KeyError, match="is_gone"):
        modules_of("nothing", {outbox.__name__}, patches=(Patch(outbox.__name__, "Outbox.is_gone", replaced(run)),))


def test_a_twin_leaves_alone_what_its_world_does_not_run() -> None:
    twin = Twin(patches=(around(retention.clean_staged, replaced(run)),))
    world = scenario_of("stream", (Message(),), VersionStream(2))
    assert twin.within(world) == world
    assert twin.of(replaying.replay) is replaying.replay
    assert twin.of(retention.clean_staged) is not retention.clean_staged


def test_every_module_is_made_after_those_that_it_imports_from() -> None:
    """Otherwise it would import what ships, and a twin of what it imports would not show."""
    before: set[str] = set()
    for module, imported in imports_of(EVERYTHING).items():
        assert imported <= before, module
        before.add(module)
