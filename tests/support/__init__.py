"""What the suite needs from the machine: real servers, started for the run and stopped after it."""
