"""Read protobuf bytes without decoding them. Each file says what it buys."""
