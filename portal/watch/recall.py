"""What earlier watchers left open: pods that were alive when they looked last.

Whatever ended while nobody watched, and is gone from the cluster, no list and no watch will ever tell of. So what a new
term finds open is compared with the first facts about it; a pod that is not among them has vanished unread.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

from portal.clusters.specs import AttemptFacts, ContainerFacts, PodFacts
from portal.jobs import selectors as jobs
from portal.logs import selectors as logs
from portal.usage import selectors as usage
from portal.watch.facts import Key, key_of


@dataclass(frozen=True, slots=True)
class Open:
    """One attempt. `place`: "namespace/name" of its object; `pods` as they are if nothing of them is left."""

    place: str
    pods: tuple[PodFacts, ...]


def recall(cluster: str) -> dict[Key, Open]:
    """Every attempt with a pod, an interval or a log that has no end yet. Four queries."""
    pods: dict[Key, dict[str, PodFacts]] = defaultdict(dict)
    for row in jobs.living_pods(cluster):
        pods[str(row.attempt.job_id), row.attempt.number][row.uid] = _gone(row.uid, row.name, row.index, row.node)
    for held in usage.held_in(cluster):
        key = str(held.job_id), held.attempt_number
        pods[key].setdefault(held.pod_uid, _gone(held.pod_uid, held.pod_name, 0, held.node))
    for stream in logs.unfinished_in(cluster):
        key = str(stream.job_id), stream.attempt_number
        pod = pods[key].get(stream.pod_uid) or _gone(stream.pod_uid, stream.pod_name, stream.pod_index, "")
        # Its log is read like any other, until the cluster says that it cannot be read any more.
        life = ContainerFacts(name=stream.container, restart=stream.restart, state="running")
        pods[key][stream.pod_uid] = replace(pod, containers=(*pod.containers, life))
    places = jobs.places_of(list(pods))
    return {key: Open(places[key], tuple(found.values())) for key, found in pods.items() if key in places}


def completed(facts: AttemptFacts, recalled: dict[Key, Open]) -> AttemptFacts:
    """The first facts of a term about an attempt, with the pods that vanished unread; takes it off what is recalled.

    A backend tells of every pod that exists each time it tells of an attempt.
    """
    left = recalled.pop(key_of(facts), None)
    if left is None:
        return facts
    present = {pod.uid for pod in facts.pods}
    return replace(facts, pods=(*facts.pods, *(pod for pod in left.pods if pod.uid not in present)))


def _gone(uid: str, name: str, index: int, node: str) -> PodFacts:
    """No time: nobody knows when."""
    return PodFacts(uid=uid, name=name, index=index, node=node, phase="", gone=True)
