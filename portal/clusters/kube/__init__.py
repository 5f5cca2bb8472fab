"""Kubernetes with Kueue: the only package that imports the Kubernetes client."""
