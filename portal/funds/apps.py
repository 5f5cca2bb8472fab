from django.apps import AppConfig


class FundsConfig(AppConfig):
    default_auto_field = "django.db.models.BigAutoField"
    name = "portal.funds"
    label = "funds"
