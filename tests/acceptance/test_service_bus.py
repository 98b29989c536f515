"""The demo on Service Bus, small: with sessions and without, in batches and one by one, whatever happens there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from itertools import product

import pytest

from local_service_bus.testing import require_endpoint
from tests.acceptance.test_demo import Played, figure, make, played_for

pytestmark = pytest.mark.acceptance

Shape = tuple[str, str]
SHAPES: list[Shape] = list(product(("on", "off"), ("on", "off")))
"""Sessions, and batches."""


def play(shape: Shape) -> Played:
    sessions, batches = shape
    small = ("SHOTS=80", "GAMES=6", "AUDIT=off")
    return make("demo", "TRANSPORT=servicebus", f"SESSIONS={sessions}", f"BATCHES={batches}", *small)


@pytest.fixture(scope="module")
def demos(request: pytest.FixtureRequest) -> Iterator[Mapping[Shape, Future[Played]]]:
    """The demos of all shapes that tests ask for."""
    require_endpoint()
    yield from played_for(request, "shape", play)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"sessions {shape[0]}, batches {shape[1]}")
def test_every_shot_takes_place_once_whatever_happens_on_service_bus(
    shape: Shape, demos: Mapping[Shape, Future[Played]]
) -> None:
    played = demos[shape].result()
    assert played.returncode == 0, played.stdout + played.stderr
    assert figure("violations", played.stdout) == 0
    assert figure("duplicates", played.stdout) >= 15
    assert figure("replies lost after the write was applied", played.stdout) >= (1 if shape[1] == "on" else 8)
    assert figure(r"function hosts killed \(SIGKILL\)", played.stdout) >= 3
    assert figure("locks and replies lost at the broker", played.stdout) >= 3
    assert figure("distinct outcomes published", played.stdout) == 80
    assert figure("messages in poison queues", played.stdout) == 0
    assert f"sessions {shape[0]}, batches {shape[1]}" in played.stdout
