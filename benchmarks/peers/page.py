"""The table of docs/peers.md, written between its marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import pages

PLACE: Final = "peers"
BEGIN: Final = pages.BEGIN.replace("growth", PLACE)
_FIGURES: Final = {
    "messages/s": ",.0f",
    "deliveries/s": ",.0f",
    "p50 ms": ",.1f",
    "p99 ms": ",.0f",
    "bytes per message": ",.0f",
}


def write_peers(page: Path, result: Mapping[str, Any]) -> None:
    """Put the table of a result in place of the one that is there. Raises `ValueError` if the page has no place for it."""
    pages.require_place(page, PLACE)
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(pages.END)[2]
    table = "\n".join(_lines(result))
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{pages.END}{after}", encoding="utf-8")


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"| | {' | '.join(_FIGURES)} |"
    yield "| --- |" + " ---: |" * len(_FIGURES)
    peers: Mapping[str, Mapping[str, Any]] = result["peers"]
    measured = {name: one for name, one in peers.items() if "figures" in one}
    for name, one in measured.items():
        yield f"| {name} | {' | '.join(_cell(one['figures'][figure], how) for figure, how in _FIGURES.items())} |"
    yield ""
    for name, one in peers.items():
        if "missing" in one:
            yield f"{name} was not measured. {one['missing']}\n"
        for void in one.get("void", ()):
            yield f"{name}, void: {void}\n"
    versions = {part: number for one in measured.values() for part, number in one["versions"].items()}
    machine, work = result["machine"], result["workload"]
    yield (
        f"Medians, and least to most, of {result['rounds']} rounds of {work['messages']:,} messages and {work['copies']:,}"
        f" copies for {work['entities']:,} entities, {work['in_flight']} in flight."
        f" Measured on {machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, {machine['date']}, with"
        f" {', '.join(f'{part} {number}' for part, number in sorted(versions.items()))}."
        " All rounds are in `benchmarks/results/peers.json`."
    )


def _cell(figure: Mapping[str, float], how: str) -> str:
    median, least, most = (format(figure[name], how) for name in ("median", "least", "most"))
    return f"{median} ({least}-{most})"
