"""The commands: one verb per file. Each reads files, asks, prints, and says by its exit code how it went."""
