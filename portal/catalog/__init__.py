"""Job templates, their published versions, typed parameters, and the pure function to a work spec."""
