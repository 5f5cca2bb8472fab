"""What exists out there, and the only mouth that speaks to an execution backend."""
