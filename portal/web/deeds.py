"""What one does to a job from its page: cancel or stop, run again, clone. Each is thin; the verbs decide."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from portal.core.errors import Conflicting, Refused
from portal.jobs import services
from portal.jobs.models import Job
from portal.teams.policy import Action
from portal.web.access import Seat, of_job

# Problems that no field of the form could mend.
_BEYOND_FORMS = frozenset({"", "team", "template", "version"})


@require_POST
@of_job(Action.SEE_JOB)
def cancel(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """Ask for the job's end; the state changes only when the cluster says so."""
    try:
        services.cancel(actor=seat.user, job=job)
    except Refused as refused:
        messages.warning(request, refused.problems[0].message)
    return redirect("web:job", seat.team.slug, job.pk)


@require_POST
@of_job(Action.SUBMIT_JOB)
def rerun(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """The same again under its version, or the newest with `newest=yes`. `key` makes a double click one job."""
    try:
        made = services.rerun(
            actor=seat.user,
            job=job,
            newest=request.POST.get("newest") == "yes",
            idempotency_key=request.POST.get("key", "")[:200] or None,
        )
    except Refused as refused:
        messages.error(request, " ".join(problem.message for problem in refused.problems))
        if all(problem.field in _BEYOND_FORMS for problem in refused.problems):
            return redirect("web:job", seat.team.slug, job.pk)
        return redirect(_form_of(seat, job))
    except Conflicting:
        messages.warning(request, _("This was sent already. Load the page and run it again for another job."))
        return redirect("web:job", seat.team.slug, job.pk)
    if made.created:
        messages.success(request, _("“%(name)s” is sent again.") % {"name": made.job.name})
    return redirect("web:job", seat.team.slug, made.job.pk)


@require_safe
@of_job(Action.SUBMIT_JOB)
def clone(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """The form of its template, filled in with what this job had."""
    return redirect(_form_of(seat, job))


def _form_of(seat: Seat, job: Job) -> str:
    form = reverse("web:submit-form", args=[seat.team.slug, job.template_version.template.slug])
    return f"{form}?{urlencode({'from': job.pk})}"
