"""Settings in layers."""

from experiments.lib.settings import merged


def test_settings_are_merged_by_table_and_the_last_one_wins() -> None:
    one = {"training": {"steps": 3, "seed": 1}, "name": 1}
    other = {"training": {"steps": 5}, "network": {"width": 8}, "name": 2}
    assert merged(one, other) == {
        "training": {"steps": 5, "seed": 1},
        "network": {"width": 8},
        "name": 2,
    }
    assert one == {"training": {"steps": 3, "seed": 1}, "name": 1}
