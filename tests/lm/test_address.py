"""The address of a language model: local ones are free, remote ones are confirmed."""

import pytest

from redraft.errors import ConfigError
from redraft.lm.address import LmAddress

LOCAL = (
    "http://localhost:11434/v1",
    "http://127.0.0.1:8080/v1",
    "http://[::1]:8080/v1",
    "http://192.168.1.20/v1",
    "http://models.localhost/v1",
)


@pytest.mark.parametrize("url", LOCAL)
def test_local_addresses_need_no_confirmation(url: str) -> None:
    assert LmAddress.parse(url).url == url
    assert LmAddress.parse(url).is_local


@pytest.mark.parametrize("url", ["https://api.example.com/v1", "https://8.8.8.8/v1"])
def test_remote_addresses_are_confirmed(url: str) -> None:
    with pytest.raises(ConfigError, match=r"would receive your inputs and examples.*--lm-remote"):
        LmAddress.parse(url)
    assert not LmAddress.parse(url, allow_remote=True).is_local


def test_a_remote_address_is_encrypted() -> None:
    with pytest.raises(ConfigError, match="a remote address needs https"):
        LmAddress.parse("http://api.example.com/v1", allow_remote=True)


@pytest.mark.parametrize(
    "text", ["localhost:11434", "ftp://localhost/v1", "http://", "", "http://[::1", "http://a:b/v1"]
)
def test_other_text_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="expected an address such as http://localhost"):
        LmAddress.parse(text, allow_remote=True)


@pytest.mark.parametrize(
    "text", ["http://me:s3cret@localhost/v1", "http://localhost/v1?key=s3cret"]
)
def test_a_key_in_an_address_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="put a key into REDRAFT_LM_KEY") as raised:
        LmAddress.parse(text)
    assert "s3cret" not in str(raised.value)


def test_the_path_defaults_to_the_first_version() -> None:
    assert LmAddress.parse("http://localhost:8080").url == "http://localhost:8080/v1"
    assert LmAddress.parse("http://localhost:8080/api/v3/").url == "http://localhost:8080/api/v3"


def test_the_key_of_openai_stays_away_from_local_servers() -> None:
    local = LmAddress.parse("http://localhost/v1")
    remote = LmAddress.parse("https://api.example.com/v1", allow_remote=True)
    assert local.key({"OPENAI_API_KEY": "a"}) is None
    assert remote.key({"OPENAI_API_KEY": "a"}) == "a"
    assert local.key({"REDRAFT_LM_KEY": "b", "OPENAI_API_KEY": "a"}) == "b"
    with pytest.raises(ConfigError, match="printable ASCII"):
        local.key({"REDRAFT_LM_KEY": "sch\N{LATIN SMALL LETTER U WITH DIAERESIS}ssel"})
