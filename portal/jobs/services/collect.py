"""Taking finished objects out of the cluster."""

from uuid import UUID


def mark_stored(*, job_id: UUID, attempt_number: int) -> None:
    """Say that logs, pods and intervals of an ended attempt are all stored. Idempotent."""
    raise NotImplementedError


def collect_finished() -> int:
    """Let go of finished objects whose story is stored; the number of attempts that became due."""
    raise NotImplementedError
