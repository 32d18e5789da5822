"""The table of the extras in docs/install.md."""

from pathlib import Path

from benchmarks.extras import PAGE, PURPOSES, extras, table


def test_every_extra_for_users_is_measured_and_on_the_page() -> None:
    assert set(PURPOSES) == {"", *extras()}
    page = PAGE.read_text(encoding="utf-8")
    for extra, purpose in PURPOSES.items():
        name = f"redraft[{extra}]" if extra else "redraft"
        assert f"| `{name}` | {purpose} |" in page


def test_an_extra_is_shown_with_what_it_adds() -> None:
    rows = table({"": (291.9, 118.4), "lsp": (7.1, 3.0)}).splitlines()
    assert rows[2].endswith("| 292 | 118 |")
    assert rows[3].endswith("| + 7 | + 3 |")
    assert Path(PAGE).name == "install.md"
