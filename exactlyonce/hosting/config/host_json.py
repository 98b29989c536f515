"""The Functions host's time limit for functions, as far as the application can see it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from exactlyonce.local_settings import setting

_IN_SETTINGS: Final = "AzureFunctionsJobHost__functionTimeout"
_ROOT: Final = "AzureWebJobsScriptRoot"
_SPAN: Final = re.compile(r"(?:(\d+)\.)?(\d+):(\d\d):(\d\d)(?:\.\d+)?")


def function_timeout(environment: Mapping[str, str] = os.environ) -> float | None:
    """Seconds after which the host ends a function, and with it the process and all other functions in it.

    An application setting overrides host.json. None if neither sets a limit: then the plan does, 5 minutes at least. None also
    for no limit, and for a text that cannot be read, which the host refuses.
    """
    limit = setting(environment, _IN_SETTINGS) or _of_host_json(setting(environment, _ROOT))
    span = _SPAN.fullmatch(limit) if isinstance(limit, str) else None
    if span is None:
        return None
    days, hours, minutes, seconds = (int(one or 0) for one in span.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()


def _of_host_json(root: str | None) -> object:
    if root is None:
        return None
    try:
        host = json.loads(Path(root, "host.json").read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
    return host.get("functionTimeout") if isinstance(host, dict) else None
