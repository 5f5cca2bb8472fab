"""Costs as they are read: every page, API answer and export sums the same charge lines."""

from portal.costs.selectors.job import charges_of, job_cost
from portal.costs.selectors.listed import ListedCost, costs_of
from portal.costs.selectors.month import team_month

__all__ = ["ListedCost", "charges_of", "costs_of", "job_cost", "team_month"]
