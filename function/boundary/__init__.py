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
from function.boundary.request import Request, Resolution
from function.boundary.response import Condition, Desired, Requirement, Response, Result
from function.boundary.reuse import Cost, Costs, Extent, NoReuse, Part, Reuse

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
