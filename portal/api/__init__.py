"""A door: REST for programs."""
