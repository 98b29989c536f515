"""For tests of applications and adapters. Never imported by the library itself.

`run` tries a handler without a store; `assert_deterministic` runs it twice, and finds what it asks besides what it is given.
`store_contract`, `transport_contract` and `blob_contract` are suites to inherit from: an adapter that passes them can stand
under every protocol.
"""

from exactlyonce.testing.determinism import NonDeterministic, assert_deterministic
from exactlyonce.testing.runner import Ran, Sent, WrittenOnce, run

__all__ = ["NonDeterministic", "Ran", "Sent", "WrittenOnce", "assert_deterministic", "run"]
