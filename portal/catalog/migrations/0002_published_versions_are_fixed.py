"""The database itself keeps published versions as they are.

The triggers hang on the table: a later migration that makes SQLite rebuild it must add them again.
"""

from django.db import migrations

from portal.core.immutable import refuse_changes

_TABLE = "catalog_templateversion"
# Comparisons that mean the same on SQLite and PostgreSQL; published_at may be null, the others may not.
_OTHER_CONTENT = (
    "OLD.definition <> NEW.definition OR OLD.number <> NEW.number OR OLD.template_id <> NEW.template_id"
    " OR (OLD.published_at IS NULL) <> (NEW.published_at IS NULL) OR OLD.published_at <> NEW.published_at"
)
_BACKWARDS = (
    "NEW.state = 'draft' OR (OLD.state = 'deprecated' AND NEW.state = 'published')"
    " OR (OLD.state = 'retired' AND NEW.state <> 'retired')"
)


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]

    operations = [
        refuse_changes(
            _TABLE,
            name="catalog_version_fixed",
            when=f"OLD.state <> 'draft' AND ({_OTHER_CONTENT} OR {_BACKWARDS})",
            delete=False,
        ),
        refuse_changes(_TABLE, name="catalog_version_stays", when="OLD.state <> 'draft'", update=False),
    ]
