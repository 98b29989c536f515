"""Replicas: writes and strong reads go to the primary; any other read may be served by a replica that is behind.

Documented behaviour: a read without a session token is served by an arbitrary replica, may miss committed writes and may go
backwards. With a token that is ahead of the replica the service waits briefly, then answers 404/1002.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from local_cosmos.semantics.errors import session_not_available


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the replicas of a container are behind.

    Attributes:
        writes: Commits that a lagging replica has not seen; a batch is one commit.
        varying: True: each read meets a replica that is behind by a random number from 0 to `writes`.
        share: Share of the reads that a lagging replica serves, from 0 to 1.
        catch_up_probability: How often the brief wait lets a replica catch up with a token that is ahead of it.
        catch_up_after: After that many answers 404/1002 the replica has caught up; None for never.
        seed: Of the chances above.
    """

    writes: int = 0
    varying: bool = False
    share: float = 1.0
    catch_up_probability: float = 0.0
    catch_up_after: int | None = None
    seed: int = 0


class Replicas:
    """The replicas of one container.

    Attributes:
        horizon: No replica is older than this LSN.
    """

    def __init__(self, lag: Lag, horizon: int = 0) -> None:
        self.horizon = horizon
        self.follow(lag)

    def follow(self, lag: Lag) -> None:
        """Lag in this way from now on; what is committed already stays visible."""
        self._lag = lag
        self._chance = Random(lag.seed)
        self._refused = 0

    def horizon_after(self, lsn: int) -> int:
        """The horizon once a commit has reached the primary."""
        return max(self.horizon, lsn - self._lag.writes)

    def serve(self, newest: int, required: int | None) -> int:
        """The LSN that a read sees.

        Args:
            required: The least LSN that the read must see, at most `newest`; None for any.

        Raises:
            RefusedError: 404/1002; the replica is behind the token.
        """
        replica = self._meet(newest)
        if required is None or required <= replica:
            return replica
        if self._catches_up():
            return required
        raise session_not_available()

    def _meet(self, newest: int) -> int:
        lag = self._lag
        if not lag.writes or self._chance.random() >= lag.share:
            return newest
        behind = self._chance.randint(0, lag.writes) if lag.varying else lag.writes
        return max(self.horizon, newest - behind)

    def _catches_up(self) -> bool:
        lag = self._lag
        if lag.catch_up_after is not None and self._refused >= lag.catch_up_after:
            self._refused = 0
            return True
        if self._chance.random() < lag.catch_up_probability:
            return True
        self._refused += 1
        return False
