"""What a reader sees: states, numbers, spans, times and money have one form, the same on every page."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import time_machine
from django.conf import settings
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils import timezone, translation
from pytest_django import Settings

from portal.jobs.models import State
from portal.web import looks
from portal.web.templatetags import beamtime

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def render(source: str, **context: object) -> str:
    return Template("{% load beamtime %}" + source).render(Context(context))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (8, "8 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (112, "1 min 52 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3630, "1 h 0 min"),
        (8040, "2 h 14 min"),
        (28_800, "8 h"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
        (274_000, "3 d 4 h"),
        (-5, "0 s"),
    ],
)
def test_a_span_has_two_units_at_most_and_is_never_rounded_up(seconds: float, words: str) -> None:
    assert beamtime.duration(seconds) == words


def test_a_span_may_come_as_a_timedelta() -> None:
    assert beamtime.duration(timedelta(minutes=1, seconds=52)) == "1 min 52 s"


def test_a_narrow_column_shows_one_unit_under_an_hour() -> None:
    assert beamtime.duration(2_260, "short") == "37 min"
    assert beamtime.duration(12, "short") == "12 s"
    assert beamtime.duration(8_040, "short") == "2 h 14 min"


@pytest.mark.parametrize(
    ("amount", "form", "words"),
    [
        (Decimal("47.97"), "", "€47.97"),
        (Decimal("7460.716"), "", "€7,460.72"),
        (Decimal("0.125"), "", "€0.12"),
        (Decimal(0), "", "€0.00"),
        (Decimal("-4.5"), "", "−€4.50"),
        (Decimal("82.6"), "whole", "€83"),
        (Decimal("2.4"), "price", "€2.40"),
        (Decimal("0.0125"), "price", "€0.0125"),
        (Decimal(0), "price", "free"),
        ("153.60", "", "€153.60"),
    ],
)
def test_money_has_a_sign_two_decimals_and_groups(amount: Decimal | str, form: str, words: str) -> None:
    assert beamtime.money(amount, form) == words


@pytest.mark.parametrize("amount", [None, "", "n/a"])
def test_what_something_costs_is_unknown_rather_than_nothing(amount: str | None) -> None:
    assert beamtime.money(amount) == "unknown"


def test_another_currency_keeps_its_own_sign_or_its_code(settings: Settings) -> None:
    settings.BEAMTIME_CURRENCY = "USD"
    assert beamtime.money(Decimal("1.5")) == "$1.50"
    settings.BEAMTIME_CURRENCY = "CHF"
    assert beamtime.money(Decimal("1.5")) == "CHF 1.50"


def test_a_german_reader_sees_german_numbers() -> None:
    with translation.override("de"):
        assert beamtime.money(Decimal("7460.72")) == "7.460,72 €"
        assert beamtime.number(48_214) == "48.214"
        # What SVG reads is no text and keeps its point.
        assert beamtime.share(41.666) == "41.67"
        assert 'width="41.5%"' in beamtime.bar(41.5)


def test_numbers_are_grouped_and_percents_are_whole() -> None:
    assert beamtime.number(48_214) == "48,214"
    assert beamtime.number(Decimal("1.25"), 2) == "1.25"
    assert beamtime.percent(95.4) == "95 %"


@pytest.mark.parametrize(
    ("size", "memory", "file"),
    [
        (0, "0 B", "0 B"),
        (1023, "1,023 B", "1 kB"),
        (536_870_912, "512 MiB", "537 MB"),
        (4_600_000, "4.4 MiB", "4.6 MB"),
        (68_719_476_736, "64 GiB", "69 GB"),
        (76_880_000_000, "71.6 GiB", "77 GB"),
        (1_073_741_823, "1 GiB", "1.1 GB"),
    ],
)
def test_memory_is_binary_and_files_are_decimal(size: int, memory: str, file: str) -> None:
    assert beamtime.gib(size) == memory
    assert beamtime.size(size) == file


@pytest.mark.parametrize("filter_name", ["duration", "number", "percent", "gib", "size", "clock"])
def test_a_value_that_does_not_apply_is_a_dash_and_not_a_zero(filter_name: str) -> None:
    assert render("{{ value|" + filter_name + " }}", value=None) == '<span class="bt-none">–</span>'


@pytest.mark.parametrize(
    ("form", "same_day", "this_year", "long_ago"),
    [
        ("", "14:57", "18 Nov, 09:05", "3 Dec 2025, 23:00"),
        ("short", "14:57", "18 Nov", "3 Dec 2025"),
        ("seconds", "14:57:08", "18 Nov, 09:05:00", "3 Dec 2025, 23:00:00"),
        ("date", "19 Nov", "18 Nov", "3 Dec 2025"),
        ("plan", "Thu 19 Nov 2026, 14:57", "Wed 18 Nov 2026, 09:05", "Wed 3 Dec 2025, 23:00"),
    ],
)
def test_a_time_says_the_day_only_when_it_is_not_today(form: str, same_day: str, this_year: str, long_ago: str) -> None:
    with timezone.override("Europe/Berlin"), time_machine.travel(datetime(2026, 11, 19, 16, 0, tzinfo=UTC), tick=False):
        for moment, words in [
            (datetime(2026, 11, 19, 13, 57, 8, tzinfo=UTC), same_day),
            (datetime(2026, 11, 18, 8, 5, tzinfo=UTC), this_year),
            (datetime(2025, 12, 3, 22, 0, tzinfo=UTC), long_ago),
        ]:
            assert re.sub(r"<.*?>", "", beamtime.clock(moment, form)) == words


def test_today_is_the_persons_day_and_not_the_servers() -> None:
    late = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)
    with timezone.override("Europe/Berlin"), time_machine.travel(datetime(2026, 11, 19, 8, 0, tzinfo=UTC), tick=False):
        assert ">00:30<" in beamtime.clock(late)
    with timezone.override("UTC"), time_machine.travel(datetime(2026, 11, 19, 8, 0, tzinfo=UTC), tick=False):
        assert ">18 Nov, 23:30<" in beamtime.clock(late)


def test_the_exact_moment_stays_with_the_words() -> None:
    with timezone.override("Europe/Berlin"):
        shown = beamtime.clock(datetime(2026, 11, 19, 13, 32, 6, 500, tzinfo=UTC))
    assert 'datetime="2026-11-19T14:32:06+01:00"' in shown
    assert 'title="2026-11-19T14:32:06+01:00"' in shown


def test_a_plain_date_has_no_time() -> None:
    with time_machine.travel(datetime(2026, 11, 19, 8, 0, tzinfo=UTC), tick=False):
        assert beamtime.clock(date(2026, 10, 1)) == '<time datetime="2026-10-01" title="2026-10-01">1 Oct</time>'


def test_every_state_of_a_job_has_a_word_an_icon_and_a_colour() -> None:
    assert set(looks.STATES) == set(State)
    css = (ROOT / "static/css/components.css").read_text()
    for state in State:
        shown = beamtime.state_badge(state)
        assert str(state.label) in shown
        assert f"icons.svg#{looks.STATES[state].icon}" in shown
        assert f".bt-badge--{state}" in css
        assert (ROOT / f"static/img/favicon-{beamtime.state_tone(state)}.svg").exists()


def test_a_state_nobody_knows_is_not_shown_as_something_it_is_not() -> None:
    assert "Lost" in beamtime.state_badge("exploded")
    assert "exploded" not in beamtime.state_badge("exploded")


def test_an_icon_is_silent_unless_it_is_the_only_word() -> None:
    assert 'aria-hidden="true"' in beamtime.icon("send")
    assert 'role="img" aria-label="Sent &amp; done"' in beamtime.icon("send", label="Sent & done")


def test_an_icon_that_the_sprite_lacks_is_a_box_and_not_a_hole() -> None:
    assert "icons.svg#box" in beamtime.icon("from-another-set")


@pytest.mark.parametrize(("value", "width"), [(None, "0"), (-5, "0"), (41, "41"), (1000, "100"), (33.333, "33.33")])
def test_a_bar_never_leaves_its_track(value: float | None, width: str) -> None:
    assert f'width="{width}%"' in beamtime.bar(value)


def test_a_bar_without_a_measure_is_empty_and_does_not_break() -> None:
    assert 'width="0%"' in beamtime.bar(4, 0)


@pytest.mark.parametrize(
    ("name", "mark"), [("Ana Ruiz", "AR"), ("vision-lab", "VL"), ("vision", "VI"), ("lena.vogt", "LV"), ("", "?")]
)
def test_a_person_and_a_team_have_two_letters(name: str, mark: str) -> None:
    assert beamtime.initials(name) == mark


def _sprite() -> set[str]:
    return set(re.findall(r'<symbol id="([^"]+)"', (ROOT / "static/img/icons.svg").read_text()))


def test_every_icon_that_a_page_names_is_in_the_sprite() -> None:
    used = {look.icon for look in looks.STATES.values()} | {icon for _, icon in looks.VERDICTS.values()}
    for path in TEMPLATES:
        used |= set(re.findall(r'{%\s*icon\s+"([^"]+)"', path.read_text()))
    assert used <= _sprite(), f"add to static/vendor/icons.txt and run make vendor: {sorted(used - _sprite())}"


def test_the_sprite_holds_what_its_list_says() -> None:
    assert _sprite() == looks.known_icons()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_a_page_keeps_the_content_security_policy(path: Path) -> None:
    """No style attribute, no inline script or handler: the browser would drop them without a word to the reader."""
    source = path.read_text()
    assert not re.search(r"<[^>%]*\sstyle\s*=", source)
    assert not re.search(r"<[^>%]*\son[a-z]+\s*=", source)
    assert not re.search(r"hx-on[:-]|javascript:", source)
    for attributes, body in re.findall(r"<script([^>]*)>(.*?)</script>", source, flags=re.DOTALL):
        assert "src=" in attributes or 'type="application/json"' in attributes
        assert not body.strip() or 'type="application/json"' in attributes


@pytest.mark.parametrize("name", ["403.html", "403_csrf.html", "404.html", "429.html", "500.html"])
def test_an_error_page_needs_no_context_and_shows_a_way_on(name: str) -> None:
    page = render_to_string(name)
    assert "<h1>" in page
    assert 'href="/"' in page


def test_a_missing_page_does_not_tell_whether_the_thing_exists() -> None:
    assert "This page does not exist, or it is not open to you." in render_to_string("404.html")
