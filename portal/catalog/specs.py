"""What a template version is made of, and what becomes of it: plain frozen data, read by every door.

The JSON behind `Definition` is described in DEFINITION.md. `policy.parse_definition` is the only maker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The types of a parameter. What a value of each looks like in JSON stands in DEFINITION.md."""

    TEXT = "text"
    SCRIPT = "script"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    DURATION = "duration"
    MEMORY = "memory"
    GPU = "gpu"
    IMAGE = "image"
    ENV = "env"
    SECRET = "secret"  # noqa: S105 (the name of a kind, not a secret)
    RUNS = "runs"


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that may be chosen: the value that is sent, and what people read."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One field of the form. `default` is canonical (see `Filled.values`), None where there is none.

    `min` and `max` are inclusive, in whole seconds for a duration, in MiB for memory, in GPUs for gpu. Lengths count
    characters. `required` with a default means: the form may not be left empty, a program may leave it out.
    """

    name: str
    kind: Kind
    label: str
    help: str = ""
    section: str = ""
    required: bool = True
    default: Any = field(default=None, hash=False)
    placeholder: str = ""
    # What the number counts, such as "cores"; "s" for a duration, "MiB" for memory, "GPUs" for gpu.
    unit: str = ""
    min: int | float | None = None
    max: int | float | None = None
    min_length: int = 0
    max_length: int | None = None
    # A regular expression that the whole text must match, and the sentence that says so.
    pattern: str = ""
    pattern_help: str = ""
    choices: tuple[Choice, ...] = ()
    # Secrets: the environment variable that carries it, or the text parameter that names that variable.
    variable: str = ""
    variable_from: str = ""

    @property
    def may_be_missing(self) -> bool:
        """Whether a filled form can lack a value for it."""
        return not self.required and self.default is None


# --- the work: what runs, with holes for values ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class From:
    """Stands for the value of a parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class Join:
    """Its parts, written one behind the other without anything between them."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class If:
    """`then` if the parameter has a value that is not false, else `otherwise`; spliced into the list around it."""

    name: str
    then: tuple["Item", ...]
    otherwise: tuple["Item", ...] = ()


Node = str | int | float | From | Join
Item = Node | If


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable that the template sets itself; left out when its parameter has no value."""

    name: str
    value: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A WorkSpec with holes. Cores in `cpu`, MiB in `memory`, seconds in `time_limit`, per pod as in WorkSpec."""

    image: Node
    command: tuple[Item, ...]
    args: tuple[Item, ...] = ()
    # In order; a later one of the same name wins. `From` stands for all variables of an env parameter.
    env: tuple[Variable | From, ...] = ()
    cpu: Node = 1
    memory: Node = 1024
    gpus: Node = 0
    runs: Node = 1
    parallelism: Node | None = None
    time_limit: Node | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A group of fields in the form, in the order of thought."""

    title: str
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One version of a template: its parameters in the order of the form, and the work they describe.

    `queue` is the ClusterQueue that is preferred; `forbids_gpus` says that its jobs may never ask for GPUs.
    """

    parameters: tuple[Parameter, ...]
    work: Work
    sections: tuple[Section, ...] = ()
    queue: str = "gpu"
    forbids_gpus: bool = False

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    @property
    def secrets(self) -> tuple[Parameter, ...]:
        """The parameters whose values are secret; their values are never part of `Filled.values`."""
        return tuple(parameter for parameter in self.parameters if parameter.kind is Kind.SECRET)

    @property
    def gpu(self) -> Parameter | None:
        """The GPU parameter, of which there is at most one."""
        return next((parameter for parameter in self.parameters if parameter.kind is Kind.GPU), None)

    def by_section(self) -> tuple[tuple[Section, tuple[Parameter, ...]], ...]:
        """The form's sections with their parameters, empty ones left out; those of no section come first."""
        groups = (
            (section, tuple(p for p in self.parameters if p.section == section.title))
            for section in (Section(""), *self.sections)
        )
        return tuple((section, parameters) for section, parameters in groups if parameters)


# --- around a submission -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlavorChoice:
    """A ResourceFlavor with GPUs that the queue has. `most`: GPUs that it can ever give one job."""

    name: str
    label: str
    gpu_model: str
    most: int
    pretended: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be chosen here and now, found by `jobs`: the GPU flavors of one queue, and the queues by name."""

    flavors: tuple[FlavorChoice, ...] = ()
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Checked values. `values` are plain JSON, defaults filled in, keyed by parameter, without any secret:

    text, script, choice, image: str; integer, runs: int; number: int or float; boolean: bool; duration: int seconds;
    memory: int MiB; gpu: {"flavor": str, "count": int}; env: {NAME: value}. An optional parameter without a value has
    no key. `secrets` maps the environment variable to its value and shows up in no repr.
    """

    values: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
