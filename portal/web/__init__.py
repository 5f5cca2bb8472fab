"""A door: pages for people with a browser."""
