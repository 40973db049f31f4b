"""Handle steps of Crossplane Operations, which compose nothing."""
