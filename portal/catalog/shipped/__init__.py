"""The templates that Beamtime brings along: five that really run, on every backend, and the start of a new one."""

from portal.catalog.shipped.definitions import Shipped, shipped_templates
from portal.catalog.shipped.parts import Images, starter

__all__ = ["Images", "Shipped", "shipped_templates", "starter"]
