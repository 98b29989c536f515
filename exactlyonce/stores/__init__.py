"""Where documents are kept: the port, and its adapters."""
