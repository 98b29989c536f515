"""HTTP requests: their keys and fingerprints, and the door that answers them."""
