"""A mutator for strategies: every effect, condition and comparison removed or inverted, each by itself.

A check that cannot fail is worth nothing, and neither is a guard that can be missing. So every mutant has to be found by the
model checker, or to be listed with the reason why it is harmless.
"""
