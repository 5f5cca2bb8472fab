"""A door: the cluster talking to us."""
