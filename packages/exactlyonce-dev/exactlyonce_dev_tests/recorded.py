"""An application in memory, whose deliveries are witnessed as those of `exactlyonce dev` are, and whose messages take time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from random import Random
from typing import Any

from exactlyonce.testing import App
from exactlyonce_dev.literals import Names
from exactlyonce_dev.story import Story
from exactlyonce_dev.trial import Writer, Written
from exactlyonce_dev.witness import End, When, Witness

START = datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=timezone.utc)


class Recorded:
    """An application, its story, and what is written of it.

    Args:
        names: of its objects.
        entities, given: as for `App`.
        slow: whether messages take some milliseconds, drawn with a seed.
    """

    def __init__(self, names: Names, *entities: Any, slow: bool = False, **given: Any) -> None:
        self.names = names
        self.story = Story()
        self.app = App(*entities, **given)
        if slow:
            loop, random = self.app.host.loop, Random(0)
            plan = loop.call_later

            def later(delay: float, callback: Callable[..., object], *args: Any, **more: Any) -> Any:
                transit = random.uniform(0.003, 0.3) if callback == self.app.host._appear else 0.0
                return plan(delay + transit, callback, *args, **more)

            loop.call_later = later  # type: ignore[method-assign]
        self.watch()

    def watch(self) -> None:
        def destination(type: str, _: object) -> str | None:
            return next((name for name, taker in self.app.host.takers.items() if taker.name == type), None)

        def now() -> datetime:
            return self.app.now

        self.witness = Witness(self.story.hear, destination, now, self.killed)
        self.app.once.observe(self.witness)  # A process that has begun looks for no observer any more.
        self.app.once._parts.sender.runtime.observer_slot.observer = self.witness

    def killed(self) -> None:
        self.story.end_process()
        try:
            self.app.host.interruptions.kill()
        finally:
            self.watch()

    def kill(self, when: When, effect: str, title: str, type: str) -> None:
        self.witness.ends.append(End(when, effect, title, type))

    def written(self, message: str | None = None) -> Written:
        """The story of the latest delivery of a message, or of any, as a test."""
        whole = self.story.whole()
        id = next(
            row["id"] for row in reversed(whole["rows"]) if row.get("envelope") and message in (None, row["message"])
        )
        return Writer(self.app.once, self.names, whole["rows"], whole["tries"]).write(id)


def run(text: str) -> None:
    """Run a test, of which nothing but its text is known."""
    space: dict[str, Any] = {}
    exec(compile(text, "test_story.py", "exec"), space)  # noqa: S102  # Written a moment ago.
    (test,) = (item for name, item in space.items() if name.startswith("test_"))
    test()
