"""URLs, by the rules of Go's `net/url`: an absolute URI or an absolute path.

The functions are the API server's `library/urls.go`; what parses, and which words say what is wrong, is
`url.ParseRequestURI`. Python's `urllib` cannot stand in: it accepts nearly every text, and keeps
another notion of what is escaped. Order matters throughout, because the first thing that is wrong is the one
that is reported.

Go works on bytes, and so does this: inside, a text has one character for each byte of its UTF-8.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from function.cel.library import charges as cost
from function.cel.library.declarations import function, method
from function.cel.library.strings import quoted
from function.cel.values import EvaluationError, Map

_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
PATH = frozenset(_ALPHANUMERIC + "-_.~$&+,/:;=@")
FRAGMENT = frozenset(_ALPHANUMERIC + "-_.~$&+,/:;=?@!()*")
USER = frozenset(_ALPHANUMERIC + "-_.~$&+,;=")
HOST = frozenset(_ALPHANUMERIC + "-_.~!$&'()*+,;=:[]<>\"")
"""The bytes that stand for themselves in each part; any other is escaped."""
KEPT = frozenset("!$&'()*+,;=:@[]%")
"""Bytes that are not escaped by default and that Go leaves alone where they are written as they are."""
_USERINFO = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT = re.compile(r"(:[0-9]*)?")
_ASCII = 0x80
_BEYOND_ASCII = frozenset(map(chr, range(_ASCII, 0x100)))
"""The bytes of a host that may be escaped."""
_ZONE = "%25"
"""Begins the zone of an IPv6 address: a percent sign, itself escaped."""
_ESCAPED = 3


def _bytes(text: str) -> str:
    """Return the UTF-8 of a text, one character for each byte."""
    return text.encode(errors="surrogatepass").decode("latin-1")


def _text(content: str) -> str:
    """Return the text of such bytes; what is no UTF-8 stays as Python keeps it."""
    return content.encode("latin-1").decode(errors="surrogateescape")


class Url:
    """A URL in its parts, as Go keeps them: unescaped, and the path and fragment as they were written too."""

    TYPE_NAME = "kubernetes.URL"
    __slots__ = (
        "forced_query",
        "fragment",
        "host",
        "opaque",
        "path",
        "query",
        "raw_fragment",
        "raw_path",
        "scheme",
        "user",
        "without_host",
    )
    __hash__ = None  # type: ignore[assignment] # The parser changes it.

    def __init__(self) -> None:
        """Start empty: the parser fills in what a URL has, in Go's order."""
        self.scheme = self.opaque = self.host = self.path = self.raw_path = ""
        self.query = self.fragment = self.raw_fragment = ""
        self.user: tuple[str, ...] | None = None
        self.forced_query = self.without_host = False

    def __eq__(self, other: object) -> bool:
        """Tell whether both are written alike. As the key of a map it is itself (`values.normal_key`)."""
        return isinstance(other, Url) and str(self) == str(other)

    @property
    def hostname(self) -> str:
        """Return the host without its port and brackets."""
        name, _ = self._split_host()
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    @property
    def port(self) -> str:
        """Return the port as it is written, or nothing."""
        return self._split_host()[1]

    def _split_host(self) -> tuple[str, str]:
        """Split the port off, where there is one: the last colon with nothing but digits behind it."""
        colon = self.host.rfind(":")
        if colon >= 0 and _PORT.fullmatch(self.host[colon:]):
            return self.host[:colon], self.host[colon + 1 :]
        return self.host, ""

    @property
    def escaped_path(self) -> str:
        """Return the path as it was written if that is well escaped, else with what needs it escaped."""
        if self.raw_path and all(byte in PATH or byte in KEPT for byte in self.raw_path):
            return self.raw_path
        return self.path if self.path == "*" else _escaped(self.path, PATH)

    @property
    def escaped_fragment(self) -> str:
        """Return the fragment as it was written if that is well escaped, else with what needs it escaped."""
        if self.raw_fragment and all(byte in FRAGMENT or byte in KEPT for byte in self.raw_fragment):
            return self.raw_fragment
        return _escaped(self.fragment, FRAGMENT)

    def __str__(self) -> str:
        """Write the URL as Go's `URL.String` does: equality and `string()` are by this text."""
        made = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            made += self.opaque
        else:
            made += self._authority() + self._rooted_path(is_first=not made)
        if self.forced_query or self.query:
            made += f"?{self.query}"
        return made + (f"#{self.escaped_fragment}" if self.fragment else "")

    def _authority(self) -> str:
        """Return user and host with the slashes before them, as Go's `URL.String` puts them together."""
        if not (self.scheme or self.host or self.user is not None):
            return ""
        if self.without_host and not self.host and self.user is None:
            return ""
        made = "//" if self.host or self.path or self.user is not None else ""
        if self.user is not None:
            made += ":".join(_escaped(part, USER) for part in self.user) + "@"
        return made + _escaped(self.host, HOST)

    def _rooted_path(self, *, is_first: bool) -> str:
        """Return the path, so that it cannot be read as a host or a scheme where none is written."""
        path = self.escaped_path
        if path and path[0] != "/" and self.host:
            return f"/{path}"
        return f"./{path}" if is_first and ":" in path.partition("/")[0] else path


def _escaped(content: str, plain: frozenset[str]) -> str:
    """Return a part of a URL with every byte escaped that does not stand for itself there."""
    return "".join(byte if byte in plain else f"%{ord(byte):02X}" for byte in content)


def _unescaped(content: str) -> str:
    """Return what escapes stand for. Raises EvaluationError for one that is badly written.

    The message shows three characters from the percent sign on, or what is left of them.
    """
    bad = _BAD_ESCAPE.search(content)
    if bad is not None:
        raise EvaluationError(
            f"invalid URL escape {quoted(_text(content[bad.start() : bad.start() + _ESCAPED]))}"
        )
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), content)


def parsed(content: str, *, absolute: bool) -> Url:
    """Return the parts of a URL without its fragment. Raises EvaluationError with Go's reason.

    `absolute` is how a request is read (`ParseRequestURI`): a relative path is refused. The order is Go's
    `parse`: control characters, scheme, query, a path without slash, authority, path.
    """
    if _CONTROL.search(content):
        raise EvaluationError("net/url: invalid control character in URL")
    if not content and absolute:
        raise EvaluationError("empty url")
    made = Url()
    if content == "*":
        made.path = "*"
        return made
    rest = _without_scheme_and_query(made, content)
    if not rest.startswith("/") and made.scheme:
        made.opaque = rest
        return made
    _refuse_relative(rest, absolute=absolute)
    if rest.startswith("//") and (made.scheme or (not absolute and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        made.user, made.host = _authority_of(made.scheme, authority)
    elif made.scheme:
        made.without_host = True
    made.path = _unescaped(rest)
    made.raw_path = "" if _escaped(made.path, PATH) == rest else rest
    return made


def _without_scheme_and_query(made: Url, content: str) -> str:
    """Set the scheme and the query, and return what stands between them.

    A question mark at the very end, and nowhere else, is kept apart from an empty query: Go writes it back.
    """
    if content.startswith(":"):
        raise EvaluationError("missing protocol scheme")
    scheme = _SCHEME.fullmatch(content)
    made.scheme, rest = (scheme[1].lower(), scheme[2]) if scheme else ("", content)
    if rest.endswith("?") and rest.count("?") == 1:
        made.forced_query = True
        return rest[:-1]
    rest, _, made.query = rest.partition("?")
    return rest


def _refuse_relative(rest: str, *, absolute: bool) -> None:
    """Refuse a path that begins without a slash; a colon in its first part would read as a scheme."""
    if rest.startswith("/"):
        return
    if absolute:
        raise EvaluationError("invalid URI for request")
    if ":" in rest.partition("/")[0]:
        raise EvaluationError("first path segment in URL cannot contain colon")


def _authority_of(scheme: str, authority: str) -> tuple[tuple[str, ...] | None, str]:
    """Return the user, perhaps with a password, and the host.

    The host is checked first, so of two faults its is reported. The last `@` ends the user.
    """
    userinfo, at, name = authority.rpartition("@")
    host = _host(scheme, name)
    if not at:
        return None, host
    if not _USERINFO.fullmatch(userinfo):
        raise EvaluationError("net/url: invalid userinfo")
    return tuple(_unescaped(part) for part in userinfo.split(":", 1)), host


def _host(scheme: str, host: str) -> str:
    """Return the host, unescaped, with its port.

    Only of http and https may no colon stand before the port.
    """
    bracket = host.rfind("[")
    if bracket > 0:
        raise EvaluationError("invalid IP-literal")
    if bracket == 0:
        return _literal_host(host)
    colon = host.find(":")
    if colon >= 0 and scheme not in ("http", "https"):
        colon = host.rfind(":")
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        raise EvaluationError(f"invalid port {quoted(_text(host[colon:]))} after host")
    return _unescaped_where(host, _BEYOND_ASCII)


def _literal_host(host: str) -> str:
    """Return a host in brackets, which must be an IPv6 address, perhaps with a zone.

    The zone begins at an escaped percent sign and is unescaped by rules of its own (RFC 6874).
    """
    closing = host.rfind("]")
    if closing < 0:
        raise EvaluationError("missing ']' in host")
    port = host[closing + 1 :]
    if not _PORT.fullmatch(port):
        raise EvaluationError(f"invalid port {quoted(_text(port))} after host")
    name, zone, rest = host[1:closing].partition(_ZONE)
    literal = _unescaped_where(name, _BEYOND_ASCII)
    if zone:  # A space may be escaped there, and what a host may hold.
        literal += _unescaped_where(zone + rest, HOST | {" "})
    try:
        IPv6Address(_text(literal))
    except ValueError:
        problem = f"invalid host: ParseAddr({quoted(_text(literal))}): unable to parse IP"
        raise EvaluationError(problem) from None
    return f"[{literal}]{port}"


def _unescaped_where(content: str, may_be_escaped: frozenset[str]) -> str:
    """Unescape a part of a host.

    Anything escaped that need not be is refused, then what may not stand there.
    """
    for match in _ESCAPE.finditer(content):
        if match[0] != _ZONE and chr(int(match[1], 16)) not in may_be_escaped:
            raise EvaluationError(f"invalid URL escape {quoted(match[0])}")
    unescaped = _unescaped(content)
    for byte in _ESCAPE.sub("", content):
        if ord(byte) < _ASCII and byte not in HOST:
            raise EvaluationError(f"invalid character {quoted(byte)} in host name")
    return unescaped


def url_problem(text: str) -> str | None:
    """Return what is wrong with a URL, in Go's words, or None."""
    try:
        parsed(_bytes(text), absolute=True)
    except EvaluationError as error:
        return f"parse {quoted(text)}: {error}"
    return None


def url(text: str) -> Url:
    """Return the URL that a text is. Raises EvaluationError.

    It is parsed twice, as the API server does: whole, as a request, which has no fragment; and again without
    what follows a hash, for the fragment. Both must succeed.
    """
    content = _bytes(text)
    try:
        parsed(content, absolute=True)
        before, _, fragment = content.partition("#")
        made = parsed(before, absolute=False)
        made.fragment = _unescaped(fragment)
        made.raw_fragment = "" if _escaped(made.fragment, FRAGMENT) == fragment else fragment
    except EvaluationError as error:
        problem = f"parse {quoted(text[:80])}: {error}"
        raise EvaluationError(f"URL parse error during conversion from string: {problem}") from None
    return made


def query(made: Url) -> Map:
    """Return the parameters of the query, each with its values; Go leaves out badly written ones.

    A semicolon separates nothing since Go 1.17: a part that has one is badly written.
    """
    parameters: dict[str, list[str]] = {}
    for part in made.query.split("&"):
        name, _, value = part.replace("+", " ").partition("=")
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            parameters.setdefault(_text(_unescaped(name)), []).append(_text(_unescaped(value)))
    return Map({name: (name, values) for name, values in parameters.items()})


DECLARATIONS = (
    function("url", "string -> URL", url, cost=cost.walk),
    function("isURL", "string -> bool", lambda text: url_problem(text) is None, cost=cost.walk),
    method("getScheme", "URL -> string", lambda made: made.scheme),
    method("getHost", "URL -> string", lambda made: _text(made.host)),
    method("getHostname", "URL -> string", lambda made: _text(made.hostname)),
    method("getPort", "URL -> string", lambda made: made.port),
    method("getEscapedPath", "URL -> string", lambda made: _text(made.escaped_path)),
    method("getQuery", "URL -> map<string, list<string>>", query),
)
