"""Measures of the whole product, each beside a plain reference taken in the same run. `make bench` prints them."""
