"""How the guarantee is verified: the model checker, the pages written from it, and the simulation. Never shipped."""
