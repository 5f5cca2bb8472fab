"""A real S3 server over HTTP, moto's, that checks signatures; in memory, on a free port of the loopback."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

from botocore.session import Session

from tests.support.servers import free_port, wait_for_port

BUCKET = "beamtime-logs"
# As many requests as `_prepare` sends are let in without a signature; from then on every one must have its own.
_OPEN_REQUESTS = 4


class S3Server:
    """`access_key` and `secret_key` may use `BUCKET`. `freeze` is an outage that forgets nothing."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(_OPEN_REQUESTS)},
        )
        wait_for_port(self.port, self.process, "moto")
        self.access_key, self.secret_key = self._prepare()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, service: str = "s3") -> Any:
        keys = getattr(self, "access_key", "none"), getattr(self, "secret_key", "none")
        return Session().create_client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
        )

    def names(self) -> list[str]:
        return [row["Key"] for row in self.client().list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.thaw()
        self.process.terminate()
        self.process.wait(10)

    def _prepare(self) -> tuple[str, str]:
        iam = self.client("iam")
        iam.create_user(UserName="beamtime")
        statement = {"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName="beamtime", PolicyName="logs", PolicyDocument=document)
        key = iam.create_access_key(UserName="beamtime")["AccessKey"]
        self.client().create_bucket(Bucket=BUCKET)
        return key["AccessKeyId"], key["SecretAccessKey"]
