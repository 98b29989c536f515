"""Tools for tests of applications and adapters. The library itself never imports them.

`run` runs a handler without a store; `assert_deterministic` runs it twice, and finds its other inputs, such as clocks.
`contracts` has a suite for each port to inherit from: an adapter that passes them can serve every protocol.
"""

from exactlyonce.testing.determinism import NonDeterministic, assert_deterministic
from exactlyonce.testing.runner import Ran, Sent, WrittenOnce, run

__all__ = ["NonDeterministic", "Ran", "Sent", "WrittenOnce", "assert_deterministic", "run"]
