"""The address of a language model, and the key that may be sent to it.

Knows no HTTP. A key comes from the environment only, so that no command line and no file has it.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from redraft.config.ranges import shorten
from redraft.errors import ConfigError

KEY, OPENAI_KEY = "REDRAFT_LM_KEY", "OPENAI_API_KEY"
"""Environment variables of the key. That of OpenAI is sent only to remote addresses."""

_EXAMPLE = "expected an address such as http://localhost:11434/v1"


@dataclass(frozen=True)
class LmAddress:
    """The base address of an endpoint, without a final slash, and whether it is on this network."""

    url: str
    is_local: bool

    @classmethod
    def parse(cls, text: str, *, allow_remote: bool = False) -> "LmAddress":
        """Check and return the address that a user named; `/v1` is added if it has no path.

        Raises a ConfigError for an address that is not local (loopback or private network), unless
        `allow_remote` confirms it.
        """
        shown = shorten(text)
        try:
            parts = urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise ConfigError(f"--lm {shown}: {_EXAMPLE}") from error
        if parts.username is not None or parts.password is not None or parts.query:
            # the text is not shown: it may be a key
            raise ConfigError(f"--lm: an address has no password or query; put a key into {KEY}")
        if parts.scheme not in ("http", "https") or not host or parts.fragment:
            raise ConfigError(f"--lm {shown}: {_EXAMPLE}")
        is_local = _is_local(host)
        if not is_local and not allow_remote:
            raise ConfigError(
                f"--lm {shown}: is not on this machine or a private network, and would receive "
                "your inputs and examples; confirm that with --lm-remote"
            )
        if not is_local and parts.scheme == "http":
            raise ConfigError(f"--lm {shown}: a remote address needs https, not http")
        path = parts.path.rstrip("/") or "/v1"
        return cls(f"{parts.scheme}://{parts.netloc}{path}", is_local)

    def key(self, environment: Mapping[str, str]) -> str | None:
        """Return the key for this address, None if there is none."""
        names = (KEY,) if self.is_local else (KEY, OPENAI_KEY)
        key = next((environment[name] for name in names if environment.get(name)), None)
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ConfigError(f"{KEY}: a key has only printable ASCII characters")
        return key


def _is_local(host: str) -> bool:
    """Return True for localhost, and for loopback, private and link-local IP addresses.

    Other names count as remote: what they resolve to may change.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_link_local
