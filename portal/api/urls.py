"""Addresses of the REST API."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from portal.api import catalog, joblines, jobs, logsearch, records, streams
from portal.api.notfound import NoSuchAddress

app_name = "api"

_schema = [
    path("schema/", SpectacularAPIView.as_view(permission_classes=[AllowAny]), name="schema"),
    path(
        "docs/", SpectacularSwaggerSplitView.as_view(url_name="api:schema", permission_classes=[AllowAny]), name="docs"
    ),
]
_templates = [
    path("templates/", catalog.Templates.as_view(), name="templates"),
    path("templates/<slug:slug>/", catalog.OneTemplate.as_view(), name="template"),
    path("templates/<slug:slug>/schema/", catalog.TemplateSchema.as_view(), name="template-schema"),
]
_jobs = [
    path("jobs/", jobs.Jobs.as_view(), name="jobs"),
    path("jobs/preview/", jobs.JobPreview.as_view(), name="job-preview"),
    path("jobs/<str:job_id>/", jobs.OneJob.as_view(), name="job"),
    path("jobs/<str:job_id>/cancel/", jobs.CancelJob.as_view(), name="job-cancel"),
    path("jobs/<str:job_id>/rerun/", jobs.RerunJob.as_view(), name="job-rerun"),
    path("jobs/<str:job_id>/events/", jobs.JobEvents.as_view(), name="job-events"),
    path("jobs/<str:job_id>/attempts/", jobs.JobAttempts.as_view(), name="job-attempts"),
    path("jobs/<str:job_id>/streams/", jobs.JobStreams.as_view(), name="job-streams"),
    path("jobs/<str:job_id>/lines/", joblines.JobLines.as_view(), name="job-lines"),
    path("jobs/<str:job_id>/download/", joblines.JobDownload.as_view(), name="job-download"),
]
_streams = [
    path("streams/<str:stream_id>/", streams.OneStream.as_view(), name="stream"),
    path("streams/<str:stream_id>/lines/", streams.StreamLines.as_view(), name="stream-lines"),
    path("streams/<str:stream_id>/search/", logsearch.StreamSearch.as_view(), name="stream-search"),
    path("streams/<str:stream_id>/download/", streams.StreamDownload.as_view(), name="stream-download"),
]
_records = [
    path("teams/", records.Teams.as_view(), name="teams"),
    path("queues/", records.Queues.as_view(), name="queues"),
    path("usage/", records.Usage.as_view(), name="usage"),
    path("charges/", records.Charges.as_view(), name="charges"),
    path("prices/", records.Prices.as_view(), name="prices"),
]

urlpatterns = [
    *_schema,
    *_templates,
    *_jobs,
    *_streams,
    *_records,
    re_path(r"^.*$", NoSuchAddress.as_view(), name="no-such-address"),
]
