"""Charges from intervals and prices, running totals and the team's month."""
