"""What is shown before a job is sent."""

import json
from dataclasses import replace
from pathlib import Path

from portal.clusters.local.backend import LocalBackend
from tests.clusters.local.machine import make_spec


def test_the_preview_shows_the_command_its_resources_and_that_there_is_no_container(tmp_path: Path) -> None:
    spec = make_spec("shown", "echo hello", queue="gpu", gpus=2, time_limit_seconds=60, env=(("A", "b"),))
    [job] = LocalBackend(root=tmp_path / "unused", cluster="default").manifests(spec)
    assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == ("batch/v1", "Job", "shown")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
    assert "the image is not used" in job["metadata"]["annotations"]["beamtime/runs-as"]
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["command"] == ["/bin/sh", "-c", "echo hello"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert pod["activeDeadlineSeconds"] == 60
    assert not (tmp_path / "unused").exists(), "a preview makes nothing"


def test_an_array_is_shown_as_an_indexed_job(tmp_path: Path) -> None:
    [job] = LocalBackend(root=tmp_path, cluster="default").manifests(make_spec("array", runs=5, parallelism=2))
    shown = {name: job["spec"][name] for name in ("completions", "parallelism", "completionMode")}
    assert shown == {"completions": 5, "parallelism": 2, "completionMode": "Indexed"}


def test_a_secret_is_shown_by_its_name_only(tmp_path: Path) -> None:
    spec = make_spec("secret")
    spec = replace(spec, work=replace(spec.work, secret_env=("TOKEN",)))
    shown = LocalBackend(root=tmp_path, cluster="default").manifests(spec)
    assert [each["kind"] for each in shown] == ["Job", "Secret"]
    assert shown[1]["stringData"] == {"TOKEN": "(hidden)"}
    assert "secretKeyRef" in json.dumps(shown[0])
