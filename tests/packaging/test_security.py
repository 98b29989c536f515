"""The threats in SECURITY.md: each names a test that exists, or says that nothing prevents it."""

from __future__ import annotations

import re
from pathlib import Path

THREATS = [
    line.strip("| ").split(" | ")
    for line in Path("SECURITY.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| (send|call|write|read|act|publish|reach) ", line)
]


def test_every_threat_has_a_test_or_says_who_has_to_prevent_it() -> None:
    assert len(THREATS) > 15
    for row in THREATS:
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row[-1])
        assert named or row[0].startswith(("send", "call", "reach")), row
        for file, name in named:
            assert re.search(rf"def {name}\b", Path("tests", file).read_text(encoding="utf-8")), name
