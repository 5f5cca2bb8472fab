"""How states, icons, numbers, durations, times and money look on every page: the one home of these forms."""

from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from functools import lru_cache
from typing import Protocol

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import get_language, gettext

from portal.core.money import CENT
from portal.jobs.models import State
from portal.web.looks import STATES, VERDICTS, known_icons, known_state

register = template.Library()

Number = int | float | Decimal


# ISO code -> what stands with the number. A currency without an own sign keeps its code.
_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "CHF": "CHF", "SEK": "kr", "NOK": "kr", "DKK": "kr"}
# Languages that write the sign behind the number.
_SIGN_BEHIND = ("de", "fr", "es", "it", "pl", "cs", "sv", "fi")
_NONE = mark_safe('<span class="bt-none">–</span>')


# --- icons and states ------------------------------------------------------------------------------------------


@register.simple_tag
def icon(name: str, label: str = "", extra: str = "") -> SafeString:
    """`{% icon "send" %}`: an icon of the sprite (static/vendor/icons.txt); decorative unless it has a label.

    A name that is not there, such as one from an older template, is drawn as a box rather than as nothing.
    """
    return _icon(name, str(label), extra)


# A list draws the same few marks in every line; the words in them are the reader's language's.
@lru_cache(maxsize=512)
def _icon(name: str, label: str, extra: str) -> SafeString:
    address = f"{static('img/icons.svg')}#{name if name in known_icons() else 'box'}"
    classes = f"bt-icon {extra}".strip()
    if label:
        return format_html(
            '<svg class="{}" role="img" aria-label="{}"><use href="{}"></use></svg>', classes, label, address
        )
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', classes, address)


@register.simple_tag
def state_badge(state: object, size: str = "") -> SafeString:
    """`{% state_badge job.state %}`: the pill with icon, word and colour; `"large"` stands beside a page title."""
    return _badge(known_state(state), size, get_language())


@lru_cache(maxsize=128)
def _badge(known: State, size: str, _language: str | None) -> SafeString:
    return format_html(
        '<span class="bt-badge bt-badge--{}{}">{}{}</span>',
        known.value,
        " bt-badge--large" if size == "large" else "",
        icon(STATES[known].icon),
        known.label,
    )


@register.simple_tag
def state_icon(state: object) -> SafeString:
    """The state's icon in its colour, to stand beside the word (filters, steps, stream menus)."""
    known = known_state(state)
    return icon(STATES[known].icon, extra=f"bt-state-icon--{known.value}")


@register.filter
def state_word(state: object) -> str:
    """ "running" -> "Running"."""
    return str(known_state(state).label)


@register.filter
def state_tone(state: object) -> str:
    """The colour group of a state: neutral, queued, starting, running, succeeded, failed or lost."""
    return STATES[known_state(state)].tone


@register.filter
def state_favicon(state: object) -> str:
    """The address of the icon in a state's colour. Looked up whole: on a server each file's name carries its digest."""
    return static(f"img/favicon-{state_tone(state)}.svg")


@register.filter
def bar_tone(state_or_tone: object) -> str:
    """What a bar or lane is coloured by: a state's tone, or the tone itself ("accent", "c2") as it is."""
    name = str(state_or_tone)
    return STATES[State(name)].tone if name in State.values else name


@register.filter
def verdict_tone(kind: object) -> str:
    """The tone of a kind of verdict: good, queued, bad, lost or neutral."""
    return VERDICTS.get(str(kind), VERDICTS["unknown"])[0]


@register.simple_tag
def verdict_icon(kind: object) -> SafeString:
    """The icon of a kind of verdict."""
    return icon(VERDICTS.get(str(kind), VERDICTS["unknown"])[1])


# --- numbers -----------------------------------------------------------------------------------------------------


@register.filter
def number(value: Number | None, places: int = 0) -> str:
    """48214 -> "48,214", grouped as the language does; nothing known -> a dash."""
    if value is None:
        return _NONE
    return number_format(value, decimal_pos=places, use_l10n=True, force_grouping=True)


@register.filter
def percent(value: Number | None) -> str:
    """95.4 -> "95 %". The value is already in percent."""
    if value is None:
        return _NONE
    return f"{number(Decimal(str(value)).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))} %"


@register.filter
def gib(value: Number | None) -> str:
    """Bytes of memory -> "71.6 GiB", "64 GiB", "512 MiB": binary units, one decimal unless it is whole."""
    return _in_units(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


@register.filter
def size(value: Number | None) -> str:
    """Bytes of a file -> "4.6 MB", "412 GB": decimal units, one decimal below ten, none above."""
    return _in_units(value, 1000, ("B", "kB", "MB", "GB", "TB", "PB"))


def _in_units(value: Number | None, step: int, units: tuple[str, ...]) -> str:
    if value is None:
        return _NONE
    left, at = Decimal(str(value)), 0
    while left >= step and at < len(units) - 1:
        left, at = left / step, at + 1
    coarse = at == 0 or (step == 1000 and left >= 10)
    shown = left.quantize(Decimal(1) if coarse else Decimal("0.1"), rounding=ROUND_HALF_EVEN)
    if shown >= step and at < len(units) - 1:
        shown, at = Decimal(1), at + 1
    places = 0 if shown == shown.to_integral_value() else 1
    return f"{number(shown, places)} {units[at]}"


@register.filter
def money(value: Number | str | None, form: str = "") -> str:
    """Decimal -> "€47.97" in the site's currency, rounded once, to cents.

    Forms: "whole" drops the decimals (write "about" before it); "price" keeps what a price needs beyond two decimals
    and says "free" for zero. Nothing known -> "unknown", never €0.00.
    """
    if value is None or value == "":
        return gettext("unknown")
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return gettext("unknown")
    places = 0 if form == "whole" else 2
    if form == "price":
        if amount == 0:
            return gettext("free")
        exponent = amount.normalize().as_tuple().exponent
        places = max(2, min(6, -exponent if isinstance(exponent, int) else 2))
    amount = amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    shown = number(abs(amount), places)
    minus = "−" if amount < 0 else ""
    code = str(getattr(settings, "BEAMTIME_CURRENCY", "EUR"))
    sign = _SIGNS.get(code, code)
    if (get_language() or "en").split("-")[0] in _SIGN_BEHIND:
        return f"{minus}{shown} {sign}"
    return f"{minus}{sign}{' ' if sign.isalpha() else ''}{shown}"


class Spent(Protocol):
    """What something cost; `under_a_cent`: something, and less than can be shown."""

    @property
    def amount(self) -> Decimal | None: ...

    @property
    def under_a_cent(self) -> bool: ...


@register.filter
def spent(cost: Spent) -> str:
    """Its sum; what rounds to nothing and is not free says so."""
    return gettext("under %(cent)s") % {"cent": money(CENT)} if cost.under_a_cent else money(cost.amount)


# --- time --------------------------------------------------------------------------------------------------------


@register.filter
def duration(value: Number | timedelta | None, form: str = "") -> str:
    """Seconds -> "8 s", "1 min 52 s", "2 h 14 min", "3 d 4 h": two units at most, the rest cut off, never rounded up.

    A second unit of zero stays ("1 h 0 min") unless the span is exactly whole ("8 h"). With "short" spans under an hour
    show one unit ("37 min"), for narrow columns. Nothing known -> a dash.
    """
    if value is None:
        return _NONE
    seconds = max(0, int(value.total_seconds() if isinstance(value, timedelta) else value))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 60:
        return gettext("%(s)d s") % {"s": seconds}
    if hours == 0:
        if seconds % 60 == 0 or form == "short":
            return gettext("%(m)d min") % {"m": minutes}
        return gettext("%(m)d min %(s)d s") % {"m": minutes, "s": seconds % 60}
    if days == 0:
        if seconds % 3600 == 0:
            return gettext("%(h)d h") % {"h": hours}
        return gettext("%(h)d h %(m)d min") % {"h": hours, "m": minutes % 60}
    if seconds % 86_400 == 0:
        return gettext("%(d)s d") % {"d": number(days)}
    return gettext("%(d)s d %(h)d h") % {"d": number(days), "h": hours % 24}


@register.filter
def clock(value: datetime | date | None, form: str = "") -> str:
    """A moment in the person's zone as a `time` element that carries the exact value.

    Forms: "" -> "14:57" today, "18 Nov, 14:57" else; "short" (lists) -> "14:57" today, "18 Nov" else; "seconds" -> with
    seconds; "date" -> "19 Nov"; "plan" -> "Fri 20 Nov 2026, 08:00". The year stands only when it is not this year.
    """
    if value is None:
        return _NONE
    today = timezone.localdate()
    if isinstance(value, datetime):
        local: datetime | date = timezone.localtime(value) if timezone.is_aware(value) else value
        day, exact = local.date() if isinstance(local, datetime) else local, local.isoformat(timespec="seconds")  # type: ignore[call-arg]
    else:
        local, day, exact, form = value, value, value.isoformat(), form or "date"
    if form == "plan":
        words = format_date(local, "D j M Y, H:i")
    else:
        time_words = f"{local:%H:%M:%S}" if form == "seconds" else f"{local:%H:%M}"
        if day == today and form != "date":
            words = time_words
        else:
            date_words = format_date(local, "j M" if day.year == today.year else "j M Y")
            words = date_words if form in ("date", "short") else f"{date_words}, {time_words}"
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', exact, words)


# --- people and shapes ---------------------------------------------------------------------------------------------


@register.filter
def initials(name: object) -> str:
    """ "Ana Ruiz" -> "AR", "vision-lab" -> "VL", "vision" -> "VI": for the little marks in the sidebar."""
    words = str(name).replace("-", " ").replace("_", " ").replace(".", " ").split()
    if not words:
        return "?"
    return (words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]).upper()


@register.simple_tag
def bar(value: Number | None, most: Number = 100, tone: str = "accent", label: str = "", kind: str = "") -> SafeString:
    """A bar with one part. Without a label it is decoration beside its number. `kind`: "thin" or "tall"."""
    share = 0.0 if value is None or not most else max(0.0, min(100.0, float(value) / float(most) * 100))
    said = format_html('role="img" aria-label="{}"', label) if label else mark_safe('aria-hidden="true"')
    return format_html(
        '<svg class="bt-bar{}" {}><rect class="bt-bar-track" width="100%" height="100%"></rect>'
        '<rect class="bt-fill bt-fill--{}" width="{}%" height="100%"></rect></svg>',
        f" bt-bar--{kind}" if kind else "",
        said,
        tone,
        f"{share:.2f}".rstrip("0").rstrip("."),
    )


@register.filter
def share(value: Number | None) -> str:
    """A percentage as SVG wants it, with a point in every language: 41.666 -> "41.67"."""
    return "0" if value is None else f"{float(value):.2f}".rstrip("0").rstrip(".")


@register.filter
def shortened(value: str, most: int) -> str:
    """At most so many characters, the last of them an ellipsis. Nearly every name is short, and left as it is."""
    return value if len(value) <= most else Truncator(value).chars(most)


@register.filter
def words(value: str) -> list[str]:
    """ "a b c" -> its words, for a loop over a fixed few."""
    return value.split()
