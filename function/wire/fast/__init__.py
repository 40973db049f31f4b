"""Read protobuf bytes without decoding them. Each file says what it buys."""


class Unusual(Exception):
    """Bytes are not written the plain way, so the parser or a lenient reader has to look at them."""
