"""What takes the place of an effect that is removed, and of the guards that effects and helpers carry."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Final

_MODULE: Final = "effects"
_NO_COMPANIONS: Final = f"{_MODULE}.FoundCompanions(())"

_REPLIES: Final[dict[str, str | None]] = {
    "LoadEntity": "effects.Loaded(None, None, 0, None)",
    "request": "effects.Loaded(None, None, 0, None)",
    "FindProcessed": "effects.Found(frozenset(), None)",
    "FindChannels": "effects.FoundChannels(())",
    "HasRecords": "False",
    "HasCompanions": "False",
    "SaveEntity": 'effects.Saved("1", None)',
    "SaveBatch": 'effects.Saved("1", None)',
    "Publish": "effects.PUBLISHED",
    "LoadRequests": "effects.FoundRequests((), None)",
    "first_look": "effects.FoundRequests((), None)",
    "KeepAnswers": 'effects.Written("0:-1#0")',
    "keep_answers": "view.memory",
    "outbox.owed.keep_answers": "memory",
    "look_for_requests": "looked",
    "pay": "committed",
    "WriteRecords": 'effects.Written("0:-1#0")',
    "Stage": 'effects.Written("0:-1#0")',
    "LoadStaged": "effects.FoundStaged(())",
    "DeleteStaged": "None",
    "DeleteChannels": "None",
    "DeleteProcessed": "None",
    "LoadProcessed": "effects.FoundRecords(())",
    "LoadCompanions": _NO_COMPANIONS,
    "FindEntries": _NO_COMPANIONS,
    "FindOwing": _NO_COMPANIONS,
    "FindNumbered": f"{_MODULE}.FoundNumbered(())",
    "ReplaceCompanions": "None",
    "DeleteCompanions": "None",
    "WriteOnce": "KEPT",
    "DeleteBlobs": "None",
    "Park": 'effects.Written("0:-1#0")',
    "park": 'Settled("parked", view.memory)',
    "LoadParked": "effects.FoundParked(None, None, None)",
    "DeleteParked": "None",
    "_known": "{}",
    "write_blobs": "None",
    "fence": "view.memory",
    "load": None,
    "load_with_companions": None,
    "admitted": None,
    "settle": None,
    "companions_know": None,
    "committed_by_companions": None,
    "clean_companions": None,
    "clean_by_ledger": None,
    "finish": "None",
    "self.tend": None,
    "self.mark": "Finished(Memory())",
    "strategy.committed": "frozenset()",
    "publish_owed": "view.memory",
    "publish_records": "None",
    "sweep_records": None,
    "handled_again": "()",
    "write_apart": "view.ledger.token",
    "delete_superseded": "None",
    "delete_staged": "None",
    "_never_had_a_ledger": "True",
    "skip": "None",
    "ask_again": "None",
    "self.attempt": "Finished(view.memory)",
    "Outbox().mark": "Finished(Memory())",
    "self.load_state": None,
    "self._look": None,
    "self._process": None,
    "look_apart": "view",
    "outbox.look.look_for_channels": "looked",
    "outbox.protocol.look_for_channels": "from_memory(work.entity, saved, memory)",
    "with_answers": "view",
    "self._proof": "judged(messages, view)",
    "self._finished": "None",
    "self._commit": None,
    "_commit": None,
    "outbox.due.commit": None,
    "release": "()",
    "_forget": None,
    "ended": "finished",
    "_received": None,
    "Begin": None,
    "()": None,
}
"""What a removed effect is taken to have answered: as if nothing could go wrong. None: nothing is left without it.

A name that means something else in one module is qualified there.
"""

ARGUMENTS: Final = {
    ("LoadEntity", 1): "None",
    ("FindProcessed", 2): "None",
    ("FindChannels", 2): "None",
    ("LoadStaged", 2): "None",
    ("LoadRequests", 2): "None",
    ("LoadProcessed", 2): "None",
    ("LoadCompanions", 2): "None",
    ("FindEntries", 2): "None",
    ("FindNumbered", 3): "None",
    ("SaveEntity", 2): "'*'",
    ("SaveBatch", 2): "'*'",
    ("SaveBatch", 3): "()",
    ("SaveBatch", 4): "()",
    ("LoadParked", 2): "None",
    ("DeleteParked", 2): "'*'",
    ("Begin", 0): "1",
}
"""Arguments of effects that carry a guard, and what is there without."""

UNDONE: Final = {"with_published": "{0}", "unmarked": "{0}.memory", "remembering": "{1}"}
"""Helpers, and what there is without them: the object (0) or the first argument (1)."""


def reply_to(call: ast.expr, module: ModuleType) -> str | None:
    """Source of what an effect, or a function that asks for some, answers when it is removed; None if nothing is left.

    Raises:
        LookupError: nobody has said so yet.
    """
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ast.unparse(call)
    if name == "Together" and isinstance(call, ast.Call):  # The first of the two is asked all the same.
        first, second = call.args
        return f"((yield from {ast.unparse(first)}), {reply_to(second, module)})"
    for known in (f"{module.__name__.removeprefix('exactlyonce.protocols.')}.{name}", name):
        if known in _REPLIES:
            return _REPLIES[known]
    raise LookupError(f"What does the reply to {name!r} look like when nothing goes wrong? `_REPLIES` has to say it.")
