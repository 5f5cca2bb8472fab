"""Tests against a real Kubernetes with Kueue: real pods, real logs, real admission."""
