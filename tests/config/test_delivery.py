"""What a worker owes a broker that has gone away, over kombu and a real Redis."""

import logging

import pytest
from celery import Celery
from kombu import Connection, Consumer, Message, Queue

from portal.config.celery import app as beamtime
from tests.support.servers import RedisServer

logger = logging.getLogger(__name__)


def delivered(line: Connection, queue: str) -> Message:
    """One task as a worker takes it: not acknowledged yet."""
    taken: list[Message] = []
    with Consumer(line, Queue(queue), callbacks=[lambda _, message: taken.append(message)]):
        while not taken:
            line.drain_events(timeout=10)
    return taken[0]


@pytest.mark.parametrize("end", ["ack_log_error", "reject_log_error", "requeue"])
def test_a_task_that_ends_after_its_line_was_lost_costs_the_worker_nothing(
    redis_that_fails: RedisServer, end: str
) -> None:
    assert beamtime.main == "beamtime", "the portal's Celery application sets the rule up"
    queue = f"late-{end}"
    with Celery(broker=redis_that_fails.url) as client:
        client.send_task("jobs.sweep", queue=queue)
    line = Connection(redis_that_fails.url)
    message = delivered(line, queue)
    redis_that_fails.stop()
    line.close()
    redis_that_fails.start()
    match end:
        case "requeue":
            message.requeue()
        case _:
            getattr(message, end)(logger, line.connection_errors)
