from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("logs", "0004_collected"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="parcel",
            options={"ordering": ["stream", "first_ns", "pk"]},
        ),
        migrations.AddField(
            model_name="intake",
            name="grown_ns",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="parcel",
            name="came_ns",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="parcel",
            name="first_ns",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="parcel",
            name="read_ns",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="parcel",
            name="sender",
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name="intake",
            name="sender",
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name="intake",
            name="begun_ns",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="intake",
            name="idle_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RemoveField(
            model_name="parcel",
            name="received_at",
        ),
    ]
