"""Beamtime: a self-service portal for research teams that share GPUs. The map is portal/README.md."""
