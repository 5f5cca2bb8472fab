"""Making a job: once, whole, and byte for byte what was asked for."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from portal.clusters.specs import NameTaken, PermanentError, SpaceMissing
from tests.clusters.local.machine import Machine, make_spec

ODD_VALUES = {
    "SPACES": "  two  spaces  ",
    "EQUALS": "a=b=c",
    "QUOTES": "'single' \"double\" `back`",
    "DOLLAR": "$HOME ${HOME} $(HOME) $$",
    "BACKSLASH": "\\n \\\\ \\",
    "TAB": "\ta\t",
    "NEWLINE": "first\nsecond\n",
    "EMPTY": "",
    "UMLAUT": "Grüße, 東京 🎛",
    "NOT_UTF8": b"\xff\xfe\x80".decode("utf-8", "surrogateescape"),
}
PRINT_ENVIRONMENT = "import os, json; print(json.dumps({k.decode(): v.hex() for k, v in os.environb.items()}))"


def test_a_variable_arrives_byte_for_byte_whatever_is_in_it(machine: Machine) -> None:
    machine.submit(
        "odd",
        command=("python3", "-c", PRINT_ENVIRONMENT),
        env=tuple(ODD_VALUES.items()),
        secret_env=("SECRET", "SECRET_EMPTY"),
        secrets={"SECRET": "s=3 'cr\\et'\n$x", "SECRET_EMPTY": ""},
    )
    machine.wait_over("odd")
    arrived = {name: bytes.fromhex(value) for name, value in json.loads(machine.log("odd")).items()}
    for name, value in {**ODD_VALUES, "SECRET": "s=3 'cr\\et'\n$x", "SECRET_EMPTY": ""}.items():
        assert arrived[name] == value.encode("utf-8", "surrogateescape"), name


def test_an_argument_arrives_byte_for_byte_too(machine: Machine) -> None:
    words = tuple(ODD_VALUES.values())
    program = "import os, sys; print([os.fsencode(word).hex() for word in sys.argv[1:]])"
    machine.submit("words", command=("python3", "-c", program), args=words)
    machine.wait_over("words")
    assert machine.log("words").strip() == str([word.encode("utf-8", "surrogateescape").hex() for word in words])


def test_the_portals_own_keys_do_not_reach_the_job(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAMTIME_SECRET_KEY", "the portal's own key")
    machine.submit("nosy", "env")
    machine.wait_over("nosy")
    assert "HOME=" in machine.log("nosy")
    assert "the portal's own key" not in machine.log("nosy")


def test_a_job_finds_the_portals_python_and_works_in_a_folder_of_its_own(machine: Machine) -> None:
    machine.submit("home", "touch here && python3 -c \"import os; print(os.getcwd() == os.environ['HOME'])\"; ls")
    machine.wait_over("home")
    assert machine.log("home").split() == ["True", "here"]


def test_asking_twice_for_the_same_makes_one_job(machine: Machine) -> None:
    spec = make_spec("once", "sleep 5")
    first, second = machine.backend.create(spec, {}), machine.backend.create(spec, {})
    assert (first.adopted, second.adopted) == (False, True)
    assert first.uid == second.uid
    assert first.created_at == second.created_at
    assert first.created_at.microsecond == 0


def test_a_hundred_at_once_asking_for_the_same_name_make_one_job(machine: Machine) -> None:
    spec = make_spec("rush", "sleep 5")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: machine.backend.create(spec, {}), range(100)))
    assert len({one.uid for one in made}) == 1
    assert sum(not one.adopted for one in made) == 1
    assert [path.name for path in (machine.root / "jobs").iterdir()] == ["bt-vision.rush"]


def test_a_name_that_another_job_has_is_refused(machine: Machine) -> None:
    spec = machine.submit("mine", "sleep 5")
    with pytest.raises(NameTaken):
        machine.backend.create(replace(spec, job_id="another"), {})
    with pytest.raises(NameTaken):
        machine.backend.create(replace(spec, work=replace(spec.work, cpu_millicores=2000)), {})


def test_a_team_without_a_place_is_told_to_get_one(machine: Machine) -> None:
    with pytest.raises(SpaceMissing):
        machine.backend.create(replace(make_spec("lost"), namespace="bt-nobody"), {})
    with pytest.raises(SpaceMissing):
        machine.backend.create(replace(make_spec("lost"), queue="unknown"), {})


@pytest.mark.parametrize(
    ("work", "named"),
    [
        ({"command": ()}, "no command"),
        ({"env": (("ZERO", "a\0b"),)}, "The variable ZERO"),
        ({"env": (("A=B", "x"),)}, "A=B"),
        ({"env": (("", "x"),)}, "''"),
        ({"env": (("LONG", "x" * 140_000),)}, "140,005 bytes"),
        ({"command": ("/bin/sh", "-c", "x" * 140_000)}, "140,000 bytes"),
        ({"env": (("HALF", "\ud800"),)}, "surrogate"),
        ({"secret_env": ("TOKEN",)}, "TOKEN"),
    ],
)
def test_what_no_process_can_be_given_is_refused_before_anything_is_made(
    machine: Machine, work: dict[str, object], named: str
) -> None:
    with pytest.raises(PermanentError, match=named):
        machine.submit("bad", **work)  # type: ignore[arg-type]
    assert not list((machine.root / "jobs").iterdir())


def test_a_refusal_never_repeats_a_secret(machine: Machine) -> None:
    with pytest.raises(PermanentError) as refused:
        machine.submit("bad", secret_env=("TOKEN",), secrets={"TOKEN": "hunter2\0"})
    assert "hunter2" not in str(refused.value)


def test_secrets_lie_in_a_file_for_the_portals_user_only_and_go_when_the_job_ends(machine: Machine) -> None:
    machine.submit("secret", "echo ready; sleep 1", secret_env=("TOKEN",), secrets={"TOKEN": "hunter2"})
    machine.wait_running("secret")
    [path] = machine.root.glob("jobs/*/secrets.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(machine.root.stat().st_mode) == 0o700
    others = [file for file in machine.root.rglob("*") if file.is_file() and file != path]
    assert not [file for file in others if b"hunter2" in file.read_bytes()]
    machine.wait_over("secret")
    assert not list(machine.root.glob("jobs/*/secrets.json"))


def test_a_command_that_does_not_exist_says_so(machine: Machine) -> None:
    machine.submit("absent", command=("no-such-program", "--help"))
    [pod] = machine.wait_over("absent").pods
    [container] = pod.containers
    assert (pod.phase, container.reason, container.exit_code) == ("Failed", "StartError", 128)
    assert "no-such-program" in container.message
    assert "not found in $PATH" in container.message
