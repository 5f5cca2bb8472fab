"""ClusterQueues and LocalQueues, their numbers, and their synchronisation with Kueue."""
