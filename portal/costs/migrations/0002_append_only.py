from django.db import migrations

from portal.core.immutable import refuse_changes


class Migration(migrations.Migration):
    dependencies = [("costs", "0001_initial")]

    operations = [refuse_changes("costs_chargeline", name="charges_append_only")]
