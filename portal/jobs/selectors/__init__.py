"""Reads of jobs. What a person may not see is missing here; the doors need no check of their own."""

from portal.jobs.selectors.choices import offer_for, values_schema
from portal.jobs.selectors.holding import Want, admitted, free_by_model, held_by, limit_seconds, waiting, waiting_jobs
from portal.jobs.selectors.lists import HEAVY, LARGEST_PAGE, PAGE_SIZE, JobPage, counts, jobs_of, page
from portal.jobs.selectors.one import Clone, attempts_of, clone_values, events_of, job_for, manifests_of
from portal.jobs.selectors.watched import expected_objects, living_pods, places_of

__all__ = [
    "HEAVY",
    "LARGEST_PAGE",
    "PAGE_SIZE",
    "Clone",
    "JobPage",
    "Want",
    "admitted",
    "attempts_of",
    "clone_values",
    "counts",
    "events_of",
    "expected_objects",
    "free_by_model",
    "held_by",
    "job_for",
    "jobs_of",
    "limit_seconds",
    "living_pods",
    "manifests_of",
    "offer_for",
    "page",
    "places_of",
    "values_schema",
    "waiting",
    "waiting_jobs",
]
