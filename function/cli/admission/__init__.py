"""Admission: what the API server would say about an object, from the XRDs that this project ships.

`kinds` finds the schema of an object by its apiVersion and kind, `structural` holds the object, its metadata
and its x-kubernetes-validations against it, and a `finding` is one field with what is wrong. The XRDs are
read as data (`apis/` and `input/` are links to the folders they ship from), so a field that is added there
is known here.
"""
