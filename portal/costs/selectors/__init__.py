"""Costs as they are read: every page, API answer and export sums the same charge lines."""

from portal.costs.selectors.job import charges_of, job_cost
from portal.costs.selectors.month import team_month

__all__ = ["charges_of", "job_cost", "team_month"]
