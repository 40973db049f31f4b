"""The live page: a fleet that a browser follows, from a control plane or from files, and never writes to.

`view` turns one look at the fleet into entries by key, compares two looks, and says what happened between
them. `server` looks again and again, and hands out the page, the entries of the last look and the changes
since, on loopback. The assets beside them draw what can be seen of it.

The page gets names, counts, reasons and messages. Of a template it gets nothing: what stands in `env`,
`args` and the like is not read here, so it cannot be shown.
"""
