"""Upkeep of entities apart from their messages: the sweeper, and operators' actions."""
