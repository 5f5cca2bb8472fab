"""Settings, URL roots, ASGI, the Celery application, and the commands that speak to every room."""

from portal.config.celery import app as celery_app

__all__ = ["celery_app"]
