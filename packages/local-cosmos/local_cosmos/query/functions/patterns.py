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
from functools import lru_cache
from typing import Final

from local_cosmos.query.errors import UnsupportedQueryError

SECONDS: Final = 2.0
"""For one text."""

_FLAGS: Final = {"m": re.MULTILINE, "s": re.DOTALL, "i": re.IGNORECASE, "x": re.VERBOSE}
_REPETITION: Final = re.compile(r"(\)?)[*+{?]")
_SHORT: Final = 10_000
"""Characters that one simple repetition searches in no time."""

_PROGRAM: Final = """
import json, re, sys
for line in sys.stdin:
    pattern, flags, text = json.loads(line)
    print(int(re.search(pattern, text, flags) is not None), flush=True)
"""


def matches(text: str, pattern: str, modifiers: str = "") -> bool:
    """Whether a text has a match of a pattern.

    Raises:
        UnsupportedQueryError: The pattern or a modifier is not valid, or it takes longer than `SECONDS`.
    """
    compiled = _compiled(pattern, modifiers)
    repetitions = _REPETITION.findall(pattern)
    if not repetitions or (len(repetitions) == 1 and not repetitions[0] and len(text) <= _SHORT):
        return compiled.search(text) is not None
    return _SEARCHER.search(pattern, compiled.flags, text)


class _Searcher:
    """The process that searches, for all threads of this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def search(self, pattern: str, flags: int, text: str) -> bool:
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self.stop()
            process = self._process = self._process or self._started()
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            answer = _asked(process, json.dumps([pattern, flags, text]))
            timer.cancel()
            if not answer:
                self.stop()
                raise UnsupportedQueryError(f"REGEXMATCH with {pattern!r} takes longer than {SECONDS} seconds.")
            return answer == "1\n"

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
        raise UnsupportedQueryError(f"REGEXMATCH has no modifier {min(unknown)!r}; it has m, s, i and x.")
    flags = 0
    for modifier in modifiers:
        flags |= _FLAGS[modifier]
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnsupportedQueryError(f"The regular expression {pattern!r} cannot be: {error}.") from error
