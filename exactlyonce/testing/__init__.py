"""For tests of applications and adapters. Never imported by the library itself.

`run` tries a handler without a store. `store_contract` and `transport_contract` are suites to inherit from: an adapter that
passes them can stand under every protocol.
"""

from exactlyonce.testing.running import Ran, Sent, run

__all__ = ["Ran", "Sent", "run"]
