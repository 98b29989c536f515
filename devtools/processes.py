"""Processes that run tests: which tests share one, and how all that they start ends.

What a test process starts ends with it, also where it was killed, or ended because a test hung. Linux alone tells which
processes these are: they have a mark in their environment, as have those that they start in turn. (A child whose environment a
test clears is on no leash.) A process beside the tests, `python devtools/processes.py PID MARK`, waits for the end of the test
process, and then ends what has the mark.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

TOGETHER: Final = ("tests/spark/auditor/", "tests/spark/")
"""Folders whose tests run in one process, one after the other; of two that hold a test, the first."""
APART: Final = "tests/spark/"
"""A folder whose tests run in processes that run no others: where their Java fails, no other test does."""
LONGEST: Final = (
    "tests/spark/", "tests/acceptance/", "tests/model/", "packages/local-cosmos/", "packages/local-service-bus/",
    "packages/exactlyonce-dev/",
)  # fmt: skip
"""Folders of long tests, in the order in which processes share them. Those of all others follow."""

MARK: Final = "EXACTLYONCE_TEST_PROCESS"
_GRACE_SECONDS: Final = 15
_LOOK_AGAIN_SECONDS: Final = 0.2


def scheduler(config: Any, log: Any) -> object:
    """The scheduler of `--dist loadfile`, with some folders taken for one file, some apart from others, and long ones first.

    Args:
        config: pytest's.
        log: of xdist.
    """
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415  # It may be absent.

    class Scheduling(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.split("::", 1)[0])

        def _reschedule(self, node: Any) -> None:
            # A process keeps its last test until it has the next, or knows that there is none.
            while node in self.registered_collections and not node.shutting_down:
                if self._pending_of(self.assigned_work[node]) > 2:  # noqa: PLR2004  # As xdist does.
                    return
                self._assign_work_unit(node)

        def _assign_work_unit(self, node: Any) -> None:
            scope = next_scope(self.workqueue, self.assigned_work, node, self.numnodes)
            if scope is None:
                node.shutdown()
                return
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

        def remove_node(self, node: Any) -> str | None:
            # Others run what a process leaves, but for the test in which it ended: xdist would run that again without end.
            ended, left = _rest_of(self.assigned_work.pop(node))
            self.workqueue.update(left)
            for other in self.nodes:
                self._reschedule(other)
            return ended

    return Scheduling(config, log)


def _rest_of(work: Mapping[str, dict[str, bool]]) -> tuple[str | None, dict[str, dict[str, bool]]]:
    """The test in which a process ended, if it ran any, and what it left in its files and folders, without that test."""
    ended = next((id for unit in work.values() for id, done in unit.items() if not done), None)
    left = {scope: {id: done or id == ended for id, done in unit.items()} for scope, unit in work.items()}
    return ended, {scope: unit for scope, unit in left.items() if not all(unit.values())}


def next_scope(waiting: Iterable[str], assigned: Mapping[Any, Iterable[str]], node: Any, processes: int) -> str | None:
    """The file or folder that a process runs next; None if others run all that are left.

    Args:
        waiting: files and folders that no process has.
        assigned: those of each process, so far.
        node: the process that asks.
        processes: how many there are; where there is one, it runs everything.
    """
    apart = {other: next(iter(scopes)).startswith(APART) for other, scopes in assigned.items() if scopes}
    choices = {kind: [scope for scope in waiting if scope.startswith(APART) is kind] for kind in (True, False)}
    if processes == 1:
        choice = [*waiting]
    elif node in apart:
        choice = choices[apart[node]]
    else:
        keeps_one = sum(apart.values()) < processes - 1 or not choices[False]
        choice = choices[bool(choices[True]) and keeps_one]
    return min(choice, key=_rank, default=None)


def _rank(scope: str) -> int:
    """The place of a file, or a folder, in the order of folders."""
    return next((rank for rank, folder in enumerate(LONGEST) if scope.startswith(folder)), len(LONGEST))


def leash() -> None:
    """End with this process, at the latest, what it starts from now on."""
    if not hasattr(os, "pidfd_open"):
        return
    mark = f"{os.getpid()}-{time.time_ns()}"
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    command = [sys.executable, "-S", __file__, str(os.getpid()), mark]
    # It outlives this process: on no other's leash, and, of a session of its own, not in reach of Ctrl-C.
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    os.posix_spawn(sys.executable, command, unmarked, file_actions=nothing, setsid=True)
    os.environ[MARK] = mark


def main() -> None:
    """Wait for the end of a process, and end those with its mark: politely, and after a while by force."""
    process, mark = int(sys.argv[1]), sys.argv[2]
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(process)], [], [])
    force = time.monotonic() + _GRACE_SECONDS
    while left := [*_marked(mark)]:
        for item in left:
            with suppress(ProcessLookupError):
                os.kill(item, signal.SIGTERM if time.monotonic() < force else signal.SIGKILL)
        time.sleep(_LOOK_AGAIN_SECONDS)


def _marked(mark: str) -> Iterator[int]:
    entry = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended, or belongs to somebody else.
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


if __name__ == "__main__":
    main()
