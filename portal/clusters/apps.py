from django.apps import AppConfig


class ClustersConfig(AppConfig):
    default_auto_field = "django.db.models.BigAutoField"
    name = "portal.clusters"
    label = "clusters"

    def ready(self) -> None:
        from portal.clusters import checks  # noqa: F401, PLC0415 - registers the checks, once models are there
