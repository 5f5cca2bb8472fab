"""The rows of the site under test, made inside the portal's own process by its own verbs. Run by `manage.py shell`."""

import os
from decimal import Decimal

from portal.clusters.models import ResourceFlavor
from portal.funds.models import PricedResource
from portal.funds.services import add_price
from portal.teams.models import User
from portal.teams.services import add_member, create_team

GPU_MODEL = "Test GPU 80 GB"
# One unit of money per GPU and second, a hundredth per core and second, so that jobs of seconds cost something.
GPU_HOUR, CORE_HOUR = Decimal(3600), Decimal(36)
PEOPLE = {"member": "TEAM", "outsider": "OTHER_TEAM"}


def make() -> None:
    """Two teams with a person each, the name of the GPUs that Kueue's flavor does not tell, and two prices."""
    for person, team in PEOPLE.items():
        user = User(username=person, email=f"{person}@example.org")
        user.set_unusable_password()
        user.save()
        slug = os.environ[team]
        made = create_team(actor=None, slug=slug, name=slug.title())
        add_member(actor=None, team=made, username=person)
    ResourceFlavor.objects.filter(name="gpu-a").update(gpu_model=GPU_MODEL)
    add_price(actor=None, resource=PricedResource.GPU, gpu_model=GPU_MODEL, amount=GPU_HOUR)
    add_price(actor=None, resource=PricedResource.CPU, amount=CORE_HOUR)
