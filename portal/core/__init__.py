"""The vocabulary everyone shares and no business: clock, money, typed errors, hints, bus, leases."""
