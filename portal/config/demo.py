"""The demo site: teams, people, queues, prices and templates to play with. Makes what is missing, changes no more."""

import os
import secrets
from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.utils.text import slugify

from portal.catalog.services import install_shipped
from portal.clusters.local.devices import Gpu, installed
from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.clusters.services import ensure_cluster
from portal.funds.models import Price, PricedResource
from portal.funds.services import add_price
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.services import synchronise
from portal.teams.models import Membership, Role, Team, User
from portal.teams.services import add_member, create_team

PASSWORD_FILE = "demo-password"  # noqa: S105 - the name of a file
# Without letters and digits that are easily mistaken for each other.
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, slots=True)
class Account:
    """A person of the demo, and what the printed list says about them."""

    username: str
    does: str
    team: str = ""
    role: str = Role.MEMBER
    is_auditor: bool = False
    is_admin: bool = False


ACCOUNTS = (
    Account("member", "submits jobs in team vision", team="vision"),
    Account("lead", "leads team vision", team="vision", role=Role.LEAD),
    Account("outsider", "submits jobs in team language", team="language"),
    Account("auditor", "sees every team, changes nothing", is_auditor=True),
    Account("admin", "edits teams, templates, queues and prices", is_admin=True),
)
TEAMS = {"vision": "Vision", "language": "Language"}


@dataclass(frozen=True, slots=True)
class Model:
    """GPUs of one kind. `price` per GPU-hour; None where only the site can know it, and a round example stands in."""

    flavor: str
    name: str
    memory_gib: int
    count: int
    price: Decimal | None = None
    pretended: bool = False


PRETENDED = (
    Model("a100", "NVIDIA A100 40 GB", 40, 4, Decimal("1.10"), pretended=True),
    Model("h100", "NVIDIA H100 80 GB", 80, 4, Decimal("2.40"), pretended=True),
)
CORE_HOUR = Decimal("0.02")
REAL_GPU_HOUR = Decimal("1.00")
# Cores and memory that come with each pretended GPU.
CORES_PER_GPU, GIB_PER_GPU = 16, 64


def seed() -> str:
    """Make the demo site, or what is missing of it; the password of its accounts.

    Raises `ClusterError` where the cluster's queues cannot be brought in step.
    """
    password, is_new = _password()
    with transaction.atomic():
        for slug, name in TEAMS.items():
            if not Team.objects.filter(slug=slug).exists():
                create_team(actor=None, slug=slug, name=name)
        for account in ACCOUNTS:
            _ensure_account(account, password, set_password=is_new)
        cluster = ensure_cluster()
        if cluster.backend == BackendKind.LOCAL:
            _ensure_queues(cluster)
    install_shipped()
    synchronise(cluster)
    with transaction.atomic():
        _ensure_prices(cluster)
    return password


# --- people --------------------------------------------------------------------------------------------------------


def _password() -> tuple[str, bool]:
    """The demo's password, and whether it differs from that of the last start."""
    path = settings.BEAMTIME_DATA_DIR / PASSWORD_FILE
    kept = path.read_text().strip() if path.exists() else ""
    password = settings.BEAMTIME_DEMO_PASSWORD or kept or _invent()
    if password != kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(password + "\n")
    return password, password != kept


def _invent() -> str:
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(3))


def _ensure_account(account: Account, password: str, *, set_password: bool) -> None:
    user = User.objects.filter(username=account.username).first()
    if user is None:
        user = User(
            username=account.username,
            email=f"{account.username}@example.org",
            is_auditor=account.is_auditor,
            is_staff=account.is_admin,
            is_superuser=account.is_admin,
        )
        set_password = True
    if set_password:
        user.set_password(password)
        user.save()
    if account.team and not Membership.objects.filter(user=user).exists():
        team = Team.objects.get(slug=account.team)
        add_member(actor=None, team=team, username=account.username, role=account.role)


# --- hardware ------------------------------------------------------------------------------------------------------


def _ensure_queues(cluster: Cluster) -> None:
    """Queues `gpu` and `cpu`, where they are not there yet; what an administrator changed of them stays."""
    cores, gib = _machine()
    if not ClusterQueue.objects.filter(cluster=cluster, name="cpu").exists():
        flavor, _ = ResourceFlavor.objects.get_or_create(cluster=cluster, name="cpu", defaults={"gpu_resource": ""})
        queue = ClusterQueue.objects.create(cluster=cluster, name="cpu")
        _add_quotas(queue, flavor, {"cpu": max(cores, 4), "memory": gib})
    if ClusterQueue.objects.filter(cluster=cluster, name="gpu").exists():
        return
    queue = ClusterQueue.objects.create(cluster=cluster, name="gpu")
    for model in hardware(installed()):
        flavor, _ = ResourceFlavor.objects.get_or_create(
            cluster=cluster,
            name=model.flavor,
            defaults={"gpu_model": model.name, "gpu_memory_gib": model.memory_gib, "pretended": model.pretended},
        )
        mine = {"cpu": model.count * CORES_PER_GPU, "memory": model.count * GIB_PER_GPU}
        if not model.pretended:
            mine = {"cpu": max(cores, model.count), "memory": gib}
        _add_quotas(queue, flavor, {"nvidia.com/gpu": model.count, **mine})


def hardware(gpus: tuple[Gpu, ...]) -> tuple[Model, ...]:
    """The models that the demo offers: the machine's own GPUs, or pretended ones where it has none."""
    if not gpus:
        return PRETENDED
    models = {}
    for gpu in gpus:
        alike = [other for other in gpus if other.model == gpu.model]
        models[gpu.model] = Model(slugify(gpu.model)[:63], gpu.model, gpu.memory_gib, len(alike))
    return tuple(models.values())


def _add_quotas(queue: ClusterQueue, flavor: ResourceFlavor, amounts: dict[str, int]) -> None:
    for resource, nominal in amounts.items():
        FlavorQuota.objects.create(cluster_queue=queue, flavor=flavor, resource=resource, nominal=nominal)


def _machine() -> tuple[int, int]:
    """Cores and whole GiB of memory of this machine."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return os.cpu_count() or 1, max(gib, 1)


def _ensure_prices(cluster: Cluster) -> None:
    """A price for each GPU model of the cluster and for a core-hour, where none was ever entered."""
    known = {model.name: model.price for model in PRETENDED}
    priced = set(Price.objects.values_list("resource", "gpu_model"))
    models = cluster.flavors.filter(removed_at=None).exclude(gpu_model="").values_list("gpu_model", flat=True)
    for model in dict.fromkeys(models):
        if (PricedResource.GPU, model) not in priced:
            amount = known.get(model) or REAL_GPU_HOUR
            add_price(actor=None, resource=PricedResource.GPU, gpu_model=model, amount=amount)
    if (PricedResource.CPU, "") not in priced:
        add_price(actor=None, resource=PricedResource.CPU, amount=CORE_HOUR)
