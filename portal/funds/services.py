"""Entering prices: the only verb there is, because a price is never changed and never taken away."""

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction

from portal.audit import services as audit
from portal.core.clock import now
from portal.core.errors import Problem, Refused
from portal.funds import policy, selectors
from portal.funds.models import Price
from portal.teams.models import User
from portal.teams.services import demand_admin


@transaction.atomic
def add_price(
    *,
    actor: User | None,
    resource: str,
    gpu_model: str = "",
    amount: Decimal,
    currency: str = "",
    valid_from: datetime | None = None,
) -> Price:
    """A price per hour from a moment on (None: from now on), which ends the one before it.

    `actor` None is Beamtime itself. `currency` "" is the site's. Raises `Forbidden`; `Refused` on "resource",
    "gpu_model", "amount", "currency" and "valid_from".
    """
    demand_admin(actor, "Only an administrator of the site enters prices.")
    moment = now()
    currency = currency or settings.BEAMTIME_CURRENCY
    begin = valid_from or moment
    problems = policy.price_problems(
        selectors.prices(),
        resource=resource,
        gpu_model=gpu_model,
        amount=amount,
        currency=currency,
        valid_from=begin,
        at=moment,
        site_currency=settings.BEAMTIME_CURRENCY,
    )
    if problems:
        raise Refused(problems)
    price, is_new = Price.objects.get_or_create(
        resource=resource,
        gpu_model=gpu_model,
        valid_from=begin,
        defaults={"amount": amount, "currency": currency, "created_by": actor},
    )
    if not is_new:  # somebody entered it in this very moment
        raise Refused(Problem("valid_from", "There is a price from that moment on already. Take a later one."))
    after = {
        "resource": resource,
        "gpu_model": gpu_model,
        "amount": f"{amount:f}",
        "currency": currency,
        "valid_from": begin.isoformat(),
    }
    audit.record(actor=actor, action="price.add", subject=price, after=after)
    return price
