"""`/ws/v1/jobs/<id>/`: that something about a job changed; what it is, the page then fetches by itself."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from portal.core import bus
from portal.core.errors import Missing
from portal.jobs.models import Job
from portal.live.socket import Socket
from portal.live.threads import in_thread
from portal.teams.models import User


class _Seen(NamedTuple):
    revision: int
    state: str


def _present(job_id: UUID) -> _Seen:
    """What the database says now."""
    return _Seen(*Job.objects.values_list("revision", "state").get(pk=job_id))


class JobSocket(Socket):
    noun = "job"

    def find(self, user: User) -> UUID:
        try:
            key = UUID(self.key)
        except ValueError:
            raise Missing("no such job") from None
        found: UUID | None = Job.objects.visible_to(user).filter(pk=key).values_list("pk", flat=True).first()
        if found is None:
            raise Missing("no such job")
        return found

    def topics(self, subject: UUID) -> Iterable[str]:
        return [f"job:{subject}"]

    async def talk(self, subject: UUID, news: bus.Subscription) -> None:
        seen = await in_thread(_present, subject)
        await self.send_json({"type": "hello", **seen._asdict()})
        while True:
            messages = [await news.get(), *news.drain()]
            lost = any(message.lagged for message in messages)
            if lost or any("look" in message.facts or "revision" in message.facts for message in messages):
                present = await in_thread(_present, subject)
                if lost or present.revision != seen.revision:
                    await self.send_json({"type": "changed", **present._asdict()})
                seen = present
            await self._hint(messages)

    async def _hint(self, messages: Iterable[bus.Message]) -> None:
        """Things that are about the job and not in it: its cost, its logs."""
        kinds = {(str(message.facts.get("kind", "")), str(message.facts.get("stream", ""))) for message in messages}
        for kind, stream in sorted(kinds):
            if kind == "cost":
                await self.send_json({"type": "cost"})
            elif kind == "log":
                await self.send_json({"type": "log", "stream": stream})
