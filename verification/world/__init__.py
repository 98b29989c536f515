"""The model: a store and what it may answer, the workers that run production code on it, and the judges of what they do."""
