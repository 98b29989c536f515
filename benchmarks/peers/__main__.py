"""The same work by this library and by what else a user would pick: `python -m benchmarks.peers`.

Counters of 200 entities, deduplication by message id, one output for each message; 2,000 messages and 200 copies, 16 in
flight. Peers take turns, each from an empty start, and the order is turned round every time. A round counts only if counters
and sink have every message once. Peers that are not installed are left out, and named. Writes the result, and the table of
docs/peers.md.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

from benchmarks.peers.by_dbos import DBOS_ON_POSTGRES, DBOS_ON_SQLITE
from benchmarks.peers.by_restate import restate
from benchmarks.peers.handwritten import HANDWRITTEN
from benchmarks.peers.measuring import compare
from benchmarks.peers.ours import ours
from benchmarks.peers.page import peers_table
from benchmarks.peers.port import Peer, Running
from benchmarks.peers.processes import cancelled_by_sigterm
from benchmarks.peers.workload import Workload
from benchmarks.report import ROOT, exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.targets import missed, peer_targets

PAGE: Final = ROOT / "docs" / "peers.md"
LEAST: Final = 10
"""How few messages there may be: a tenth of them has copies."""

LATENCIES: Final = (0, 5)
"""Milliseconds that the local Cosmos DB takes longer for every request."""


def main() -> int:
    """Measure and write everything; 1 if a round was void, or a target was missed."""
    made = parser("peers", __doc__, PAGE)
    made.add_argument("--rounds", type=int, default=3, help="of each peer (default: %(default)s)")
    made.add_argument("--messages", type=int, default=Workload().messages, help="in a round (default: %(default)s)")
    made.add_argument("--only", default="", metavar="TEXT", help="peers with this in their name; writes nothing")
    npm = Path(gettempdir()) / "restate-server"
    made.add_argument("--npm", type=Path, default=npm, help="where npm installs (default: %(default)s)")
    options = parsed(made, "peers")
    if options.rounds < 1 or options.messages < LEAST:
        made.error(f"it takes 1 round and {LEAST} messages at least")
    peers = [item for item in everybody(options.npm) if options.only in item.name]
    if not peers:
        made.error(f"no peer has {options.only!r} in its name")
    workload = replace(Workload(), messages=options.messages, copies=options.messages // 10)
    result: dict[str, Any] = {"machine": machine(), "workload": asdict(workload), "rounds": options.rounds}
    result["peers"] = asyncio.run(cancelled_by_sigterm(compare(peers, workload, options.rounds)))
    print(json.dumps(result, indent=2))
    if not options.only:
        write_result(options.output, result)
        write_section(options.page, "peers", peers_table(result))
    void = (f"{name}: {why}" for name, item in result["peers"].items() for why in item.get("void", ()))
    return exit_code(chain(void, missed(peer_targets(result))))


def everybody(npm: Path) -> list[Peer[Running]]:
    """All that are compared."""
    return [HANDWRITTEN, restate(npm), DBOS_ON_POSTGRES, DBOS_ON_SQLITE, *map(ours, LATENCIES)]


if __name__ == "__main__":
    sys.exit(main())
