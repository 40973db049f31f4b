"""The ModelReplica handler: a placed replica becomes claims, workloads and routes on its cluster."""
