"""`beamtime`, the command for a researcher's own machine: standard library only, no Django. README.md tells its use."""
