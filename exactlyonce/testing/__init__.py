"""Tools for tests of applications and adapters. The library itself never imports them.

`run` runs a handler without a store; `assert_deterministic` runs it twice, and detects clocks and other hidden inputs. `App`
runs a whole application in memory, on a clock; `explore` runs it in every order and with faults, against invariants.
`contracts` has a suite for each port to inherit from: an adapter that passes can serve every protocol.
"""

from exactlyonce.testing.app import App, Killed, Parked
from exactlyonce.testing.determinism import NonDeterministic, assert_deterministic
from exactlyonce.testing.explore import Explored, InvariantBroken, Progress, Seen, Unexplored, explore
from exactlyonce.testing.runner import Ran, Sent, WrittenOnce, run
from exactlyonce.testing.services import Request, Response

__all__ = [
    "App",
    "Explored",
    "InvariantBroken",
    "Killed",
    "NonDeterministic",
    "Parked",
    "Progress",
    "Ran",
    "Request",
    "Response",
    "Seen",
    "Sent",
    "Unexplored",
    "WrittenOnce",
    "assert_deterministic",
    "explore",
    "run",
]
