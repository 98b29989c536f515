"""What a measurement was made on, so that nobody compares figures of different machines."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path


def machine() -> dict[str, object]:
    """Cores, CPU model, operating system, Python, and the date."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
