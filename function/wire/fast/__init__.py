"""Read protobuf bytes without decoding them. Each file says what it buys.

A repeated field is copied (`values[:]`) before it is walked: walked as it is, it ends with an IndexError,
which costs as much as one more item.
"""


class Unusual(Exception):
    """Bytes are not written the plain way, so the parser or a lenient reader has to look at them."""
