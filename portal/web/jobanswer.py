"""The answer on top of a job's page, and the small words it is made of."""

from dataclasses import dataclass

from django.utils.html import format_html, strip_tags

from portal.web.jobspells import Spell
from portal.web.templatetags.beamtime import duration


@dataclass(frozen=True, slots=True)
class Answer:
    """The top of the page: `head` in one clause, `strong` and `rest` the sentences under it; text or HTML.

    With a `tone` it is drawn as a verdict box with a tinted head and an icon, without as one plain sentence.
    """

    head: str
    rest: str = ""
    strong: str = ""
    tone: str = ""
    icon: str = ""
    aside: str = ""

    @property
    def said(self) -> str:
        """For the ear: the whole as one text."""
        return " ".join(strip_tags(part) for part in (self.head, self.strong, self.rest) if part)


def ticking(spell: Spell) -> str:
    """The length of a spell; static/js/job.js lets it grow by the second while the spell goes on."""
    if not spell.now:
        return str(duration(spell.seconds))
    return format_html('<span data-ticks="{}">{}</span>', spell.begin.isoformat(), duration(spell.seconds))


def first_sentence(reason: str) -> tuple[str, str]:
    """A reason as its first sentence, which stands out, and what follows."""
    head, dot, rest = reason.strip().partition(". ")
    return (head + dot).strip(), rest.strip()
