"""Read protobuf bytes without decoding them, where that pays. Each file says what it buys.

The parser of the protobuf library is written in C and still loses here: it copies every field into objects
that a decision never looks at. Each reader in this folder understands the one way in which everybody writes
its part of a request. It hands anything else to the parser or to a lenient reader, by raising `Unusual`.
So none of them is a second definition of what a message means; deleting one changes nothing but the time.

A repeated field is copied (`values[:]`) before it is walked: walked as it is, it ends with an IndexError,
which costs as much as one more item.
"""


class Unusual(Exception):
    """Bytes are not written the plain way, so the parser or a lenient reader has to look at them."""
