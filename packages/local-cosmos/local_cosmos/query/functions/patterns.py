"""Regular expressions with a limit of time.

Python's engine can take for ever where repetitions overlap, and cannot be interrupted. What might take long is therefore
searched in a process of its own, which is started when it is needed first and ended when it takes too long.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeAlias

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.values import UNDEFINED

SECONDS: Final = 2.0
"""For one text."""

_FLAGS: Final = {"m": re.MULTILINE, "s": re.DOTALL, "i": re.IGNORECASE, "x": re.VERBOSE}
_REPETITION: Final = re.compile(r"(\)?)[*+{?]")
_SHORT: Final = 10_000
"""Characters that one simple repetition searches in no time."""

_PROGRAM: Final = """
import json, re, sys
from itertools import islice
for line in sys.stdin:
    pattern, flags, text, most = json.loads(line)
    print(json.dumps([[one[0], *one.groups()] for one in islice(re.finditer(pattern, text, flags), most)]), flush=True)
"""

Match: TypeAlias = Sequence[str | None]
"""What a pattern matches, and then each of its groups; None for one that has no part in it."""


def matches(text: str, pattern: str, modifiers: str = "") -> bool:
    """Whether a text has a match of a pattern.

    Raises:
        UnsupportedQueryError: The pattern or a modifier is not valid, or it takes longer than `SECONDS`.
    """
    return bool(_found(text, pattern, modifiers, 1))


def first_match(text: str, pattern: str, modifiers: str = "", group: float = 0) -> Any:
    """The first match of a pattern, or of a group in it; undefined if there is none.

    Raises:
        UnsupportedQueryError: As for `matches`.
    """
    found = [_group(item, group) for item in _found(text, pattern, modifiers, 1)]
    return found[0] if found else UNDEFINED


def all_matches(text: str, pattern: str, modifiers: str = "", group: float = 0) -> list[Any]:
    """All matches of a pattern, or of a group in it, that are there.

    Raises:
        UnsupportedQueryError: As for `matches`.
    """
    found = [_group(item, group) for item in _found(text, pattern, modifiers, len(text) + 1)]
    return [item for item in found if item is not UNDEFINED]


def _group(match: Match, group: float) -> Any:
    part = match[int(group)] if 0 <= group < len(match) else None
    return UNDEFINED if part is None else part


def _found(text: str, pattern: str, modifiers: str, most: int) -> Sequence[Match]:
    compiled = _compiled(pattern, modifiers)
    repetitions = _REPETITION.findall(pattern)
    if not repetitions or (len(repetitions) == 1 and not repetitions[0] and len(text) <= _SHORT):
        return [(match_[0], *match_.groups()) for match_ in islice(compiled.finditer(text), most)]
    return _SEARCHER.search(pattern, compiled.flags, text, most)


class _Searcher:
    """The process that searches, for all threads of this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def search(self, pattern: str, flags: int, text: str, most: int) -> Sequence[Match]:
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self.stop()
            process = self._process = self._process or self._started()
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            answer = _asked(process, json.dumps([pattern, flags, text, most]))
            timer.cancel()
            if not answer:
                self.stop()
                raise UnsupportedQueryError(f"The regular expression {pattern!r} takes longer than {SECONDS} seconds.")
            found: list[Match] = json.loads(answer)
            return found

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            with self._process as process:  # Waits for its end and closes its pipes.
                process.kill()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        atexit.register(self.stop)
        command = [sys.executable, "-c", _PROGRAM]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _asked(process: subprocess.Popen[str], question: str) -> str:
    """The line that answers; empty if the process was ended meanwhile."""
    if process.stdin is None or process.stdout is None:
        return ""
    try:
        process.stdin.write(question + "\n")
        process.stdin.flush()
    except OSError:
        return ""
    return process.stdout.readline()


_SEARCHER: Final = _Searcher()


@lru_cache(maxsize=256)
def _compiled(pattern: str, modifiers: str) -> re.Pattern[str]:
    if unknown := set(modifiers) - _FLAGS.keys():
        raise UnsupportedQueryError(f"Regular expressions have no modifier {min(unknown)!r}; they have m, s, i and x.")
    flags = 0
    for modifier in modifiers:
        flags |= _FLAGS[modifier]
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnsupportedQueryError(f"The regular expression {pattern!r} cannot be: {error}.") from error
