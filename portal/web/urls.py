"""Addresses of the pages: one list per noun, the parts of a team below its own address."""

from django.urls import URLPattern, URLResolver, include, path

from portal.web import costs, deeds, health, home, job, joblog, jobs, preferences, queues, submit, team, tokens

app_name = "web"

Patterns = list[URLPattern | URLResolver]

_people: Patterns = [
    path("", team.page, name="team"),
    path("people/add/", team.add, name="team-add"),
    path("people/role/", team.role, name="team-role"),
    path("people/remove/", team.remove, name="team-remove"),
]

_jobs: Patterns = [
    path("jobs/", jobs.page, name="jobs"),
    path("jobs/rows/", jobs.rows, name="jobs-rows"),
]

_job: Patterns = [
    path("jobs/<uuid:job>/", job.job, name="job"),
    path("jobs/<uuid:job>/log/", job.job_log, name="job-log"),
    path("jobs/<uuid:job>/log/<uuid:stream>/download/", joblog.job_download, name="job-download"),
    path("jobs/<uuid:job>/log/archive/", joblog.job_archive, name="job-archive"),
    path("jobs/<uuid:job>/cost/", job.job_cost, name="job-cost"),
    path("jobs/<uuid:job>/events/", job.job_events, name="job-events"),
    path("jobs/<uuid:job>/manifest/", job.job_manifest, name="job-manifest"),
]

_deeds: Patterns = [
    path("jobs/<uuid:job>/cancel/", deeds.cancel, name="job-cancel"),
    path("jobs/<uuid:job>/rerun/", deeds.rerun, name="job-rerun"),
    path("jobs/<uuid:job>/clone/", deeds.clone, name="job-clone"),
]

_submit: Patterns = [
    path("submit/", submit.catalog, name="submit"),
    path("submit/<slug:template>/", submit.form, name="submit-form"),
    path("submit/<slug:template>/estimate/", submit.estimate, name="submit-estimate"),
    path("submit/<slug:template>/preview/", submit.preview, name="submit-preview"),
]

_costs: Patterns = [
    path("costs/", costs.page, name="costs"),
]

_site: Patterns = [
    path("", home.page, name="home"),
    path("queues/", queues.page, name="queues"),
    path("accounts/tokens/", tokens.page, name="tokens"),
    path("accounts/tokens/<int:token>/revoke/", tokens.revoke, name="token-revoke"),
    path("accounts/preferences/", preferences.save, name="preferences"),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
]

urlpatterns: Patterns = [
    *_site,
    path("teams/<slug:team>/", include([*_people, *_jobs, *_job, *_deeds, *_submit, *_costs])),
]
