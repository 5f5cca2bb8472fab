"""`manage.py settings_help`: the operator's table."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from portal.config.env import SETTINGS


def test_every_setting_is_told_with_its_kind_default_and_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("settings_help")
    printed = capsys.readouterr().out
    for setting in SETTINGS:
        assert f"{setting.name}  ({setting.kind}" in printed
        assert " ".join(setting.help.split()) in " ".join(printed.split())


def test_the_table_is_markdown_with_one_row_per_setting(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("settings_help", "--markdown")
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == len(SETTINGS) + 2
    assert all(line.count(" | ") == 3 for line in lines if "---" not in line)


def test_every_variable_that_the_settings_read_is_in_the_table() -> None:
    source = (Path(settings.BASE_DIR) / "portal" / "config" / "settings.py").read_text()
    read = set(re.findall(r'read\.\w+\(\s*"([A-Z_]+)"', source))
    assert read <= {setting.name for setting in SETTINGS}


def test_the_operators_handbook_repeats_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("settings_help", "--markdown")
    handbook = (Path(settings.BASE_DIR) / "deploy" / "README.md").read_text()
    assert capsys.readouterr().out.strip() in handbook
