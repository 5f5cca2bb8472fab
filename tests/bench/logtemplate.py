"""The job template of the measures of the log: many small pods with a script. Run by `manage.py shell`."""

SLUG = "bench-log"


def make() -> None:
    """Publish it, once. The shipped templates give a pod at least a tenth of a core: fifty would not fit here."""
    from django.conf import settings

    from portal.catalog.models import Template
    from portal.catalog.services import new_draft, publish, save_draft, save_template

    if Template.objects.filter(slug=SLUG).exists():
        return
    definition = {
        "queue": "cpu",
        "parameters": [
            {"name": "image", "kind": "text", "label": "Image", "default": settings.BEAMTIME_IMAGE_SHELL},
            {"name": "script", "kind": "script", "label": "Script"},
            {"name": "runs", "kind": "runs", "label": "Runs", "default": 1, "max": 100},
            {"name": "cores", "kind": "number", "label": "Cores", "default": 1, "min": 0.001, "max": 64},
        ],
        "work": {
            "image": {"from": "image"},
            "command": ["/bin/sh", "-c", {"from": "script"}],
            "cpu": {"from": "cores"},
            "memory": "64 MiB",
            "runs": {"from": "runs"},
            "time_limit": "1 h",
        },
    }
    template = save_template(actor=None, template=Template(slug=SLUG, title="Lines of the bench", position=900))
    draft = new_draft(actor=None, template=template)
    publish(actor=None, version=save_draft(actor=None, version=draft, definition=definition))
