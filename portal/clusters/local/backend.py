from pathlib import Path


class LocalBackend:
    def __init__(self, *, root: Path, cluster: str) -> None:
        self.cluster = cluster
