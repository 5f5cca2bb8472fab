"""Who did what to what, when, before and after; append-only, written inside the transaction of the deed."""
