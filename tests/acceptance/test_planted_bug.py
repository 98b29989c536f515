"""The shop's own test finds a bug that is planted in it, and tells the shortest story that leads there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo.stack import ROOT

pytestmark = pytest.mark.acceptance
PAYS_BACK = '        context.send("payments", Refund(order=charged.order))\n'


def test_a_shop_that_forgets_to_pay_back_is_found_by_its_own_test(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "examples" / "shop" / "orders.py"
    right = source.read_text()
    assert PAYS_BACK in right
    source.write_text(right.replace(PAYS_BACK, ""))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/shop/test_shop.py"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ran = subprocess.run(
        [*command, "-k", "whatever_comes_first"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "InvariantBroken: shipped_or_paid_back" in ran.stdout
    story = ran.stdout[ran.stdout.index("The shortest story") :]
    assert story.index("takes CancelIfUnpaid(order='o-1')") < story.index("takes Charged(order='o-1')")
