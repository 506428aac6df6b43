"""Check every page of a built site: what it links to is there, nothing is loaded from elsewhere, no path is told.

python -m benchmarks.site.links SITE
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """A page: its text, its anchors, what it links to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[x] for x in ("id", "name") if found.get(x)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get(LOADED.get(tag, "")) and found.get("rel") not in ("canonical",):
            self.loads.append(found[LOADED[tag]])


def check(site):
    """Problems, in words."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    pages = {path: page for path, page in pages.items() if "_static" not in path.parts}  # templates of the theme
    problems = []
    for path, page in pages.items():
        if str(site.parent) in page.text:  # as that of a file that warned
            problems.append(f"{path.relative_to(site)}: names the folder in which it was built")
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    problems.append(f"{path.relative_to(site)}: loads {link} from elsewhere")
                continue
            wanted = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not wanted.exists():
                problems.append(f"{path.relative_to(site)}: no {link}")
            elif parts.fragment and wanted in pages and unquote(parts.fragment) not in pages[wanted].anchors:
                problems.append(f"{path.relative_to(site)}: no anchor {link}")
    return pages, problems


def main(folder):
    pages, problems = check(Path(folder).resolve())
    print(*problems, sep="\n")
    print(f"{len(pages)} pages, {sum(len(x.links) for x in pages.values())} links, {len(problems)} problems")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
