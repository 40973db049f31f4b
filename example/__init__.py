"""A fleet and deployments to try the scheduler on."""
