"""One client that repeats its requests, and products that are killed meanwhile: `python -m benchmarks.retries`.

The client sends 1,000 requests with a key each, loses the first answer to each, and repeats it until it was answered twice.
The processes of the product are killed by SIGKILL in turn. Then come a request with another body under a known key, and keys
that have expired. Products that are not installed are left out, and named. Writes the result, and the tables of docs/peers.md.
Fails if a key of this library has not exactly one effect and one answer, or if an expired one is applied in spite of its time.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

from benchmarks.peers.processes import cancelled_by_sigterm
from benchmarks.report import ROOT, exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.retries.by_dbos import ON_DBOS
from benchmarks.retries.by_ours import DATED, OURS
from benchmarks.retries.by_restate import on_restate
from benchmarks.retries.measuring import Work, measure
from benchmarks.retries.page import retries_tables
from benchmarks.retries.port import Product

PAGE: Final = ROOT / "docs" / "peers.md"


def main() -> int:
    """Measure and write everything; 1 if this library failed."""
    made = parser("retries", __doc__, PAGE)
    made.add_argument("--requests", type=int, default=Work().requests, help="of each product (default: %(default)s)")
    made.add_argument("--kills", type=int, default=Work().kills, help="of each product (default: %(default)s)")
    made.add_argument("--only", default="", metavar="TEXT", help="products with this in their name; writes nothing")
    npm = Path(gettempdir()) / "restate-server"
    made.add_argument("--npm", type=Path, default=npm, help="where npm installs (default: %(default)s)")
    options = parsed(made, "retries")
    products: list[Product] = [OURS, on_restate(options.npm), ON_DBOS]
    chosen = [product for product in products if options.only in product.name]
    work = replace(Work(), requests=options.requests, kills=options.kills)
    result: dict[str, Any] = {"machine": machine(), "work": asdict(work)}
    result["products"] = {item.name: asyncio.run(cancelled_by_sigterm(measure(item, work))) for item in chosen}
    print(json.dumps(result, indent=2))
    if not options.only:
        write_result(options.output, result)
        write_section(options.page, "retries", retries_tables(result))
    return exit_code(failures(result))


def failures(result: Mapping[str, Any]) -> Iterator[str]:
    """What this library did not keep, each in a sentence."""
    measured = result["products"].get(OURS.name)
    if measured is None:
        return
    if "missing" in measured:
        yield measured["missing"]
        return
    for what in ("effects of a key", "answers of a key"):
        if measured[what].keys() != {"1"}:
            yield f"{what.capitalize()}: {measured[what]}; 1 is wanted for all."
    if (expired := measured["expired"][DATED])["effects"] != 1:
        yield f"A key that carries its time had {expired['effects']} effects after it expired; 1 is wanted."


if __name__ == "__main__":
    sys.exit(main())
