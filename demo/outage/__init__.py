"""An outage of the store under load, with hosts killed in the middle of it; afterwards everything has to heal by itself."""
