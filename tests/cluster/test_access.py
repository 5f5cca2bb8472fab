"""Who belongs to another team learns nothing about a job, not even that it exists."""

from __future__ import annotations

import uuid

from .portal import Portal


def test_case_17_every_address_of_a_foreign_job_answers_like_a_missing_one(portal: Portal) -> None:
    job = portal.submit("echo ours alone", gpus=1)
    portal.wait_state(job, "succeeded")
    (stream,) = portal.wait_log(job)
    addresses = [
        ("GET", f"jobs/{job}/", job),
        ("GET", f"jobs/{job}/events/", job),
        ("GET", f"jobs/{job}/attempts/", job),
        ("GET", f"jobs/{job}/streams/", job),
        ("POST", f"jobs/{job}/cancel/", job),
        ("POST", f"jobs/{job}/rerun/", job),
        ("GET", f"streams/{stream['id']}/", stream["id"]),
        ("GET", f"streams/{stream['id']}/lines/", stream["id"]),
        ("GET", f"streams/{stream['id']}/download/", stream["id"]),
        ("GET", f"usage/?job={job}", job),
        ("GET", f"charges/?job={job}", job),
    ]

    for method, path, name in addresses:
        foreign = portal.outsider.call(method, path)
        missing = portal.outsider.call(method, path.replace(name, str(uuid.uuid4())))
        assert (foreign.status, foreign.body) == (missing.status, missing.body) == (404, missing.body), path
        assert portal.member.call("GET", path).status == 200 or method == "POST"

    assert portal.outsider.get("jobs/")["results"] == []
    assert portal.outsider.get("usage/")["results"] == []
    refused = portal.outsider.call("POST", "jobs/", portal.body("true"))
    assert refused.status == 422
    assert portal.team not in refused.json["detail"].split("Your teams:")[1]
