"""The demo: a shooting-range game on the local stack, with a visible amount of trouble, and a judge that trusts nobody."""
