"""Django's settings, read from the environment by the table in `env.py`."""

import os
import sys
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from environ import Env

from portal.config.env import Reader, SettingInvalid
from portal.config.keys import kept_key

BASE_DIR = Path(__file__).resolve().parent.parent.parent
read = Reader(os.environ)

# --- what the operator decides -------------------------------------------------------------------------------------

BEAMTIME_MODE = read.choice("BEAMTIME_MODE", "embedded", "server")
EMBEDDED = BEAMTIME_MODE == "embedded"
BEAMTIME_DATA_DIR = (BASE_DIR / read.text("BEAMTIME_DATA_DIR")).resolve()
REDIS_URL = read.text("REDIS_URL")
BEAMTIME_PUBLIC_URL = read.text("BEAMTIME_PUBLIC_URL").rstrip("/")
BEAMTIME_HTTPS = read.yes("BEAMTIME_HTTPS")
BEAMTIME_CURRENCY = read.text("BEAMTIME_CURRENCY")
BEAMTIME_INSTANCE = read.text("BEAMTIME_INSTANCE")
BEAMTIME_CLUSTER_NAME = read.text("BEAMTIME_CLUSTER_NAME")
BEAMTIME_CLUSTER_BACKEND = read.choice("BEAMTIME_CLUSTER_BACKEND", "auto", "kube", "local")
BEAMTIME_CLUSTER_KUBECONFIG = read.text("BEAMTIME_CLUSTER_KUBECONFIG")
BEAMTIME_ALLOW_LOCAL_BACKEND = EMBEDDED or read.yes("BEAMTIME_ALLOW_LOCAL_BACKEND")
# Jobs run as the portal's own user without anybody having asked for that: then only for who sits at this machine.
BEAMTIME_LOOPBACK_ONLY = EMBEDDED and not read.yes("BEAMTIME_ALLOW_LOCAL_BACKEND")
BEAMTIME_KEEP_FINISHED = read.number("BEAMTIME_KEEP_FINISHED")
BEAMTIME_SWEEP = read.number("BEAMTIME_SWEEP")
BEAMTIME_LEASE = read.number("BEAMTIME_LEASE")
BEAMTIME_IMAGE_SHELL = read.text("BEAMTIME_IMAGE_SHELL")
BEAMTIME_IMAGE_PYTHON = read.text("BEAMTIME_IMAGE_PYTHON")
BEAMTIME_IMAGE_PYTORCH = read.text("BEAMTIME_IMAGE_PYTORCH")
BEAMTIME_DEMO_PASSWORD = read.text("BEAMTIME_DEMO_PASSWORD")
BEAMTIME_LOG_BYTES_PER_JOB = read.count("BEAMTIME_LOG_BYTES_PER_JOB")
BEAMTIME_LOG_FILE_BYTES = read.count("BEAMTIME_LOG_FILE_BYTES")
BEAMTIME_LOG_RETENTION_DAYS = read.count("BEAMTIME_LOG_RETENTION_DAYS")
BEAMTIME_LOG_STORE = read.choice("BEAMTIME_LOG_STORE", "database", "s3")
BEAMTIME_S3_ENDPOINT = read.text("BEAMTIME_S3_ENDPOINT")
BEAMTIME_S3_BUCKET = read.text("BEAMTIME_S3_BUCKET")
BEAMTIME_S3_REGION = read.text("BEAMTIME_S3_REGION")
BEAMTIME_S3_PREFIX = read.text("BEAMTIME_S3_PREFIX")
BEAMTIME_S3_ACCESS_KEY = read.text("BEAMTIME_S3_ACCESS_KEY")
BEAMTIME_S3_SECRET_KEY = read.text("BEAMTIME_S3_SECRET_KEY")
if BEAMTIME_LOG_STORE == "s3" and not BEAMTIME_S3_BUCKET:
    raise SettingInvalid("BEAMTIME_S3_BUCKET: must be given where logs go to an object store (BEAMTIME_LOG_STORE=s3)")
BEAMTIME_INGEST_TOKENS = read.items("BEAMTIME_INGEST_TOKENS")
BEAMTIME_METRICS_TOKEN = read.text("BEAMTIME_METRICS_TOKEN")
BEAMTIME_METRICS_PORT = read.count("BEAMTIME_METRICS_PORT")
BEAMTIME_METRICS_HOST = read.text("BEAMTIME_METRICS_HOST")
BEAMTIME_LOG_LEVEL = read.text("BEAMTIME_LOG_LEVEL")

if EMBEDDED:
    SECRET_KEY = read.text("BEAMTIME_SECRET_KEY") or kept_key(BEAMTIME_DATA_DIR, "secret-key")
    BEAMTIME_SECRETS_KEYS = read.items("BEAMTIME_SECRETS_KEYS") or [kept_key(BEAMTIME_DATA_DIR, "fernet-key")]
else:
    SECRET_KEY = read.text("BEAMTIME_SECRET_KEY")
    BEAMTIME_SECRETS_KEYS = read.items("BEAMTIME_SECRETS_KEYS")
    _needed = ("BEAMTIME_SECRET_KEY", "BEAMTIME_SECRETS_KEYS", "REDIS_URL", "DATABASE_URL")
    if _missing := [name for name in _needed if not read.text(name)]:
        raise SettingInvalid(f"{', '.join(_missing)}: must be given in server mode (BEAMTIME_MODE=server)")

# --- Django --------------------------------------------------------------------------------------------------------

DEBUG = read.yes("BEAMTIME_DEBUG")
ALLOWED_HOSTS = read.items("BEAMTIME_ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = [BEAMTIME_PUBLIC_URL]
CSRF_FAILURE_VIEW = "portal.web.errors.no_csrf"
ROOT_URLCONF = "portal.config.urls"
ASGI_APPLICATION = "portal.config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "teams.User"

INSTALLED_APPS = [
    "portal.config.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "channels",
    "django_htmx",
    "django_structlog",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
    "template_partials.apps.SimpleAppConfig",
    "csp",
    "portal.core",
    "portal.audit",
    "portal.teams",
    "portal.clusters",
    "portal.quotas",
    "portal.catalog",
    "portal.funds",
    "portal.jobs",
    "portal.logs",
    "portal.usage",
    "portal.costs",
    "portal.watch",
    "portal.web",
    "portal.config",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

_LOADERS: list[Any] = ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"]
if not DEBUG:
    _LOADERS = [("django.template.loaders.cached.Loader", _LOADERS)]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.web.context.shell",
            ],
            "loaders": [("template_partials.loader.Loader", _LOADERS)],
            "builtins": ["template_partials.templatetags.partials"],
        },
    }
]

DATABASES = {"default": read.database(BEAMTIME_DATA_DIR / "beamtime.sqlite3")}
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "portal.core.rediscache.Cache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

LANGUAGE_CODE = "en"
# Only languages with a translation of our own: with Django's alone, a page would mix two and name the wrong one.
LANGUAGES = [("en", "English")]
USE_TZ = True
TIME_ZONE = read.text("BEAMTIME_TIME_ZONE")

STATIC_URL = "/static/"
STATIC_ROOT = BEAMTIME_DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Embedded serves the files where they lie; a server collects them once and may then cache them for ever.
WHITENOISE_USE_FINDERS = EMBEDDED
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if EMBEDDED
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- sign-in -------------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_ADAPTER = "portal.web.accounts.ClosedAccountAdapter"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
MFA_TOTP_ISSUER = "Beamtime"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
# An administrator makes the accounts and vouches for the address; without this nobody could have a second factor.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_ADAPTER = "portal.web.accounts.CodeAdapter"
SESSION_COOKIE_AGE = 14 * 86_400
SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"

# --- safety --------------------------------------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEAMTIME_HTTPS
if BEAMTIME_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
# Redirects, subdomains and preload lists are the decision of whoever owns the domain and its proxy.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
# A script of the largest allowed size travels inside one form field; more than this is refused before it is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

# --- REST ----------------------------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["portal.api.authentication.ScopePermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "portal.api.problems.problem_response",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Beamtime",
    "DESCRIPTION": "Jobs on shared GPUs: submit, follow, read the log, know the cost.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
}

# --- tasks ---------------------------------------------------------------------------------------------------------

REDIS_BROKER: dict[str, Any] = {
    # Tasks are short; an unacknowledged one comes back after two minutes, and the row's claim keeps it harmless.
    "visibility_timeout": 120,
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    # A deed whose hint finds no broker must not wait for it: it holds a connection to the database.
    "max_retries": 0,
}
CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
CELERY_BROKER_TRANSPORT_OPTIONS = REDIS_BROKER if REDIS_URL else {"polling_interval": 0.05}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 60
CELERY_TASK_SOFT_TIME_LIMIT = 50
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# Seconds. What a deed sets going competes with the page that the person waits for, most of all in one process; the page
# goes first.
HINT_DELAY = 0.15 if EMBEDDED else 0.05
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    # `expires` just short of the period, so that a stalled worker does not wake to a pile of the same task.
    "sweep": {"task": "jobs.sweep", "schedule": BEAMTIME_SWEEP, "options": {"expires": BEAMTIME_SWEEP * 0.9}},
    "rate": {"task": "costs.rate", "schedule": 20, "options": {"expires": 18}},
    "number": {"task": "logs.number_waiting", "schedule": 2, "options": {"expires": 1.8}},
    "collect": {"task": "jobs.collect_finished", "schedule": 60, "options": {"expires": 55}},
    "queues": {"task": "quotas.synchronise", "schedule": 60, "options": {"expires": 55}},
    "seal": {"task": "logs.seal", "schedule": 20, "options": {"expires": 18}},
    "expire": {"task": "logs.expire", "schedule": 3600, "options": {"expires": 3500}},
}

# --- mail and log --------------------------------------------------------------------------------------------------

_mail: dict[str, Any] = Env.email_url_config(read.text("BEAMTIME_EMAIL_URL"))
EMAIL_BACKEND, EMAIL_HOST, EMAIL_PORT = _mail["EMAIL_BACKEND"], _mail["EMAIL_HOST"], _mail["EMAIL_PORT"]
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_USER"], _mail["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS = bool(_mail.get("EMAIL_USE_TLS"))
DEFAULT_FROM_EMAIL = read.text("BEAMTIME_EMAIL_FROM")

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "structured": {"()": "portal.config.log.formatter", "plain": sys.stderr.isatty() or EMBEDDED},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"portal": {"level": BEAMTIME_LOG_LEVEL}, "django_structlog": {"level": "WARNING"}},
}
