"""The door for collectors on the nodes: logs as OTLP over HTTP."""
