"""What docs/performance.md shows of a result of `benchmarks.cpu`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

SHOWN: Final = 0.02
"""Smallest part of the time that a module has to take to be shown."""


def cpu_tables(result: Mapping[str, Any]) -> str:
    """Tables of the library's own time, of where it goes, and of the engine."""
    return "\n".join(["", *_library(result), "", *_engine(result), "", *_profile(result), ""])


def _library(result: Mapping[str, Any]) -> Iterator[str]:
    library, cosmos = result["library"], result["with the Cosmos SDK"]
    yield "| one message at a time, with one output | CPU time per message |"
    yield "| --- | ---: |"
    yield f"| the library and the handler | {_spread(library['own'], 'ms')} |"
    yield f"| the same, with a store and a queue in memory | {_spread(library['all'], 'ms')} |"
    yield f"| the same, with the Cosmos SDK for a store | {_spread(cosmos, 'ms')} |"
    yield f"| memory that one message needs at most at a time | {result['peak'] / 1024:.0f} KiB |"


def _engine(result: Mapping[str, Any]) -> Iterator[str]:
    yield "| the engine without I/O and without handlers | messages per second | effects per second |"
    yield "| --- | ---: | ---: |"
    for name, one in result["engine"].items():
        yield f"| {name} | {_spread(one['messages'])} | {one['effects']['median']:,.0f} |"


def _profile(result: Mapping[str, Any]) -> Iterator[str]:
    shown = {module: share for module, share in result["profile"].items() if share >= SHOWN}
    yield "| module | part of the CPU time of a message |"
    yield "| --- | ---: |"
    for module, share in shown.items():
        yield f"| `{module}` | {share:.0%} |"
    yield f"| others | {1 - sum(shown.values()):.0%} |"


def _spread(measured: Mapping[str, Any], unit: str = "") -> str:
    """The median, and between which figures the middle half of the rounds lies."""
    form = ",.0f" if measured["median"] > 100 else ".2f"  # noqa: PLR2004  # Messages per second, or milliseconds.
    lower, upper = (f"{one:{form}}" for one in measured["middle half"])
    told = f"{measured['median']:{form}} {unit}".strip()
    return f"{told} ({lower} to {upper})"
