"""The repository's files as files of the site. Knows paths and links, not MkDocs.

A page keeps the links that work in the repository; `rewrite_links` turns them into links of the
site. The index, docs/README.md, decides on the navigation; every file that some page links to
becomes part of the site: Markdown and examples as pages, anything else as a download.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

ROOT = Path(__file__).parents[2]
START = "README.md"
INDEX = "docs/README.md"

UNLISTED = {"Guides": "docs/*.md", "Research": "experiments/*/README.md"}
"""Sections of pages that the index does not list."""

_MOVED = {START: "index.md", INDEX: "pages.md", "examples": "examples/index.md"}
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_CODE_OR_LINK = re.compile(r"(`+)(?!`).*?\1|\]\((?P<target>[^()\s]+)\)", flags=re.DOTALL)
_OUTSIDE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|#|//)", flags=re.IGNORECASE)


def site_path(path: str) -> str:
    """Return where the repository's file or folder `path` is in the site's sources."""
    if path in _MOVED:
        return _MOVED[path]
    file = PurePosixPath(path)
    if file.parts[0] == "docs":
        return str(file.relative_to("docs"))
    if len(file.parts) == 1 and file.suffix == ".md":
        return path.lower()
    if file.parts[0] == "examples":
        return str(file.with_suffix(".md"))
    return path if file.suffix else f"{path}/README.md"


def map_links(markdown: str, change: Callable[[str], str]) -> str:
    """Return the text with the target of every link outside of code passed through `change`."""

    def replace(match: re.Match[str]) -> str:
        target = match["target"]
        return match[0] if target is None else f"]({change(target)})"

    return "".join(
        part if is_code else _CODE_OR_LINK.sub(replace, part)
        for part, is_code in _fenced_parts(markdown)
    )


def _fenced_parts(markdown: str) -> Iterable[tuple[str, bool]]:
    """Yield the text in parts, each with whether it is a fenced block of code."""
    part: list[str] = []
    fence = ""
    for line in markdown.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not fence and found:
            yield "".join(part), False
            part, fence = [line], found[1]
        elif fence and found and line.strip() == fence:
            yield "".join([*part, line]), True
            part, fence = [], ""
        else:
            part.append(line)
    yield "".join(part), bool(fence)


def linked_path(target: str, page: str) -> str | None:
    """Return the repository path that a link of `page` leads to; None if it leaves the site."""
    file = target.partition("#")[0]
    if not file or _OUTSIDE.match(target):
        return None
    return normpath(str(PurePosixPath(page).parent / file))


def rewrite_links(markdown: str, page: str) -> str:
    """Return the text of a repository page with links that work in the site."""

    def change(target: str) -> str:
        path = linked_path(target, page)
        if path is None:
            return target
        anchor = target.partition("#")[1:]
        return relpath(site_path(path), PurePosixPath(site_path(page)).parent) + "".join(anchor)

    return map_links(markdown, change)


def linked_files(markdown: str, page: str) -> list[str]:
    """Return the repository paths that a page links to."""
    found: list[str] = []

    def collect(target: str) -> str:
        path = linked_path(target, page)
        if path is not None:
            found.append(path)
        return target

    map_links(markdown, collect)
    return found


def reachable_files() -> list[str]:
    """Return every file and folder that is reached by links from the start page and the index.

    Raises:
        FileNotFoundError: A link leads to nothing.
    """
    reached: list[str] = []
    waiting = [START, INDEX, *(path for pages in sections().values() for path in pages.values())]
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"{path}: linked from a page, and not in the repository")
        reached.append(path)
        waiting.extend(_linked_from(path))
    return sorted(reached)


def _linked_from(path: str) -> list[str]:
    """Return the links of a page; of a folder its page, or else its files."""
    if (ROOT / path).is_dir():
        page = f"{path}/README.md"
        files = [f"{path}/{file.name}" for file in (ROOT / path).iterdir() if file.is_file()]
        return [page] if page in files else files
    if not path.endswith(".md"):
        return []
    return linked_files((ROOT / path).read_text(encoding="utf-8"), path)


def sections() -> dict[str, dict[str, str]]:
    """Return the headings of the index, each with its linked pages: title → repository path.

    Pages and experiments that the index does not list yet come last in their section.
    """
    found: dict[str, dict[str, str]] = {}
    heading = ""
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
            found[heading] = {}
        elif heading and (row := re.match(r"\| \[([^\]]+)\]\(([^)#]+)\) \|", line)):
            path = linked_path(row[2], INDEX)
            assert path is not None, f"{INDEX}: {row[2]} is not a page of the repository"
            found[heading][row[1]] = path
    listed = {INDEX, *(path for pages in found.values() for path in pages.values())}
    for section, pattern in UNLISTED.items():
        for file in sorted(ROOT.glob(pattern)):
            path = file.relative_to(ROOT).as_posix()
            if path not in listed:
                found.setdefault(section, {})[_heading(file)] = path
    return found


def _heading(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
