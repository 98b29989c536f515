"""The library as business code sees it: message types, entities, the context, and the runner of handlers."""
