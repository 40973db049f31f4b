"""URLs, with the rules of Go's parser: an absolute URI or an absolute path."""

from __future__ import annotations

import re

from function.cel import cost
from function.cel.declarations import function, method
from function.cel.errors import EvaluationError
from function.cel.values import Map, Value

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST = re.compile(r"[^\s<>\"{}|\\^`\[\]]*")
_BRACKETED = re.compile(r"\[[0-9a-fA-F:.%]+[^\]]*\]")
_PORT = re.compile(r"(:[0-9]*)?")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_ESCAPED = re.compile(rb"%([0-9a-fA-F]{2})")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@!'()*%[]")


class Url:
    """A URL in its parts."""

    TYPE_NAME = "kubernetes.URL"
    __slots__ = ("fragment", "host", "path", "query", "scheme", "user")

    def __init__(self, text: str) -> None:
        before, _, self.fragment = text.partition("#")
        self.scheme, rest = _scheme(before)
        rest, _, self.query = rest.partition("?")
        self.user, self.host, self.path = "", "", rest
        if rest.startswith("//") and not (not self.scheme and rest.startswith("///")):
            authority, slash, path = rest[2:].partition("/")
            user, at, host = authority.rpartition("@")
            self.user, self.host, self.path = (user if at else ""), host, slash + path

    def same(self, other: Value) -> bool:
        """Whether `other` is written alike."""
        return type(other) is Url and self.parts() == other.parts()

    def parts(self) -> tuple[str, ...]:
        """Return all that is written."""
        return (self.scheme, self.user, self.host, self.path, self.query, self.fragment)

    @property
    def hostname(self) -> str:
        """Return the host without its port and brackets."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        """Return the port as it is written, or nothing."""
        behind = self.host.partition("]")[2] if self.host.startswith("[") else self.host
        return behind.rpartition(":")[2] if ":" in behind else ""

    @property
    def escaped_path(self) -> str:
        """Return the path with what needs it escaped."""
        return "".join(
            c if c in _PLAIN else "".join(f"%{byte:02X}" for byte in c.encode()) for c in self.path
        )


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.fullmatch(text)
    return (match[1].lower(), match[2]) if match else ("", text)


def url(text: str) -> Url:
    """Return the URL that a text is. Raises EvaluationError."""
    made = Url(text)
    if _CONTROL.search(text) or not _is_request(made, text) or not _is_host(made):
        raise EvaluationError(f"URL parse error during conversion from string: {text[:80]!r}")
    return made


def _is_request(made: Url, text: str) -> bool:
    """Whether it is absolute, and its escapes are well formed."""
    return bool(made.scheme or text.startswith("/")) and not _BAD_ESCAPE.search(made.path + made.fragment)


def _is_host(made: Url) -> bool:
    bracketed = _BRACKETED.match(made.host)
    match = bracketed or re.match(r"[^:]*", made.host)
    rest = made.host[match.end() :] if match else made.host
    name_fits = bracketed or _HOST.fullmatch(made.host[: match.end()] if match else "")
    return bool(
        name_fits and _PORT.fullmatch(rest) and _USER.fullmatch(made.user)
    ) and not _BAD_ESCAPE.search(made.host)


def is_url(text: str) -> bool:
    """Whether a text is a URL."""
    try:
        url(text)
    except EvaluationError:
        return False
    return True


def query(made: Url) -> Map:
    """Return the parameters of the query, each with its values; Go leaves out badly written ones."""
    found: dict[str, list[str]] = {}
    for part in made.query.split("&"):
        name, _, value = part.partition("=")
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            found.setdefault(_unescaped(name), []).append(_unescaped(value))
    return Map.of(found)


def _unescaped(text: str) -> str:
    raw = text.replace("+", " ").encode(errors="surrogatepass")
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), raw).decode(errors="replace")


DECLARATIONS = (
    function("url", "string -> URL", url, cost=cost.walk),
    function("isURL", "string -> bool", is_url, cost=cost.walk),
    method("getScheme", "URL -> string", lambda made: made.scheme),
    method("getHost", "URL -> string", lambda made: made.host),
    method("getHostname", "URL -> string", lambda made: made.hostname),
    method("getPort", "URL -> string", lambda made: made.port),
    method("getEscapedPath", "URL -> string", lambda made: made.escaped_path),
    method("getQuery", "URL -> map<string, list<string>>", query),
)
