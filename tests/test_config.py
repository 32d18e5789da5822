"""Settings are what was written, or an error that says what to change."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.config import build, merged, read_toml, to_toml, values_of
from redraft.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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


def test_given_values_are_taken_and_the_rest_is_default() -> None:
    given_values = {"name": "new", "trays": 3, "heat": 200.5, "fan": True}
    assert build(Oven, given_values, where="oven.toml") == Oven("new", 3, 200.5, True)
    assert build(Oven, {"trays": 3}, where="oven.toml") == Oven(trays=3)
    assert build(Nothing, {}, where="oven.toml") == Nothing()


def test_a_whole_number_may_stand_for_a_float() -> None:
    assert build(Oven, {"heat": 200}, where="oven.toml").heat == 200.0


def test_an_unknown_setting_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        build(Oven, {"haet": 200}, where="oven.toml")
    expected = "oven.toml: unknown setting 'haet'; known are: name, trays, heat, fan"
    assert str(caught.value) == expected
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
    text = to_toml({"oven": values_of(oven)})
    assert build(Oven, tomllib.loads(text)["oven"], where="oven") == oven


def test_a_toml_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "oven.toml"
    path.write_text('[oven]\nname = "größer"\n', encoding="utf-8")
    assert read_toml(path) == {"oven": {"name": "größer"}}


@pytest.mark.parametrize("content", [b"[oven", b"name = \xff", b"a = 1\na = 2"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "oven.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert str(caught.value).startswith(f"{path}: not TOML (")
    assert str(caught.value).endswith("); mend the file")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_toml(tmp_path / "none.toml")
    assert str(caught.value) == f"{tmp_path / 'none.toml'}: no such file; check the path"
    with pytest.raises(ConfigError) as caught:
        read_toml(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read (Is a directory); check the path"


def test_settings_are_merged_table_by_table_and_the_last_one_counts() -> None:
    one = {"training": {"steps": 3, "seed": 1}, "members": 1}
    other = {"training": {"steps": 5}, "network": {"width": 8}, "members": 2}
    assert merged(one, other) == {
        "training": {"steps": 5, "seed": 1},
        "network": {"width": 8},
        "members": 2,
    }
    assert one == {"training": {"steps": 3, "seed": 1}, "members": 1}
