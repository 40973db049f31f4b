"""Record calls: which fields may be written down (`allowed`, `request`), and the file (`file`)."""
