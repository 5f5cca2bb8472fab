from django.db import migrations

from portal.core.immutable import refuse_changes


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [refuse_changes("audit_entry", name="audit_append_only")]
