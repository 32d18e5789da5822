"""The tables of the pages are those of the results, and no command writes anywhere else."""

import importlib
import re
from pathlib import Path

import pytest

from experiments import tables
from experiments.lib.tables import Table
from experiments.tables import HERE, ROOT, SOURCES, Source, filled, main, pages


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: f"{page.parent.name}/{page.name}")
def test_the_tables_of_every_page_are_those_of_the_results(page: Path) -> None:
    assert filled(page) == page.read_text()


def test_every_table_stands_in_a_page_of_its_experiment() -> None:
    shown = {
        name: page.parent.name
        for page in pages()
        for name in re.findall("<!-- table: (.+) -->", page.read_text())
        if page.is_relative_to(HERE)
    }
    for source in SOURCES:
        experiment, rows = source.results.relative_to(HERE).parts[0], source.rows()
        for name, table in source.tables.items():
            if any(table.has(row) for row in rows):
                assert shown.get(name) == experiment, name


@pytest.mark.parametrize(
    "page",
    sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *HERE.glob("*.md"), *pages()}),
    ids=lambda page: f"{page.parent.name}/{page.name}",
)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page", sorted(HERE.glob("*/README.md")), ids=lambda page: page.parent.name
)
def test_every_command_of_a_page_is_one_that_its_experiment_takes(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = page.parent.name
    main_of_page = importlib.import_module(f"experiments.{name}.__main__").main
    commands = re.findall(rf"^    python -m experiments\.{name}(.*)$", page.read_text(), re.M)
    assert commands
    for command in commands:
        arguments = command.partition("#")[0].split()
        with pytest.raises(SystemExit):
            main_of_page([*arguments, "--nonsense"])
        assert "error: unrecognized arguments: --nonsense" in capsys.readouterr().err


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page whose only table has lost its rows."""
    table = Table({"bleu_yin": "BLEU yin"})
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- table: cards -->\n<!-- end of table -->\nafter\n")
    results = tmp_path / "results.json"
    results.write_text(SOURCES[0].results.read_text())
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "SOURCES", (Source(results, {"cards": table}),))
    monkeypatch.setattr(tables, "pages", lambda: iter([path]))
    return path


def test_a_page_that_is_out_of_date_is_named_and_then_written(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = page.read_text()
    with pytest.raises(SystemExit) as stop:
        main(["--check"])
    assert stop.value.code == 1
    assert page.read_text() == before
    assert "page.md: tables are out of date" in capsys.readouterr().err
    main([])
    text = page.read_text()
    assert text.startswith("before\n<!-- table: cards -->\n| setting | system | n | BLEU yin |\n")
    assert text.endswith(" |\n<!-- end of table -->\nafter\n")
    main(["--check"])


def test_a_table_that_no_experiment_has_is_an_error_of_one_line(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text("<!-- table: nothing -->\n<!-- end of table -->\n")
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {page}: no experiment has a table 'nothing'; there are: cards\n"
    )
