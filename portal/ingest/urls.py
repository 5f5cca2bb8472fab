"""Addresses for collectors."""

from django.urls import path

from portal.ingest import views

app_name = "ingest"

urlpatterns = [path("logs", views.logs, name="logs")]
