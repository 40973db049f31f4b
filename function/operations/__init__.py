"""Steps of Crossplane Operations: what the function does that composes nothing."""
