"""Which Host and Origin may come in: a web page of somebody else's must not reach this server.

A page can make a browser call any address, and DNS rebinding lets its own name stand for this
machine; what it cannot do is forge Host and Origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from gitmem.errors import ForbiddenError

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Guard:
    """`names` are Host names beside the loopback ones. Where `local` is false and no name is given,
    any Host may come: who reaches such a server needs a key."""

    local: bool
    names: frozenset[str] = frozenset()

    def check(self, hosts: Sequence[str], origins: Sequence[str]) -> None:
        """Raises ForbiddenError for a foreign Host or Origin."""
        host = hosts[0] if len(hosts) == 1 else ""
        if (self.local or self.names) and not _is_served(host, self.names):
            raise ForbiddenError(
                f"The Host {ascii(host)[:80]} is not served here. Start gitmem serve with --allow-host."
            )
        for origin in origins:
            if not self._is_own(origin, host):
                raise ForbiddenError("The request comes from a page of another site, which may not use this server.")

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            parts, served = urlsplit(origin), urlsplit(f"//{host}")
            default = _DEFAULT_PORTS.get(parts.scheme)
            port, own_port = parts.port or default, served.port or default
        except ValueError:
            return False
        # A proxy in front may rewrite Host; the page's own address is then a name that was allowed.
        same = parts.hostname == served.hostname and port == own_port
        return default is not None and (same or (parts.hostname in self.names and port in {default, own_port}))


@lru_cache(maxsize=256)
def _is_served(host: str, names: frozenset[str]) -> bool:
    name = _name(host)
    return is_loopback_name(name) or name in names


def is_loopback_name(name: str) -> bool:
    """Whether a host name always means this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()
