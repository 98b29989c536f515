"""The table of docs/peers.md, of a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.report import measured_on
from benchmarks.tables import targets_table
from benchmarks.targets import peer_targets

_FIGURES: Final = {
    "messages/s": ",.0f",
    "deliveries/s": ",.0f",
    "p50 ms": ",.1f",
    "p99 ms": ",.0f",
    "bytes per message": ",.0f",
}


def peers_table(result: Mapping[str, Any]) -> str:
    """The figures of everybody who was measured, and a sentence for each who was not."""
    return targets_table(peer_targets(result)) + "\n".join(["", *_lines(result), ""])


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"| | {' | '.join(_FIGURES)} |"
    yield "| --- |" + " ---: |" * len(_FIGURES)
    peers: Mapping[str, Mapping[str, Any]] = result["peers"]
    measured = {name: item for name, item in peers.items() if "figures" in item}
    for name, one in measured.items():
        yield f"| {name} | {' | '.join(_cell(one['figures'][figure], how) for figure, how in _FIGURES.items())} |"
    yield ""
    for name, one in peers.items():
        if "missing" in one:
            yield f"{name} was not measured. {one['missing']}\n"
        for void in one.get("void", ()):
            yield f"{name}, void: {void}\n"
    versions = {part: number for item in measured.values() for part, number in item["versions"].items()}
    work = result["workload"]
    yield (
        f"Medians, and least to most, of {result['rounds']} rounds of {work['messages']:,} messages and {work['copies']:,}"
        f" copies for {work['entities']:,} entities, {work['in_flight']} in flight."
        f" {measured_on(result)}, with"
        f" {', '.join(f'{part} {number}' for part, number in sorted(versions.items()))}."
        " All rounds are in `benchmarks/results/peers.json`."
    )


def _cell(figure: Mapping[str, float], how: str) -> str:
    median, least, most = (format(figure[name], how) for name in ("median", "least", "most"))
    return f"{median} ({least}-{most})"
