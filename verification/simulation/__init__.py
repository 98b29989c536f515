"""Simulation: the shipped drivers on a virtual clock, with random trouble by seed, and a judge who knows nothing of them."""
