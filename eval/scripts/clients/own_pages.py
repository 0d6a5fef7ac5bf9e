"""Which requests a server on this machine answers: those of its own pages, and of programs.

A browser sends any page's requests to any address. ``Origin`` names the page that asked. ``Host``
shows a foreign name that points here (DNS rebinding)."""

from __future__ import annotations

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def own_hosts(host: str, port: int) -> frozenset[str]:
    """The accepted values of ``Host`` for a server on ``host:port``, in lower case."""
    names = {bracketed(name) for name in (host.lower(), *LOOPBACK)}
    hosts = {f"{name}:{port}" for name in names}
    return frozenset(hosts | names if port == 80 else hosts)  # browsers leave 80 out


def is_own(hosts: frozenset[str], host: str | None, origin: str | None) -> bool:
    """Whether a request with these two headers is answered; None where it has no such header.

    A program need not send any. A browser always sends ``Host``.
    """
    return (host is None or host.lower() in hosts) and (
        origin is None or origin in {f"http://{own}" for own in hosts}
    )


def bracketed(name: str) -> str:
    """An address in the form of a URL, with IPv6 in brackets."""
    return f"[{name}]" if ":" in name else name
