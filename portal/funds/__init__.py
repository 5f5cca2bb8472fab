"""Prices with dates of validity, and estimates made from them."""
