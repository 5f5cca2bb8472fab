from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "portal.config"
    label = "config"
