"""Settings from TOML, and errors that say what to change."""

import math
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.config.toml import MOST_BYTES, MOST_DOTS, build, read_toml, to_toml
from redraft.errors import ConfigError


@dataclass(frozen=True)
class Oven:
    name: str = "old"
    trays: int = 2
    heat: float = 180.0
    fan: bool = False


@dataclass(frozen=True)
class Nothing:
    pass


names = st.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True)
# 64 bits: what every TOML reader must accept
integers = st.integers(-(2**63), 2**63 - 1)
values = st.text() | integers | st.floats(allow_nan=False) | st.booleans()
tables = st.dictionaries(names, st.dictionaries(names, values, max_size=4), max_size=3)


def test_missing_values_are_defaults() -> None:
    given_values = {"name": "new", "trays": 3, "heat": 200.5, "fan": True}
    assert build(Oven, given_values, where="oven.toml") == Oven("new", 3, 200.5, True)
    assert build(Oven, {"trays": 3}, where="oven.toml") == Oven(trays=3)
    assert build(Nothing, {}, where="oven.toml") == Nothing()


def test_a_whole_number_may_stand_for_a_float() -> None:
    assert build(Oven, {"heat": 200}, where="oven.toml").heat == 200.0


def test_an_unknown_setting_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        build(Oven, {"haet": 200}, where="oven.toml")
    expected = "unknown setting 'haet'; did you mean heat? known are: name, trays, heat, fan"
    assert str(caught.value) == f"oven.toml: {expected}"
    with pytest.raises(ConfigError, match="unknown setting 'heat'; known are: none"):
        build(Nothing, {"heat": 200}, where="oven.toml")


@pytest.mark.parametrize(
    ("setting", "value", "kinds"),
    [
        ("name", 3, "str, got int"),
        ("trays", "3", "int, got str"),
        ("trays", 3.0, "int, got float"),
        ("trays", True, "int, got bool"),
        ("heat", "hot", "float, got str"),
        ("heat", True, "float, got bool"),
        ("fan", 1, "bool, got int"),
        ("name", ["a"], "str, got list"),
        ("name", {"a": 1}, "str, got dict"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(setting: str, value: Any, kinds: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(Oven, {setting: value}, where="[oven]")
    assert str(caught.value) == f"[oven]: {setting} must be of type {kinds}"


@settings(deadline=None)
@given(tables)
def test_settings_come_back_from_toml(written: dict[str, dict[str, Any]]) -> None:
    read = tomllib.loads(to_toml(written))
    assert read == written
    kinds = {table: {k: type(v) for k, v in content.items()} for table, content in read.items()}
    assert kinds == {t: {k: type(v) for k, v in content.items()} for t, content in written.items()}


def test_not_a_number_comes_back_from_toml() -> None:
    assert math.isnan(tomllib.loads(to_toml({"a": {"b": math.nan}}))["a"]["b"])


@settings(deadline=None)
@given(st.builds(Oven, st.text(), integers, st.floats(allow_nan=False), st.booleans()))
def test_a_config_is_built_again_from_its_own_toml(oven: Oven) -> None:
    text = to_toml({"oven": asdict(oven)})
    assert build(Oven, tomllib.loads(text)["oven"], where="oven") == oven


def test_a_toml_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "oven.toml"
    path.write_text('[oven]\nname = "größer"\n', encoding="utf-8")
    assert read_toml(path) == {"oven": {"name": "größer"}}


@pytest.mark.parametrize(
    "content",
    [
        b"[oven",
        b"name = \xff",
        b"a = 1\na = 2",
        b"a = " + b"9" * 5_000,
        b"a = " + b"[" * 50_000,
        b"a = " + b"{a=" * 50_000,
        b"a." * 100_000 + b"a = 1",
        b"[" + b"a." * 100_000 + b"a]",
        b"#" * (MOST_BYTES + 1),
    ],
    ids=lambda content: content[:8].decode(errors="replace"),
)
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "oven.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert str(caught.value).startswith(f"{path}: not TOML (")
    assert str(caught.value).endswith("); fix the file")
    assert len(str(caught.value)) < len(str(path)) + 300
    assert len(str(caught.value).splitlines()) == 1


def test_keys_of_many_parts_are_read_in_little_time(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    key = ".a" * MOST_DOTS
    path.write_text("".join(f"b{number}{key} = 1\n" for number in range(1_000)))
    started = time.process_time()
    assert len(read_toml(path)) == 1_000
    assert time.process_time() - started < 5  # a single key of 200 KB took minutes


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_file_without_an_end_is_refused(device: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_toml(Path(device))
    assert str(caught.value) == f"{device}: not TOML (larger than 262,144 bytes); fix the file"


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_toml(tmp_path / "none.toml")
    assert str(caught.value) == f"{tmp_path / 'none.toml'}: no such file; check the path"
    with pytest.raises(ConfigError) as caught:
        read_toml(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read (Is a directory); check the path"
