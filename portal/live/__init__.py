"""A door: WebSockets for browsers that listen."""
