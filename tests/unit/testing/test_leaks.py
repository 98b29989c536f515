"""Leaks that `assert_deterministic` finds: clocks, chance and the world outside, under any name."""

# ruff: noqa: PLW0108  # The lambda is the code that asks.

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from random import Random, SystemRandom, choice, shuffle
from threading import Thread
from time import time as the_time
from typing import Any
from urllib.request import urlopen
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, Field

from exactlyonce import Context, message
from exactlyonce.testing import NonDeterministic, assert_deterministic
from handlers.messages import FireAt
from handlers.shooting_range import Range, fire_at
from tests.samples import Account, Deposit

Handler = Callable[[Account, Deposit, Context], Any]
HERE = "tests/unit/testing/test_leaks.py"
CHANCY = Random()
log = logging.getLogger(__name__)


@message("leaks.stamped")
class Stamped(BaseModel):
    by: uuid.UUID = Field(default_factory=uuid.uuid4)


@message("leaks.timed")
@dataclass
class Timed:
    at: float = field(default_factory=time.monotonic)


def asking(ask: Callable[[], Any]) -> Handler:
    """A handler that asks, and keeps the answer to itself."""

    def handler(state: Account, given: Deposit, context: Context) -> Account:
        ask()
        return state

    return handler


def leaks_of(handler: Handler) -> list[str]:
    with pytest.raises(NonDeterministic) as caught:
        assert_deterministic(handler, Account(), Deposit("a"))
    return [leak.call for leak in caught.value.leaks]


def seeded_chance_and_given_times(state: Account, given: Deposit, context: Context) -> Account:
    mine = Random(given.account)
    later = (context.now + timedelta(days=1)).timestamp()
    chance = mine.random(), mine.choice("abc"), context.random.gauss(0, 1), uuid.uuid5(uuid.NAMESPACE_URL, "x")
    return Account(note=f"{chance} {later} {time.gmtime(0).tm_year} {datetime.fromtimestamp(later, timezone.utc)}")


def harmless_calls_of_libraries(state: Account, given: Deposit, context: Context) -> Account:
    ZoneInfo.clear_cache()
    there = context.now.astimezone(ZoneInfo("UTC"))
    try:
        int("x")
    except ValueError:
        return Account(note=f"{there} {traceback.format_exc()[:9]}")
    return state


def logging_calls(state: Account, given: Deposit, context: Context) -> Account:
    log.error("handled %s", given.account)
    return state


@pytest.mark.parametrize("handler", [seeded_chance_and_given_times, harmless_calls_of_libraries, logging_calls])
def test_a_harmless_call_is_no_leak(handler: Handler) -> None:
    assert_deterministic(handler, Account(), Deposit("a"))


ASKED: dict[str, Callable[[], Any]] = {
    "time.time": lambda: time.time(),
    "time.time_ns": lambda: time.time_ns(),
    "time.monotonic": lambda: time.monotonic(),
    "time.perf_counter": lambda: time.perf_counter(),
    "time.localtime": lambda: time.localtime(),
    "datetime.now": lambda: datetime.now(timezone.utc),
    "datetime.utcnow": lambda: datetime.utcnow(),  # noqa: DTZ003
    "date.today": lambda: date.today(),  # noqa: DTZ011
    "uuid.uuid4": lambda: uuid.uuid4(),
    "uuid.uuid1": lambda: uuid.uuid1(),
    "random.random": lambda: random.random(),
    "random.choice": lambda: choice("abc"),
    "random.shuffle": lambda: shuffle([1, 2, 3]),
    "random.randint": lambda: random.randint(1, 6),
    "random.Random": lambda: Random().random(),
    "random.Random.random": lambda: CHANCY.random(),
    "random.Random.choice": lambda: CHANCY.choice("abc"),
    "random.SystemRandom.random": lambda: SystemRandom().random(),
    "secrets.token_hex": lambda: secrets.token_hex(),
    "secrets.token_urlsafe": lambda: secrets.token_urlsafe(8),
    "os.urandom": lambda: os.urandom(8),
    "os.getpid": lambda: os.getpid(),
    "hash": lambda: hash("a"),
    "id": lambda: id(object()),
    "open": lambda: Path(__file__).read_text(),
    "socket.gethostname": lambda: socket.gethostname(),
    "socket.getaddrinfo": lambda: socket.getaddrinfo("127.0.0.1", 1),
    "os.system": lambda: os.system("true"),  # noqa: S605, S607
    "os.stat": lambda: Path(__file__).exists(),
    "os.lstat": lambda: os.path.islink(__file__),  # noqa: PTH114
    "os.open": lambda: os.close(os.open(__file__, os.O_RDONLY)),
    "os.uname": lambda: os.uname(),
    "threading.Thread.start": lambda: Thread(target=time.time).start(),
    "concurrent.futures.thread.ThreadPoolExecutor.submit": lambda: ThreadPoolExecutor().submit(time.time),
}


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
@pytest.mark.parametrize("call", ASKED)
def test_a_leak_fails_even_if_the_results_are_the_same(call: str) -> None:
    assert f"{call}()" in leaks_of(asking(ASKED[call]))


def test_reading_the_environment_is_a_leak() -> None:
    for ask in (lambda: os.environ["PATH"], lambda: os.environ.get("PATH"), lambda: os.getenv("PATH")):
        assert leaks_of(asking(ask)) == ["os.environ"]


def test_a_leak_is_found_under_any_imported_name() -> None:
    assert leaks_of(asking(the_time)) == ["time.time()"]


def test_a_function_that_the_handler_calls_is_named_by_its_own_line() -> None:
    line = sys._getframe().f_lineno + 3

    def helper() -> float:
        return random.uniform(0, 1)

    with pytest.raises(NonDeterministic, match=f"random.uniform\\(\\) in {HERE} line {line}"):
        assert_deterministic(asking(helper), Account(), Deposit("a"))


def test_a_leak_in_a_models_default_is_named_by_the_line_that_makes_the_model() -> None:
    assert leaks_of(asking(Stamped)) == ["uuid.uuid4()"]
    assert leaks_of(asking(Timed)) == ["time.monotonic()"]


def test_calls_of_other_services_are_leaks() -> None:
    def fetching(state: Account, given: Deposit, context: Context) -> Account:
        with pytest.raises(OSError, match="urlopen"):
            urlopen("http://127.0.0.1:1/", timeout=0.2)
        return state

    assert "urllib.request.urlopen()" in leaks_of(fetching)


def test_a_profile_function_of_before_is_restored() -> None:
    seen: list[str] = []

    def watching(frame: Any, event: str, called: Any) -> None:
        seen.append(event)

    before = sys.getprofile()
    sys.setprofile(watching)
    try:
        assert_deterministic(fire_at, Range(), FireAt(game_id="g", position=1))
        assert sys.getprofile() is watching
    finally:
        sys.setprofile(before)
    assert seen
