"""The templates that Beamtime brings along: installed once, renewed when they change, and they really run."""

import copy
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pytest_django import Settings

from portal.catalog import selectors, services
from portal.catalog.models import TemplateVersion, VersionState
from portal.catalog.policy import clean, json_schema, parse_definition, render
from portal.catalog.shipped import Images, Shipped, shipped_templates
from portal.clusters.specs import WorkSpec
from portal.teams.models import User
from tests.catalog.definitions import OFFER

SLUGS = ["array", "data-preparation", "gpu-check", "script", "train-small-model"]
IMAGES = Images("busybox:1.37", "python:3.12-slim")


def shipped(slug: str, images: Images = IMAGES) -> Shipped:
    return next(template for template in shipped_templates(images) if template.slug == slug)


def work(slug: str, **values: Any) -> WorkSpec:
    definition = parse_definition(shipped(slug).definition)
    return render(definition, clean(definition, values, OFFER))


def run(spec: WorkSpec, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a work here, with this Python as python3."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "LANG": "C.UTF-8", **dict(spec.env), **environment}
    command = [*spec.command, *spec.args]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=60, check=False)
    # Decoded here, because reading as text would turn carriage returns into line breaks.
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


# --- installing --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_all_five_are_there_after_the_first_start() -> None:
    assert len(services.install_shipped()) == 5
    assert sorted(version.template.slug for version in selectors.offered()) == SLUGS


@pytest.mark.django_db
def test_a_second_start_changes_nothing() -> None:
    services.install_shipped()
    assert services.install_shipped() == []
    assert TemplateVersion.objects.count() == 5


@pytest.mark.django_db
def test_another_image_in_the_settings_makes_new_versions(settings: Settings) -> None:
    services.install_shipped()
    settings.BEAMTIME_IMAGE_SHELL = "registry.example.org/busybox:1"
    (version,) = services.install_shipped()
    assert (version.template.slug, version.number) == ("script", 2)
    assert version.definition["parameters"][1]["default"] == "registry.example.org/busybox:1"
    assert selectors.version_for("script").number == 2


@pytest.mark.django_db
def test_what_an_administrator_made_of_it_is_left_alone(admin_user: User) -> None:
    services.install_shipped()
    template = selectors.version_for("script").template
    template.title = "Our script"
    services.save_template(actor=admin_user, template=template)
    draft = services.new_draft(actor=admin_user, template=template)
    definition = copy.deepcopy(draft.definition)
    definition["parameters"][0]["help"] = "Ours."
    services.save_draft(actor=admin_user, version=draft, definition=definition)
    services.publish(actor=admin_user, version=draft)
    services.retire(actor=admin_user, version=selectors.version_for("array"), message="Not here.")
    assert services.install_shipped() == []
    assert selectors.version_for("script").definition["parameters"][0]["help"] == "Ours."
    assert selectors.version_for("script").template.title == "Our script"


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("pytorch", ["", "pytorch/pytorch:latest"])
def test_each_needs_no_more_than_a_script(slug: str, pytorch: str) -> None:
    definition = parse_definition(shipped(slug, Images("busybox:1", "python:3", pytorch)).definition)
    values = {"script": "true"} if slug == "script" else {}
    assert Draft202012Validator(json_schema(definition, OFFER)).is_valid(values)
    spec = render(definition, clean(definition, values, OFFER))
    assert spec.time_limit_seconds
    assert max(len(argument.encode()) for argument in spec.command) < 100_000
    assert json.loads(json.dumps(spec.to_json()))["image"]


@pytest.mark.django_db
def test_what_is_shipped_is_published_and_known_as_ours() -> None:
    services.install_shipped()
    for version in TemplateVersion.objects.all():
        assert (version.state, version.shipped, version.created_by) == (VersionState.PUBLISHED, True, None)


# --- running -----------------------------------------------------------------------------------------------------


def test_a_script_runs_with_its_variables_to_the_byte(tmp_path: Path) -> None:
    value = " a=b 'c' \"d\" $HOME \\ \t\nend"
    done = run(work("script", script='printf %s "$VALUE"; exit 3', env={"VALUE": value}), tmp_path)
    assert (done.stdout, done.returncode) == (value, 3)


def test_a_script_asks_for_no_gpus_unless_told() -> None:
    assert work("script", script="true").gpus == 0
    spec = work("script", script="true", gpu={"flavor": "h100", "count": 2}, secret="hunter2", secret_name="HF_TOKEN")
    assert (spec.gpus, spec.flavor, spec.secret_env) == (2, "h100", ("HF_TOKEN",))


def test_the_small_model_learns_and_shows_it(tmp_path: Path) -> None:
    spec = work("train-small-model", epochs=4, seconds_per_epoch=0.02, learning_rate=0.1)
    assert spec.gpus == 1
    done = run(spec, tmp_path, BEAMTIME_PRETENDED_GPUS="1 × NVIDIA H100", CUDA_VISIBLE_DEVICES="0")
    assert done.returncode == 0, done.stderr
    assert "1 × NVIDIA H100 (pretended)" in done.stdout
    losses = [float(loss) for loss in re.findall(r"loss \x1b\[3[23]m([0-9.]+)", done.stdout)]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    # The bar redraws its line: each epoch is one line of the log however often it moves.
    assert done.stdout.count("\r") >= 4 * 20
    assert done.stdout.count("\n") == 2 + 4 + 1
    assert "Done" in done.stdout


def test_the_small_model_takes_about_a_minute_by_default() -> None:
    arguments = work("train-small-model").args
    epochs = int(arguments[arguments.index("--epochs") + 1])
    seconds = float(arguments[arguments.index("--seconds-per-epoch") + 1])
    assert 60 <= epochs * seconds <= 90


def test_the_small_model_stops_when_told(tmp_path: Path) -> None:
    spec = work("train-small-model")
    process = subprocess.Popen([*spec.command, *spec.args], stdout=subprocess.PIPE, cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.read(1)
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    assert time.monotonic() - started < 10


def test_an_array_sweeps_over_learning_rates(tmp_path: Path) -> None:
    spec = work("array", runs=3, epochs=1, seconds_per_epoch=0, learning_rate=0.001, last_learning_rate=0.1)
    assert (spec.runs, spec.parallelism, spec.gpus) == (3, None, 0)
    rates = []
    for index in range(3):
        done = run(spec, tmp_path, JOB_COMPLETION_INDEX=str(index))
        assert done.returncode == 0, done.stderr
        rates.append(float(re.findall(r"learning rate ([0-9.e-]+)", done.stdout)[0]))
    assert rates == [0.001, 0.01, 0.1]


def test_an_array_may_run_a_few_at_a_time() -> None:
    assert work("array", runs=10, parallelism=2).parallelism == 2


def test_data_is_prepared_into_shards_that_add_up(tmp_path: Path) -> None:
    spec = work("data-preparation", rows=2000, shards=3, folder=str(tmp_path / "out put"))
    assert spec.gpus == 0
    done = run(spec, tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out put" / "manifest.json").read_text())
    assert sum(shard["rows"] for shard in manifest["shards"]) == manifest["rows"]
    assert 1800 < manifest["rows"] < 2000
    again = run(work("data-preparation", rows=2000, shards=3, folder=str(tmp_path / "again")), tmp_path)
    assert again.returncode == 0
    assert json.loads((tmp_path / "again" / "manifest.json").read_text()) == manifest


def test_without_a_folder_the_shards_go_with_the_job(tmp_path: Path) -> None:
    done = run(work("data-preparation", rows=100, shards=1), tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_data_preparation_may_not_ask_for_gpus() -> None:
    definition = parse_definition(shipped("data-preparation").definition)
    assert definition.forbids_gpus
    assert definition.gpu is None
    assert definition.queue == "cpu"


def test_the_gpu_check_says_that_gpus_are_pretended(tmp_path: Path) -> None:
    done = run(work("gpu-check"), tmp_path, BEAMTIME_PRETENDED_GPUS="1 × NVIDIA H100", CUDA_VISIBLE_DEVICES="0")
    assert done.returncode == 0, done.stderr
    assert "Pretended GPUs: 1 × NVIDIA H100." in done.stdout
    assert "CUDA_VISIBLE_DEVICES=0" in done.stdout
    assert "What the driver says" in done.stdout


def test_a_strict_gpu_check_fails_where_fewer_answer_than_were_asked_for(tmp_path: Path) -> None:
    spec = work("gpu-check", strict=True, gpu={"flavor": "", "count": 8})
    assert run(spec, tmp_path, PATH="/nonexistent:" + str(Path(sys.executable).parent)).returncode == 1


def test_the_gpu_check_prefers_the_image_with_pytorch() -> None:
    image = next(
        p for p in shipped("gpu-check", Images("a", "b", "c")).definition["parameters"] if p["name"] == "image"
    )
    assert image["default"] == "c"
