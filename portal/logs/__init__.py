"""What the containers said: numbered, kept, and read back by line number."""
