"""From a way through the model to the same way through the real stack.

A trace of the model checker is played on the production driver, the adapter, the real SDK and the local Cosmos DB: the same
steps in the same order, with the same trouble, and nothing else. After every step reality must hold what the model holds. So a
bug of the model and a bug of the adapter cannot hide behind each other, and a counterexample is a test.
"""
