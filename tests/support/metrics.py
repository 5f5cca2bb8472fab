"""What the process of a test has counted so far. Other tests count too, so only differences say anything."""

from prometheus_client.parser import text_string_to_metric_families

from portal.core.metrics import REGISTRY


def counted(name: str, **labels: str) -> float:
    """The value of a series of this process; 0 before it is there."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


def scraped(text: str) -> dict[str, float]:
    """An answer to a scrape: `name` or `name{label="value",…}` and its value. Fails where it is malformed."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found
