"""The documentation site: its pages are those of the repository, its reference that of the code.

`make docs` builds it strictly and checks every link; these tests need no MkDocs.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.site import repository
from docs.site.built_pages import problems
from docs.site.command_line import command_line_page
from docs.site.examples import example_page, examples_page
from docs.site.http_api import http_page
from docs.site.markdown import adapt
from docs.site.python_api import python_page
from docs.site.repository import ROOT, reachable_files, rewrite_links, sections, site_path
from redraft.cli.app import app


def test_every_page_and_experiment_is_in_the_navigation() -> None:
    listed = {path for pages in sections().values() for path in pages.values()}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    experiments = {
        str(path.relative_to(ROOT)) for path in (ROOT / "experiments").glob("*/README.md")
    }
    assert pages | experiments <= listed
    assert list(sections()) == ["Start", "Guides", "Reference", "Research", "Project"]


def test_a_page_that_the_index_does_not_list_comes_last_in_its_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "experiments" / "new").mkdir(parents=True)
    (tmp_path / "docs" / "README.md").write_text("## Guides\n\n| [A](a.md) | 1 |\n")
    for path, title in {
        "docs/a.md": "A",
        "docs/b.md": "B",
        "experiments/new/README.md": "N",
    }.items():
        (tmp_path / path).write_text(f"# {title}\n")
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    assert sections() == {
        "Guides": {"A": "docs/a.md", "B": "docs/b.md"},
        "Research": {"N": "experiments/new/README.md"},
    }


def test_every_link_of_a_page_leads_to_a_file_of_the_site() -> None:
    reached = reachable_files()
    assert {"README.md", "ARCHITECTURE.md", "docs/images/playground.png"} <= set(reached)
    assert {"experiments/hearthstone/log.md", "examples/first_steps.py"} <= set(reached)
    assert len({site_path(path) for path in reached if (ROOT / path).is_file()}) == len(
        [path for path in reached if (ROOT / path).is_file()]
    )


def test_a_link_to_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("[a page](docs/missing.md)")
    (tmp_path / "docs" / "README.md").write_text("")
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"docs/missing\.md: linked from a page"):
        reachable_files()


@pytest.mark.parametrize(
    ("page", "target", "expected"),
    [
        ("README.md", "docs/pairs.md#formats", "pairs.md#formats"),
        ("docs/pairs.md", "../examples/own_pairs.py", "examples/own_pairs.md"),
        ("docs/README.md", "../examples", "examples/index.md"),
        ("docs/results.md", "../experiments/pairs/README.md", "experiments/pairs/README.md"),
        ("experiments/pairs/README.md", "../../ARCHITECTURE.md", "../../architecture.md"),
        ("experiments/pairs/README.md", "../../README.md", "../../index.md"),
        ("docs/pairs.md", "#formats", "#formats"),
        ("docs/pairs.md", "https://arxiv.org/abs/1812.01194", "https://arxiv.org/abs/1812.01194"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(
    page: str, target: str, expected: str
) -> None:
    code = f"`[a]({target})`\n\n```\n[b]({target})\n```\n"
    assert rewrite_links(f"[a\nb]({target})\n\n{code}", page) == f"[a\nb]({expected})\n\n{code}"


def test_lists_and_details_are_read_as_on_github() -> None:
    written = (
        "text:\n- one\n  more\n- two\n\n```\ntext\n- code\n```\n<details><summary>a</summary>\n"
    )
    read = "text:\n\n- one\n  more\n- two\n\n```\ntext\n- code\n```\n"
    assert adapt(written) == read + '<details markdown="1"><summary>a</summary>\n'


def test_figures_of_tables_are_not_broken() -> None:
    assert adapt("| a b | 23.6 (18.3–29.3) | 3.4 ± 0.9 |") == (
        "| a b | 23.6\u00a0(18.3–29.3) | 3.4\u00a0±\u00a00.9 |\n"
    )


def test_the_command_line_page_has_every_command_and_option() -> None:
    page = command_line_page()
    for name in ("fit", "predict", "serve", "lsp", "demo"):
        assert f"## redraft {name}\n" in page
    assert "    redraft predict MODEL [TEXT] [OPTIONS]\n" in page
    assert "\nredraft fit pairs.jsonl -o model/ --budget 10m\n" in page
    assert "| `--y-column` " in page
    assert "Output column of a table. Default: `y`. |" in page


def test_the_python_page_has_every_public_name_with_its_methods() -> None:
    import redraft

    page = python_page()
    for name in (*redraft.__all__, "Client", "FewShotSelector"):
        assert f"\n## {name}\n" in page
    assert "### RetrieveAndEdit.fit()\n" in page
    assert "<" not in page.replace("->", "")


def test_the_http_page_has_every_route_schema_and_metric() -> None:
    page = http_page()
    for text in ("## POST /v1/predict\n", "### PredictRequest\n", "| `redraft_requests` | counter"):
        assert text in page
    assert "[PredictRequest](#predictrequest)" in page


def commands_of_pages() -> list[str]:
    """Return every `redraft` command that stands on a line of its own in the pages."""
    pages = [ROOT / path for path in reachable_files() if path.endswith(".md")]
    lines = (
        line.strip()
        for page in pages
        for line in page.read_text().replace("\\\n", " ").splitlines()
    )
    shown = {line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?redraft [a-z]", line)}
    return sorted(re.split(r" +#| [>|&]", line)[0] for line in shown)


def parse(name: str, *arguments: str) -> None:
    """Parse the arguments of a command without running it; raises for unknown options."""
    group: Any = typer.main.get_command(app)
    command = group.commands[name]
    context = command.context_class(command, info_name=name)
    command.make_parser(context).parse_args(args=list(arguments))


@pytest.mark.parametrize("line", commands_of_pages())
def test_every_command_of_the_pages_has_options_that_exist(line: str) -> None:
    parse(*shlex.split(line)[1:])


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(Exception, match="No such option: --nonsense"):
        parse("fit", "pairs.jsonl", "--nonsense")


def test_examples_are_shown_with_their_outputs() -> None:
    folder = ROOT / "examples"
    assert "| [first_steps.py](first_steps.md) | " in examples_page(folder)
    assert example_page(folder / "first_steps.py").startswith("# first_steps.py\n\n```python\n")
    notebook = example_page(folder / "answers.ipynb")
    assert notebook.startswith("# Answers with their sources\n")
    assert '<div class="notebook-output"><div><b>' in notebook
    assert all(line.count("<div") == line.count("</div>") for line in notebook.splitlines())


def test_broken_links_and_foreign_resources_of_the_built_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#end">b</a><a href="b.html#x">x</a>'
        '<a href="c.html">c</a>'
        '<a href="https://other.example/">fine</a><script src="https://cdn.example/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="end"><a href="a.html#top">a</a><a href="#end">e</a>')
    assert problems(tmp_path) == [
        "a.html: loads https://cdn.example/x.js from another host",
        "a.html: b.html#x: no such anchor",
        "a.html: c.html: no such file",
    ]
