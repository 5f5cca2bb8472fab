"""Job templates and their versions."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Template(models.Model):
    """What a researcher picks. All that can change stands in its versions."""

    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    summary = models.CharField(max_length=300, blank=True)
    # bootstrap-icons name for the catalog page.
    icon = models.CharField(max_length=40, default="box")
    position = models.PositiveIntegerField(default=100)

    class Meta:
        ordering = ["position", "title"]

    def __str__(self) -> str:
        return self.title


class VersionState(models.TextChoices):
    DRAFT = "draft", _("Draft")
    PUBLISHED = "published", _("Published")
    DEPRECATED = "deprecated", _("Deprecated")
    RETIRED = "retired", _("Retired")


class TemplateVersion(models.Model):
    """One definition. Once published, the database refuses any change of it; only its state may move on.

    `definition` is described in portal/catalog/DEFINITION.md.
    """

    template = models.ForeignKey(Template, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=VersionState.choices, default=VersionState.DRAFT)
    definition = models.JSONField(default=dict)
    # Why it is deprecated or retired, and what to take instead; shown to people who meet it.
    message = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    published_at = models.DateTimeField(null=True, blank=True)
    # Installed by Beamtime itself; a new one is installed only when what is shipped has changed since.
    shipped = models.BooleanField(default=False, editable=False)

    class Meta:
        ordering = ["template", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["template", "number"], name="version_once"),
            # Two drafts side by side would each miss what the other changed.
            models.UniqueConstraint(fields=["template"], condition=models.Q(state="draft"), name="one_draft"),
        ]

    def __str__(self) -> str:
        return f"{self.template}, version {self.number}"

    @property
    def is_draft(self) -> bool:
        return self.state == VersionState.DRAFT
