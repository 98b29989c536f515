"""For pytest: an emulator for each test that asks for one, and the story of each test that fails.

Installed with the package. `local_cosmos` is the fixture, and the marker of the same name holds the account's settings:

    @pytest.mark.local_cosmos(partitions=3, consistency="Strong", now=1_800_000_000)
    def test_an_order_is_placed_once(local_cosmos):
        with CosmosClient(local_cosmos.endpoint, local_cosmos.key) as client: ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from local_cosmos.inprocess import RunningEmulator

_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--local-cosmos-stories`."""
    parser.getgroup("local-cosmos").addoption(
        "--local-cosmos-stories",
        type=Path,
        metavar="DIR",
        help="write the story of each test that fails there, for `local-cosmos --replay`",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "local_cosmos(tls=False, now=None, **settings): https; seconds since 1970 at which the clock stands until it is moved; "
        "and the fields of AccountSettings",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Remember which tests fail."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture
def local_cosmos(request: pytest.FixtureRequest) -> Iterator[RunningEmulator]:
    """A running emulator with an empty account, of the test's own."""
    from local_cosmos.inprocess import running_emulator  # noqa: PLC0415  # pytest starts faster for other tests.
    from local_cosmos.semantics.account import AccountSettings  # noqa: PLC0415
    from local_cosmos.semantics.clock import Clock  # noqa: PLC0415

    marker = request.node.get_closest_marker("local_cosmos")
    settings = dict(marker.kwargs) if marker else {}
    tls, now = settings.pop("tls", False), settings.pop("now", None)
    clock = None if now is None else Clock(lambda: float(now))
    stories: Path | None = request.config.getoption("--local-cosmos-stories")
    with TemporaryDirectory() as directory:
        story = Path(directory) / "story.jsonl" if stories else None
        with running_emulator(AccountSettings(**settings), clock=clock, tls=tls, story=story) as running:
            yield running
        if story is not None and stories is not None and request.node.stash.get(_FAILED, False):
            stories.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^\w.-]+", "-", request.node.nodeid)
            (stories / f"{name}.jsonl").write_bytes(story.read_bytes())
