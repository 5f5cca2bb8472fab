"""The suite's settings: the portal's own, read from an environment made for the run."""

from tests.support.environment import prepare

prepare()

from portal.config.settings import *  # noqa: E402, F403
