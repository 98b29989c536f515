"""Mutants of the protocols of one partition that the checker does not find, with the reason why. Reviewed by hand."""

from __future__ import annotations

from typing import Final

LISTED: Final = """
Only streams have entries.
    settling_beside._finished: 'protocol == 'stream' and (entries := entries_in(sight))' without 'protocol == 'stream''
Only the type checker asks: whatever lies beside a read model is numbered, and elsewhere nothing was found.
    settling_beside._finished: condition 'isinstance(one, NumberedMessage)' forced True
Only the type checker asks: what is looked up by the place of a message is numbered.
    resequencer._known: condition 'isinstance(one, NumberedMessage)' forced True
Only the type checker asks: what is looked up as an entry of a stream is one.
    replaying.replay: condition 'isinstance(entry, StreamEntry)' forced True
    version_stream.entries_in: condition 'isinstance(entry, StreamEntry)' forced True
    version_stream.handled_again: condition 'isinstance(entry, StreamEntry)' forced True
Only the type checker asks: what is looked up as a co-located record is one.
    colocated.publish_records: condition 'isinstance(record, ColocatedRecord)' forced True
    colocated._settled: 'isinstance(record, ColocatedRecord) and record.owed is not None' without 'isinstance(record, ColocatedRecord)'
    colocated.attempt: condition 'isinstance(record, ColocatedRecord)' forced True
Only the type checker asks: the document that was just written has a ledger.
    resequencer._commit: 'read_entity(entity, document).ledger or view.ledger' without 'view.ledger'
Only the type checker asks: where a message is committed, there is something to save.
    batching.document: condition 'self.saved is None' forced False
Only the type checker asks: a stream of events whose type applies none was refused when its ledger was read.
    versions._stepped_forward: 'entry.events is None or work.evolve is None' without 'work.evolve is None'
Only the type checker asks: an entry without a state was refused before.
    versions._whole: 'entry.before or Json('null')' without 'Json('null')'
Only a traceback tells the difference: it names the error of whoever applies events, or the one that the library made of it.
    versions._stepped_forward: 'error.__cause__ or error' without 'error.__cause__'
    versions._stepped_forward: 'error.__cause__ or error' without 'error'
A short way round for small states: the reckoning that follows lets them be as well.
    version_stream._require_room: condition '3 * state.size + _MESSAGE_ROOM <= BATCH_BYTES' forced False
    version_stream._require_room: '3 * state.size + _MESSAGE_ROOM <= BATCH_BYTES' turned into '3 * state.size + _MESSAGE_ROOM < BATCH_BYTES'
A state of just that size fits no document with its ledger, and is refused as such.
    version_stream._require_room: 'before.json.size < state.size <= MAX_DOCUMENT_BYTES' turned into 'before.json.size < state.size < MAX_DOCUMENT_BYTES'
A patch that is as long as the whole state does as well.
    versions.way_back: 'way.size < start.size' turned into 'way.size <= start.size'
A source that the earliest message waits for is another one than that message's, so the two never compare as equal.
    total_order.earliest: '(one.passed, one.source) > (time, source)' turned into '(one.passed, one.source) >= (time, source)'
What was published before owes nothing in the document that was just saved, which holds the entries of this batch only.
    resequencer._commit: 'memory.published | ledger.owing' without 'memory.published'
The places are cut to the room in the end all the same.
    resequencing.wanted: '(ready := [one for one in ready if one in self.arrived or self._is_held…' without 'len(places) < room'
    resequencing.wanted: 'len(places) < room' turned into 'len(places) <= room'
There is no document of the next number unless it is held: an attempt that saw one would be behind, and has ended.
    resequencing._handled_next: condition 'self._is_held(place)' forced True
    resequencing._heads: 'self._is_held(place) and place in known' without 'self._is_held(place)'
In one order the next message of every source is read, so one that is held and was not read is no first one, and did not fail.
    resequencing._heads: 'self._is_held(place) and self._reception(source).failing is None' without 'self._reception(source).failing is None'
A message that was read before is read again, which takes time only.
    resequencing._envelope: condition 'place not in self._read' forced True
Both limits are round numbers below the service's own; one byte less is as good.
    resequencing._hold: 'self.document.size + size > BATCH_BYTES' turned into 'self.document.size + size >= BATCH_BYTES'
    resequencing._has_room: 'document > MAX_DOCUMENT_BYTES' turned into 'document >= MAX_DOCUMENT_BYTES'
    resequencing._has_room: 'self._bytes + added + document > BATCH_BYTES' turned into 'self._bytes + added + document >= BATCH_BYTES'
"""  # noqa: E501  # Names of mutants are as long as what they quote.
