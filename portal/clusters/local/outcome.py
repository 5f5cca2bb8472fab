"""When a job is over and how, in the words of Kubernetes' Job controller and of Kueue."""

from portal.clusters.local.records import JobRecord, note

REACHED = "Reached expected number of succeeded pods"


def conclude(job: JobRecord) -> bool:
    """Set the final conditions once the job's pods have decided its fate; True if they have.

    A plain job ends with its pod (backoffLimit 0). The runs of an array are independent (backoffLimitPerIndex 0): it
    ends with the last of them, and has failed if one of them has.
    """
    if job.succeeded + job.failed < job.spec.work.runs:
        return False
    ends = [pod.status.finished_at or pod.created_at for pod in job.pods]
    at = max([*ends, job.started_at or job.created_at])
    if not job.failed:
        job.completed_at = at
        note(job.conditions, "Complete", status=True, reason="CompletionsReached", message=REACHED, at=at)
        note(job.workload, "Finished", status=True, reason="Succeeded", message=REACHED, at=at)
        return True
    reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if job.spec.work.runs > 1:
        reason, message = "FailedIndexes", "Job has failed indexes"
    note(job.conditions, "Failed", status=True, reason=reason, message=message, at=at)
    note(job.workload, "Finished", status=True, reason="Failed", message=message, at=at)
    return True
