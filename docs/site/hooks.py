"""What MkDocs calls while it builds the site (`hooks` in mkdocs.yml)."""

from collections.abc import Callable
from typing import Any

from mkdocs.structure.files import File, Files

from docs.site.command_line import command_line_page
from docs.site.examples import example_page, examples_page
from docs.site.http_api import http_page
from docs.site.markdown import adapt
from docs.site.python_api import python_page
from docs.site.repository import (
    INDEX,
    ROOT,
    START,
    reachable_files,
    rewrite_links,
    sections,
    site_path,
)

GENERATED: dict[str, tuple[str, Callable[[], str]]] = {
    "cli.md": ("Command line", command_line_page),
    "python.md": ("Python", python_page),
    "http.md": ("HTTP API", http_page),
}
"""Reference pages that are written from the code, by path: title and function."""

REFERENCE = "Reference"
ASSETS = {"style.css": "docs/site/style.css", "icon.svg": "src/redraft/server/http/page/icon.svg"}
"""Files that no page links to, by their path in the site."""


def on_config(config: Any) -> Any:
    """Set the navigation: the sections of docs/README.md, and the generated pages."""
    navigation: list[dict[str, Any]] = [{"Overview": site_path(START)}]
    for heading, pages in sections().items():
        entries = [{title: site_path(path)} for title, path in pages.items()]
        if heading == REFERENCE:
            entries = [{title: path} for path, (title, _) in GENERATED.items()] + entries
        navigation.append({heading: entries})
    config.nav = navigation
    return config


def on_files(files: Files, config: Any) -> Files:
    """Return the files of the theme and the repository's, in place of those of the folder docs/."""
    found = [file for file in files if file.src_dir != config.docs_dir]
    found += [_file(path, config) for path in reachable_files() if (ROOT / path).is_file()]
    found += [
        File.generated(config, name, abs_src_path=str(ROOT / path)) for name, path in ASSETS.items()
    ]
    found += [File.generated(config, path, content=page()) for path, (_, page) in GENERATED.items()]
    examples = ROOT / "examples"
    found.append(File.generated(config, site_path("examples"), content=examples_page(examples)))
    return Files(found)


def _file(path: str, config: Any) -> File:
    """Return the repository's file `path` as a file of the site."""
    if path.endswith(".md"):
        text = rewrite_links(adapt((ROOT / path).read_text(encoding="utf-8")), path)
        if path == START:  # alone in its section: an empty column would stand beside it
            text = f"---\nhide: [navigation]\n---\n{text}"
        elif path == INDEX:
            text = _with_generated(text)
        return File.generated(config, site_path(path), content=text)
    if path.startswith("examples/"):
        return File.generated(config, site_path(path), content=example_page(ROOT / path))
    return File.generated(config, site_path(path), abs_src_path=str(ROOT / path))


def _with_generated(index: str) -> str:
    """Return the index with the generated pages first in the table of the reference."""
    head = f"## {REFERENCE}\n\n| page | for |\n|---|---|\n"
    rows = [f"| [{title}]({path}) | from the code |\n" for path, (title, _) in GENERATED.items()]
    return index.replace(head, head + "".join(rows))
