class KubeBackend:
    def __init__(self, *, cluster: str, kubeconfig: str, instance: str) -> None:
        self.cluster = cluster
