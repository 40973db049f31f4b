"""Admission: what the API server would say about an object, from the XRDs that this project ships.

`kinds` finds the schema of an object by its apiVersion and kind, `structural` holds the object against it,
`metadata` looks at what every object has, `rules` evaluates x-kubernetes-validations, and `positions` finds
the line of a field. The XRDs are read as data (`apis/` and `input/` are links to the folders they ship
from), so a field that is added there is known here.
"""
