"""The addresses of remotes: which are accepted, and how one may be shown."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from gitmem.errors import InvalidRequestError

_SCHEMES: Final = ("https", "http", "ssh", "file")
_SCP: Final = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^/:@]+):(?P<path>(?!:).*)", re.DOTALL)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HELPER: Final = re.compile(r"[A-Za-z0-9]+::")
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_TOKEN: Final = re.compile(r"gh[a-z]_|github_pat_|glpat-|x-token-auth|[0-9a-f]{40}\Z")
_LOOPBACK: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")


class Address(NamedTuple):
    """Where a remote lies: `host` is None for a folder of this machine."""

    url: str
    scheme: str
    host: str | None
    user: str | None

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    @property
    def folder(self) -> str:
        """The folder of a local remote."""
        return urlsplit(self.url).path if self.url.startswith("file://") else self.url


def address(url: str, *, insecure: bool = False) -> Address:
    """Read the URL of a remote: https, ssh (also `user@host:path`), file, or an absolute path.

    Plain http is accepted on loopback only, unless `insecure`. Raises InvalidRequestError, which
    never shows a password: for options in disguise, for programs that git would run (`ext::`),
    for other schemes, and for a URL that carries a secret.
    """
    if not url or _UNSEEN.search(url):
        raise InvalidRequestError("The URL of a remote must be text without control characters.")
    if url.startswith("-") or _HELPER.match(url):
        raise InvalidRequestError("A remote's URL must be https, ssh, file, or an absolute path.")
    if url.startswith("/"):
        return Address(url, "file", None, None)
    if _SCHEME.match(url):
        return _with_scheme(url, insecure)
    found = _SCP.fullmatch(url)
    if found:
        _check_place(found["host"], found["user"])
        return Address(url, "ssh", found["host"], found["user"])
    raise InvalidRequestError("A remote's URL must be https, ssh, file, or an absolute path.")


def is_relative(url: str) -> bool:
    """Whether a URL is a path that counts from somewhere."""
    return url in {".", ".."} or url.startswith(("./", "../"))


def _with_scheme(url: str, insecure: bool) -> Address:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidRequestError("The URL of the remote cannot be read. Check its host and port.") from None
    if parts.scheme not in _SCHEMES:
        raise InvalidRequestError(f"A remote's URL must be https, ssh or file, not {parts.scheme[:20]}.")
    if parts.scheme == "file":
        if host or not parts.path:
            raise InvalidRequestError("A file URL names a folder of this machine: file:///the/path.")
        return Address(url, "file", None, None)
    _check_place(host, parts.username)
    if parts.password is not None:
        raise InvalidRequestError(
            "The URL carries a password, which would lie in Git's configuration for everybody to read. "
            "Leave it out; use a credential helper, or GITMEM_REMOTE_PASSWORD in the environment."
        )
    if parts.scheme == "http" and not insecure and not _LOOPBACK.fullmatch(host or ""):
        raise InvalidRequestError("Plain http sends everything readable. Use https, or say --insecure.")
    return Address(url, parts.scheme, host, parts.username)


def _check_place(host: str | None, user: str | None) -> None:
    if not host or host.startswith("-") or (user or "").startswith("-"):
        raise InvalidRequestError("The URL of the remote names no host.")
    if user and _TOKEN.match(user):
        raise InvalidRequestError(
            "The URL carries a token, which would lie in Git's configuration for everybody to read. "
            "Leave it out; use a credential helper, or GITMEM_REMOTE_PASSWORD in the environment."
        )


def shown(url: str) -> str:
    """A URL as it may be printed: without whatever stands before the host."""
    if not _SCHEME.match(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("://")[0] + "://…"
    place = parts.netloc.rpartition("@")[2]
    return SplitResult(parts.scheme, place, parts.path, "", "").geturl()
