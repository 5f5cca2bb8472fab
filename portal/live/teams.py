"""`/ws/v1/teams/<slug>/`: which of a team's jobs changed."""

import asyncio
from collections.abc import Iterable

from portal.core import bus
from portal.core.errors import Missing
from portal.live.socket import Socket
from portal.teams.models import User
from portal.teams.selectors import teams_visible_to

# Seconds for which changes are gathered, counted from the first: a wait that each change prolonged would never end.
GATHER = 0.2
# With more changes at once than this, one frame says only that much has changed.
MOST_AT_ONCE = 50


class TeamSocket(Socket):
    noun = "team"

    def find(self, user: User) -> int:
        found: int | None = teams_visible_to(user).filter(slug=self.key).values_list("pk", flat=True).first()
        if found is None:
            raise Missing("no such team")
        return found

    def topics(self, subject: int) -> Iterable[str]:
        return [f"team:{subject}"]

    async def talk(self, subject: int, news: bus.Subscription) -> None:
        await self.send_json({"type": "hello"})
        while True:
            messages = [await news.get()]
            if "look" in messages[0].facts:
                continue
            await asyncio.sleep(GATHER)
            messages += news.drain()
            changed = {str(m.facts["job"]): str(m.facts.get("state", "")) for m in messages if "job" in m.facts}
            if len(changed) > MOST_AT_ONCE or any(message.lagged for message in messages):
                await self.send_json({"type": "changed"})
                continue
            for job, state in changed.items():
                await self.send_json({"type": "changed", "job": job, "state": state})
