"""The accounts of an application: clients, checks at the start, and the owner of the library's container."""
