"""What can go wrong, in sentences for the terminal."""


class Trouble(Exception):
    """Told to the person, who has to do something about it."""


class Away(Exception):
    """The portal cannot be reached, or has no time: asking again later may help."""
