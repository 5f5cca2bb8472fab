from django.apps import AppConfig


class WatchConfig(AppConfig):
    name = "portal.watch"
    label = "watch"
