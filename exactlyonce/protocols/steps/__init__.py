"""Steps shared by the protocols."""
