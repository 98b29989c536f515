"""The protocols that keep their records beside the entity, checked in every interleaving: co-located, stream, resequencer.

Entity and companions lie in one logical partition and change in one batch, so the world is a log of that partition's versions.
"""
