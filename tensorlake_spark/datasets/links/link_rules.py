"""What a reader allows links to do: which hosts, addresses, folders and buckets, how much and how long."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tensorlake_spark.errors import ForbiddenLinkError, InvalidOptionError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(
    r"\*|(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*"
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, kw_only=True)
class LinkRules:
    """Which links a reader follows. The rules belong to the reader, and are never stored in the dataset.

    Attributes
    ----------
    allow_http : sequence of str
        Hosts to which links may lead by http and https: exact names, ``*.example.org`` for all names with this end,
        ``*`` for all names. Without any host, no such link is followed. A name means the ports 80 and 443;
        ``example.org:8080`` means this port only. An address of this machine or of a private network must be in the
        list itself, as ``10.0.0.7``, ``127.0.0.1:8000`` or ``10.0.0.0/8``, even if the name of its host is.
    allow_files : bool or sequence of str
        Whether links may lead to files of this machine, or the folders of which they may.
    allow_s3 : bool or sequence of str
        Whether links may lead to objects on S3, or the buckets of which they may.
    storage_options : mapping of str to str
        For S3, with the names that a lake takes. Without keys, those of the environment are used. Never printed.
    tokens : mapping of str to str
        For http: the name of the environment variable that has the bearer token of a host. It is sent to that host
        only, and only by https; by http only to an address that `allow_http` names.
    max_bytes : int
        A larger target is refused before it is read.
    timeout : float
        Seconds in which a target of http has to be there as a whole.
    stall_timeout : float
        Seconds for a connection, and between two pieces of an answer.
    redirects : int
        How many redirects of a server of http are followed. All rules are checked for each of them.
    retries : int
        How often a request of http is repeated after an error that may pass.
    verify : bool
        Whether size and ETag are compared with those that are stored.

    Raises
    ------
    InvalidOptionError
        If the value of an attribute is not valid.

    Examples
    --------
    >>> LinkRules(allow_http=["images.example.org"]).check_host("https://images.example.org/a.jpg")
    >>> LinkRules().check_host("https://images.example.org/a.jpg")
    Traceback (most recent call last):
    tensorlake_spark.errors.ForbiddenLinkError: http links to images.example.org:443 are not allowed; name the host in \
allow_http=['images.example.org'] if you trust it
    """

    allow_http: Sequence[str] = ()
    allow_files: bool | Sequence[str] = True
    allow_s3: bool | Sequence[str] = True
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    tokens: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 1 << 30
    timeout: float = 300
    stall_timeout: float = 20
    redirects: int = 5
    retries: int = 2
    verify: bool = True
    _hosts: tuple[tuple[str, int | None], ...] = field(init=False, repr=False, compare=False)
    _networks: tuple[tuple[Network, int | None], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("allow_http", "allow_files", "allow_s3"):
            _check_names(name, getattr(self, name), flag=name != "allow_http")
        for name, least, most in (
            ("max_bytes", 1, 1 << 40), ("timeout", 1e-3, 86400), ("stall_timeout", 1e-3, 86400),
            ("redirects", 0, 20), ("retries", 0, 20),
        ):  # fmt: skip
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not least <= value <= most
            ):
                raise InvalidOptionError(f"{name}={value!r} is not from {least:g} to {most:g}")
        hosts: list[tuple[str, int | None]] = []
        networks: list[tuple[Network, int | None]] = []
        for entry in self.allow_http:
            name, port = _parted(entry)
            if network := _network(name):
                networks.append((network, port))
            elif _HOST.fullmatch(name):
                hosts.append((name, port))
            else:
                raise InvalidOptionError(
                    f"allow_http names {entry!r:.100}, which is not a host; write example.org, *.example.org, "
                    "example.org:8080 or 10.0.0.0/8"
                )
        object.__setattr__(self, "_hosts", tuple(hosts))
        object.__setattr__(self, "_networks", tuple(networks))

    def check_host(self, url: str) -> None:
        """Raise ForbiddenLinkError if the host of a URL, or its port, is not allowed."""
        host, port = host_of(url)
        address = _address(host)
        if any(_is_named(host, port, name, given) for name, given in self._hosts):
            return
        if address is not None and self._names(address, port):
            return
        short = host if port in _PORTS.values() else f"{host}:{port}"
        raise ForbiddenLinkError(
            f"http links to {host}:{port} are not allowed; name the host in allow_http={[short]} if you trust it"
        )

    def allows_address(self, text: str, port: int) -> bool:
        """Whether a connection may be made to an address: a public one, or one that `allow_http` names itself.

        Examples
        --------
        >>> rules = LinkRules(allow_http=["*", "10.0.0.0/8"])
        >>> [rules.allows_address(a, 80) for a in ("8.8.8.8", "10.1.2.3", "127.0.0.1", "::ffff:127.0.0.1")]
        [True, True, False, False]
        """
        address = _address(text.partition("%")[0])
        if address is None:
            return False
        return self._names(address, port) or all(map(_is_public, _meant(address)))

    def _names(self, address: Address, port: int) -> bool:
        return any(
            one in network and (port == given or (given is None and port in _PORTS.values()))
            for one in _meant(address)[:1]
            for network, given in self._networks
            if network.version == one.version
        )

    def names_address(self, text: str, port: int) -> bool:
        """Whether `allow_http` names an address by itself."""
        address = _address(text.partition("%")[0])
        return address is not None and self._names(address, port)

    def check_folder(self, path: str) -> None:
        """Raise ForbiddenLinkError if a file, by its real path, is in no folder that is allowed."""
        if self.allow_files is True:
            return
        folders = (
            [] if self.allow_files is False else [os.path.realpath(f) for f in self.allow_files]
        )
        if not any(os.path.commonpath([folder, path]) == folder for folder in folders):
            raise ForbiddenLinkError(
                f"links to the file {path!r:.300} are not allowed; allow_files is {self.allow_files!r:.300}"
            )

    def check_bucket(self, bucket: str) -> None:
        """Raise ForbiddenLinkError if a bucket is not allowed."""
        if self.allow_s3 is True or (self.allow_s3 is not False and bucket in self.allow_s3):
            return
        raise ForbiddenLinkError(
            f"links to the bucket {bucket!r} are not allowed; allow_s3 is {self.allow_s3!r:.300}"
        )

    def token_of(self, url: str, address: str) -> str | None:
        """Return the bearer token for a host, None where there is none, or where all could read it on its way.

        Raises
        ------
        InvalidOptionError
            If the environment has no variable of the name that `tokens` gives.
        """
        host, port = host_of(url)
        name = self.tokens.get(host) or self.tokens.get(f"{host}:{port}")
        if name is None or (
            urlsplit(url).scheme.lower() != "https" and not self.names_address(address, port)
        ):
            return None
        token = os.environ.get(name, "")
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise InvalidOptionError(
                f"the environment variable {name!r:.100}, which `tokens` names for {host}, is not set, or is not a "
                "token"
            )
        return token


def rules_of(
    links: Any, allow_http: Sequence[str], storage_options: Mapping[str, str]
) -> LinkRules:
    """Return the rules by which a dataset follows links, from what opens it.

    Raises
    ------
    InvalidOptionError
        If `links` is no `LinkRules`, or `allow_http` is given too.

    Examples
    --------
    >>> rules_of(None, ["example.org"], {}).allow_http
    ['example.org']
    """
    if links is None:
        return LinkRules(allow_http=allow_http, storage_options=storage_options)
    if not isinstance(links, LinkRules):
        raise InvalidOptionError(
            f"links={links!r:.80} is not a LinkRules; give one, such as tl.LinkRules(allow_s3=['bucket'])"
        )
    if allow_http:
        raise InvalidOptionError(
            "links and allow_http both set which links are followed; give one of them"
        )
    return links


def host_of(url: str) -> tuple[str, int]:
    """Return the host of a URL, in lower case, and its port.

    Examples
    --------
    >>> host_of("https://Example.ORG./a"), host_of("http://[::1]:8000/")
    (('example.org', 443), ('::1', 8000))
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    return host, parts.port or _PORTS.get(parts.scheme.lower(), 0)


def _is_named(host: str, port: int, name: str, given: int | None) -> bool:
    if port != given and not (given is None and port in _PORTS.values()):
        return False
    return name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:]))


def _parted(entry: str) -> tuple[str, int | None]:
    """Return an entry of `allow_http` as a name and a port, None where it has none."""
    entry = entry.strip().lower().rstrip(".")
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:]*):(\d{1,5})", entry)
    name, port = (found[1], int(found[2])) if found else (entry, None)
    return name.strip("[]"), port


def _network(name: str) -> Network | None:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        return None


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _meant(address: Address) -> list[Address]:
    """Return an address, and the one of IPv4 that a router would make of it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    inner = [address.sixtofour] if address.sixtofour else [*(address.teredo or ())]
    return [address, *inner]


def _is_public(address: Address) -> bool:
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _check_names(option: str, value: Any, flag: bool) -> None:
    if flag and isinstance(value, bool):
        return
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(v, str) for v in value)
    ):
        raise InvalidOptionError(
            f"{option}={value!r:.100}; give a list of names{', or True or False' * flag}"
        )
