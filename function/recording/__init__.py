"""What of a call may be written down (`allowed`, `request`), and how it is (`file`)."""
