"""What is remembered of a pod over its versions."""

from datetime import UTC, datetime
from typing import Any

from portal.clusters.kube.cache import Cache
from portal.clusters.specs import PodFacts
from tests.clusters.kube.stories import NAME, NAMESPACE, job_object, pod_object

ENDED = {"name": "main", "state": {"terminated": {"exitCode": 143, "finishedAt": "2026-11-30T10:05:01Z"}}}


def deleted(version: int, at: str, grace: int, **status: Any) -> dict[str, Any]:
    found = pod_object(version=version, phase="Running", deletionTimestamp=at, deletionGracePeriodSeconds=grace)
    found["status"] |= status
    return found


def the_pod(cache: Cache) -> PodFacts:
    found = cache.take((NAMESPACE, NAME))
    assert found is not None
    (pod,) = found.pods
    return pod


def test_a_deletion_was_asked_for_when_it_was_asked_for_first() -> None:
    """At the end the kubelet deletes with a grace of 0, and the API server then writes that moment over the first."""
    cache = Cache("main")
    cache.put("jobs", job_object())
    cache.put("pods", pod_object(version=20, phase="Running"))
    cache.put("pods", deleted(21, "2026-11-30T10:05:30Z", 30))
    cache.put("pods", deleted(22, "2026-11-30T10:05:03Z", 0, containerStatuses=[ENDED]))
    asked = datetime(2026, 11, 30, 10, 5, 0, tzinfo=UTC)
    assert the_pod(cache).deletion_requested_at == asked

    cache.drop("pods", deleted(23, "2026-11-30T10:05:03Z", 0, containerStatuses=[ENDED]))
    pod = the_pod(cache)
    assert (pod.gone, pod.deletion_requested_at) == (True, asked)
