"""How the guarantee is verified: the model checker, the replays on the real stack, and the simulation. Never shipped."""
