"""Read a request into the snapshot one pass works on."""
