"""The verbs of a job's life, one file each."""

from portal.jobs.services.cancel import cancel
from portal.jobs.services.collect import collect_finished, mark_stored
from portal.jobs.services.dispatch import dispatch, sweep
from portal.jobs.services.observe import observe, observe_all
from portal.jobs.services.preview import preview
from portal.jobs.services.rerun import rerun
from portal.jobs.services.submit import Submitted, submit

__all__ = [
    "Submitted",
    "cancel",
    "collect_finished",
    "dispatch",
    "mark_stored",
    "observe",
    "observe_all",
    "preview",
    "rerun",
    "submit",
    "sweep",
]
