from django.apps import AppConfig
from django.contrib.admin import apps as django_admin


class ConfigConfig(AppConfig):
    default = True
    name = "portal.config"
    label = "config"


class AdminConfig(django_admin.AdminConfig):
    default = False
    default_site = "portal.config.adminsite.Site"
