"""Making the calls that handlers committed."""
