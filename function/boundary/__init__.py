"""The values that cross the doors: one request in, one response out, free of any encoding.

The doors (`wire`, `cli`) turn protobuf or YAML into a `Request` and a `Response` back into protobuf or
text. Nothing here, and nothing between the doors, knows either format. Imports nobody above.
"""

from function.boundary.document import (
    PACKED,
    Document,
    DocumentIdentity,
    JsonObject,
    Packed,
    Plain,
    PlainDocument,
    Shape,
    Unreadable,
    text_at,
)
from function.boundary.messages import (
    Condition,
    Cost,
    Costs,
    Desired,
    Extent,
    NoReuse,
    Part,
    Request,
    Requirement,
    Resolution,
    Response,
    Result,
    Reuse,
)

__all__ = [
    "PACKED",
    "Condition",
    "Cost",
    "Costs",
    "Desired",
    "Document",
    "DocumentIdentity",
    "Extent",
    "JsonObject",
    "NoReuse",
    "Packed",
    "Part",
    "Plain",
    "PlainDocument",
    "Request",
    "Requirement",
    "Resolution",
    "Response",
    "Result",
    "Reuse",
    "Shape",
    "Unreadable",
    "text_at",
]
