"""What a person enters arrives in the container as it was entered, and a secret nowhere else."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from pathlib import Path

import yaml

from tests.support.debian import find

from .portal import Portal
from .testbed import images

ODD = {
    "X_SPACES": "  two  spaces  ",
    "X_EQUALS": "a=b==c",
    "X_QUOTES": "\"double\" 'single' `back`",
    "X_DOLLAR": "$HOME $(HOME) $$(HOME) ${HOME} $$",
    "X_BACKSLASH": "\\n \\ \\\\",
    "X_TAB": "a\tb",
    "X_NEWLINE": "one\ntwo\n",
    "X_EMPTY": "",
    "X_UNICODE": "grüße 🚀",
    "X_YAML": "- {yes: no} # & *",
}
SHOW = """python3 -c '
import json, os
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith("X_")}))
'"""


def test_values_of_the_environment_arrive_byte_for_byte(portal: Portal) -> None:
    job = portal.submit(SHOW, image=images.PYTHON, env=ODD)

    portal.wait_state(job, "succeeded")

    (stream,) = portal.wait_log(job)
    assert json.loads(portal.member.download(stream["id"])) == ODD


def test_a_secret_reaches_the_container_and_is_seen_nowhere_else(portal: Portal) -> None:
    secret = "pa$$word $(HOME) \"'\\ süß"
    hashed = """printf %s "$HF_TOKEN" | sha256sum; until [ -e /tmp/go ]; do sleep 0.1; done"""
    body = {"secret": secret, "secret_name": "HF_TOKEN"}
    preview = portal.member.post("jobs/preview/", portal.body(hashed, **body))
    job = portal.submit(hashed, **body)
    portal.wait_text(job, hashlib.sha256(secret.encode()).hexdigest().encode())

    place = portal.place(job)
    kept = portal.cluster.kubectl_json("get", "secret", place.name, "-n", place.namespace)
    kube = portal.kube_job(job)
    assert kube is not None
    assert base64.b64decode(kept["data"]["HF_TOKEN"]).decode() == secret
    assert kept["metadata"]["ownerReferences"][0]["uid"] == kube["metadata"]["uid"]

    answers = [portal.member.get(f"jobs/{job}/{part}") for part in ("", "events/", "attempts/", "streams/")]
    shown = [preview, kube, portal.kube_pods(job), portal.kube_workload(job), portal.member.get("jobs/"), *answers]
    texts = [json.dumps(each, ensure_ascii=False) for each in shown] + [yaml.safe_dump(each) for each in shown]
    texts += [portal.log_file(name).read_text(errors="replace") for name in ("web", "worker", "beat", "watch")]
    texts.append(_everything_in_the_database(portal))
    for form in (secret, json.dumps(secret)[1:-1], "pa$$word", base64.b64encode(secret.encode()).decode()):
        assert not [text for text in texts if form in text]

    portal.release(job)
    portal.wait_state(job, "succeeded")
    portal.cluster.kubectl("delete", "job", place.name, "-n", place.namespace)
    portal.cluster.wait_for(
        "the secret to go with its Job",
        lambda: place.name not in portal.cluster.kubectl("get", "secrets", "-n", place.namespace, "-o", "name"),
    )
    refused = portal.member.call("POST", f"jobs/{job}/rerun/", {})
    assert refused.status == 422
    assert "HF_TOKEN" in refused.json["detail"]


def _everything_in_the_database(portal: Portal) -> str:
    program = Path(find("initdb")).parent / "pg_dump"
    dump = subprocess.run([program, "--inserts", portal.postgres.url], capture_output=True, text=True, check=True)
    return dump.stdout
