"""Record calls: which fields may be written down, the cut of a call to these fields, and its file."""
