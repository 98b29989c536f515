"""An explicit-state model checker for the shipped strategies.

It runs the production generators themselves, unchanged, in a small world that answers every effect in every way the fault
model allows, and looks at every interleaving of several workers. Breadth first, so a counterexample is a shortest one.
"""
