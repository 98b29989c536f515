"""The states of a scenario and every step from one to another, with what makes them few; and steps as a story."""
