"""People, teams, who belongs where, and the tokens of programs."""

from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

# A team's slug becomes part of a namespace name (an RFC 1123 label of at most 63 characters), so it is narrow.
team_slug = RegexValidator(
    r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?\Z",
    _("Use 1 to 40 lower-case letters, digits and dashes; begin and end with a letter or digit."),
)


class User(AbstractUser):
    """A person. The site's *admin* is a superuser; the *auditor* sees everything and changes nothing."""

    is_auditor = models.BooleanField(
        _("auditor"), default=False, help_text=_("May see every team, may change nothing.")
    )


class Team(models.Model):
    """A group that shares quota and budget; owns one namespace in each cluster."""

    slug = models.CharField(
        max_length=40,
        unique=True,
        validators=[team_slug],
        help_text=_("Names the team in addresses and its namespace, bt-<slug>, in the cluster. It stays for ever."),
    )
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    MEMBER = "member", _("Member")
    LEAD = "lead", _("Lead")


class Membership(models.Model):
    """A person in a team. Leaving deletes the row at once; the audit keeps the past."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    joined_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class Scope(models.TextChoices):
    READ = "read", _("Read")
    WRITE = "write", _("Read and write")


class ApiToken(models.Model):
    """A program's key to one person's rights. Only a digest is kept; the text is shown once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    # The first characters, so that a person recognises the token in a list.
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.WRITE)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
