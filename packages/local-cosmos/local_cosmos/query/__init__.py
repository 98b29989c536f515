"""The query language: grammar, tree, evaluator."""
