"""A real Kubernetes and Kueue on one machine, compiled from Go modules, without Docker and without a registry.

`build` compiles what is missing, `bed` starts and stops it, `cluster` is what a test holds in its hands. Nothing in
here imports the portal: the testbed must be able to judge it.
"""
