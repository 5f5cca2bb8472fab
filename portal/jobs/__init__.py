"""What a researcher asked for and what became of it: jobs, attempts, events, and the one state machine."""
