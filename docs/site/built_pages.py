"""Check the built site: `python -m docs.site.built_pages site`.

Every link and picture leads to a file of the site, every anchor to an element, and nothing that a
browser loads by itself comes from another host.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "preconnect", "modulepreload"}


class Page(HTMLParser):
    """The ids of a page, its links, and the addresses that a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names."""
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADED and _LOADED[tag] in values:
            self.loaded.append(values[_LOADED[tag]])
        if tag == "link" and _LOADED_LINKS & set(values.get("rel", "").split()):
            self.loaded.append(values["href"])


def problems(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere and each resource of another host."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    found = []
    for path, page in sorted(pages.items()):
        if path.name == "404.html":  # is shown at any address, so its links are the host's
            continue
        name = path.relative_to(site.resolve())
        outside = [address for address in page.loaded if urlsplit(address).netloc]
        found += [f"{name}: loads {address} from another host" for address in outside]
        for address in (*page.links, *page.loaded):
            reason = _reason(address, path, pages)
            if reason:
                found.append(f"{name}: {address}: {reason}")
    return found


def _reason(address: str, path: Path, pages: dict[Path, Page]) -> str | None:
    """Return what is wrong with an address on the page at `path`, if anything."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        return "no such anchor"
    return None


def main(site: Path) -> int:
    """Print the problems of the site in the folder; returns 1 if there are any."""
    found = problems(site)
    for line in found:
        print(line, file=sys.stderr)
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, {len(found)} broken links")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
