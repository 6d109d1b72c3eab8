"""Pages for the browser tests: offline, watched, and silent."""

from pathlib import Path

import pytest
from browser.driver import SCREENS, SETTLED, LabDriver

from attn_lib.labs import AttentionLab
from attn_lib.labs.base import STATIC

WIDE = SCREENS["wide"]


class Watch:
    """What a page must not do: complain on the console, or ask for anything outside `inside`."""

    def __init__(self, context, inside: str):
        self.inside, self.complaints, self.requests = inside, [], []
        context.on("console", self._console)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))
        context.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message):
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(f"{message.type}: {message.text}")

    @property
    def outside(self) -> list[str]:
        own = (self.inside, "data:", "blob:", "about:")
        return [url for url in self.requests if not url.startswith(own)]


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a local page, which must keep quiet and to itself."""
    opened = []

    def open_(url, *, inside=None, init=None, wait=True, browser=chromium, **options):
        """Open a file (a path, or a file:// address with a fragment) in a context of its own."""
        url = url.as_uri() if isinstance(url, Path) else url
        context = browser.new_context(
            **{"offline": True, "viewport": WIDE, "reduced_motion": "reduce", **options}
        )
        folder = inside.as_uri() if inside else url.split("#")[0]
        page = context.new_page()
        page.watch = Watch(context, folder)
        page.set_default_timeout(60_000)  # a busy machine is no failure
        opened.append((context, page))
        if init:
            page.add_init_script(init)
        page.goto(url)
        if wait:
            page.locator("figure.attn-lab[data-ready=true]").first.wait_for(state="attached")
        return page

    yield open_
    for context, page in opened:
        complaints, outside = page.watch.complaints, page.watch.outside
        context.close()
        assert complaints == []
        assert outside == []


@pytest.fixture
def pages(built_book) -> list[str]:
    """Return every page of the book, as addresses within it; its root only leads to one."""
    found = {path.relative_to(built_book).as_posix() for path in built_book.rglob("*.html")}
    return sorted(name for name in found - {"index.html"} if not name.startswith("_static/"))


@pytest.fixture
def open_book(open_page, built_book):
    """Return a function that opens a page of the book and waits until all of it is there."""

    def open_(page="book/index.html", fragment="", **options):
        opened = open_page(
            (built_book / page).as_uri() + fragment, inside=built_book, wait=False, **options
        )
        if options.get("java_script_enabled", True):
            opened.evaluate(SETTLED)
        return opened

    return open_


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Return a function that saves a lab, named "lab", once in a run and gives the file."""
    folder, files = tmp_path_factory.mktemp("saved"), {}

    def save(kind=AttentionLab, /, *, picture=False, **state) -> Path:
        key = f"{kind.__name__} {state} {picture}"
        if key not in files:
            lab, path = kind(name="lab", **state), folder / f"lab{len(files)}.html"
            files[key] = lab.save(path, picture=picture)
        return files[key]

    return save


@pytest.fixture
def open_lab(open_page, saved):
    """Return a function that opens a lab in this state, saved as one file, and drives it.

    What is folded is opened, too, unless `folded`.
    """

    def open_(kind, fragment="", *, options=None, folded=False, **state) -> LabDriver:
        address = saved(kind, **state).as_uri() + fragment
        lab = LabDriver(open_page(address, **options or {}))
        if not folded:
            lab.open()
        return lab

    return open_


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """Return a function that writes several labs into one page, as a book does."""
    folder = tmp_path_factory.mktemp("pages")

    def write(*labs, around="{}", picture=False) -> Path:
        script = (STATIC / "labs.page.js").as_uri()
        style = (STATIC / "labs.css").as_uri()
        figures = (around.format(lab.to_html(picture=picture)) for lab in labs)
        path = folder / f"page{len(list(folder.iterdir()))}.html"
        path.write_text(
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Labs</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="stylesheet" href="{style}"><script defer src="{script}"></script>'
            f"<main><h1>Labs</h1>{''.join(figures)}</main></html>",
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture(scope="session")
def axe(node_modules):
    """Return a function that lists a page's accessibility violations, each with its elements."""
    source = (node_modules / "axe-core" / "axe.min.js").read_text(encoding="utf-8")

    def run(page, rules: list[str] | None = None) -> list[str]:
        page.evaluate(source)
        # preload: axe would fetch the style sheets, which file:// refuses
        options = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = rules
        found = page.evaluate("(options) => axe.run(options)", options)
        return [
            f"{violation['id']}: {node['html'][:160]}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    return run
