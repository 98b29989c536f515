"""What can be asked of a running emulator besides being Cosmos DB: faults, lag, time, and what it has seen.

`RunningEmulator` (same process) is an `AdminClient` (over HTTP) that asks without HTTP; demo and tests may use either.
"""

from __future__ import annotations

from local_cosmos.admin_client import AdminClient as Administration

__all__ = ["Administration"]
