from django.db import migrations

from portal.core.immutable import refuse_changes


class Migration(migrations.Migration):
    dependencies = [("funds", "0001_initial")]

    operations = [
        # Who entered it may be cleared when an account goes; what it says may not change.
        refuse_changes(
            "funds_price",
            name="prices_stay",
            when=(
                "OLD.resource <> NEW.resource OR OLD.gpu_model <> NEW.gpu_model OR OLD.amount <> NEW.amount"
                " OR OLD.currency <> NEW.currency OR OLD.valid_from <> NEW.valid_from"
            ),
            delete=False,
        ),
        refuse_changes("funds_price", name="prices_are_kept", update=False),
    ]
