"""What is simulated: the shipped protocols, or with one of them exchanged for a broken twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects import Step
from exactlyonce.strategies.retention import clean_processed, clean_staged
from exactlyonce.strategies.settling import requeue, settle, sweep


@dataclass(frozen=True, slots=True)
class Protocols:
    """The generators under test, by what they are for; each as it is in `exactlyonce.strategies`."""

    outbox: type[Outbox] = Outbox
    sweep: Callable[..., Step[Any]] = sweep
    settle: Callable[..., Step[Any]] = settle
    requeue: Callable[..., Step[Any]] = requeue
    clean_staged: Callable[..., Step[Any]] = clean_staged
    forget: Callable[..., Step[Any]] = clean_processed


SHIPPED = Protocols()
