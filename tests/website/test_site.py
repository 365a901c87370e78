"""The documentation site: it builds without a warning, links lead somewhere, and a browser has no complaint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
import yaml

import verirec as vr

pytest.importorskip("mkdocs", reason="the site is built with verirec[docs]")

REPOSITORY = Path(__file__).parents[2]
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
FOUND_LATER = re.compile(r"^(https?:|mailto:|data:)")


class Parsed(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for name in ("href", "src"):
            if (tag, name) in LOADED and given.get(name) and given.get("rel") != "canonical":
                self.loaded.append(given[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does: strictly, so that a warning fails it."""
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Parsed(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_link_leads_to_a_page_and_a_place_on_it(pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(link)
            if FOUND_LATER.match(link):
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            known = pages.get(there)
            if not there.is_file() or (anchor and known and unquote(anchor) not in known.anchors):
                wrong.append(f"{path.name}: {link}")
    assert not wrong


def test_nothing_is_fetched_from_elsewhere(pages):
    assert not [one for page in pages.values() for one in page.loaded if one.startswith(("http:", "https:", "//"))]


def test_formulas_are_drawn(pages):
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert ":math:" not in text, path
        assert ".. math" not in text, path
    assert any("<math" in path.read_text(encoding="utf-8") for path in pages)


def test_all_that_is_public_has_a_place_in_the_reference():
    text = "\n".join(path.read_text() for path in (REPOSITORY / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^::: verirec\.(\S+)", text, re.MULTILINE))
    # A function whose module has its name is named in full: the short name would show the module.
    shown |= {one.rpartition(".")[2] for one in shown} | {re.sub(r"^(simulate)\.\w+\.", r"\1.", one) for one in shown}
    packages = {"metrics", "simulate", "theory"}
    assert {name for name in vr.__all__ if not name.startswith("_")} - packages <= shown
    for package in ("metrics", "simulate", "engine"):
        public = {name for name in getattr(vr, package).__all__ if callable(getattr(getattr(vr, package), name))}
        assert {f"{package}.{name}" for name in public} - shown <= {"metrics.Convention"}


@pytest.fixture(scope="module")
def browse(tmp_path_factory):
    """Open a page in a browser; give what it made of it, and what it said in its console."""
    program = shutil.which(os.environ.get("VERIREC_BROWSER", "")) or shutil.which("chromium")
    if program is None:
        reason = "no browser: chromium is not on PATH, nor is $VERIREC_BROWSER"
        (pytest.fail if os.environ.get("VERIREC_BROWSER_REQUIRED") else pytest.skip)(reason)
    options = (
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom",
        "--enable-logging=stderr", "--virtual-time-budget=8000",
    )  # fmt: skip

    def browse(address):
        profile = tmp_path_factory.mktemp("profile")
        command = [program, *options, f"--user-data-dir={profile}", address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return browse


def test_a_browser_shows_every_page_without_an_error(browse, pages, tmp_path):
    # One browser opens all: a page each in a frame, and one script that cannot work, whose error must be told.
    frames = "".join(f'<iframe src="{path.as_uri()}"></iframe>' for path in pages)
    (tmp_path / "all.html").write_text(f"<script>nobody.knows()</script>{frames}")
    _, told = browse((tmp_path / "all.html").as_uri())
    assert [line for line in told if "nobody" in line]
    assert not [line for line in told if "nobody" not in line]


def test_search_works_from_files(browse, site):
    shown, told = browse(f"{(site / 'index.html').as_uri()}?q=survey")
    assert re.search(r"md-search-result__meta[^<]*>\d+ matching documents", shown)
    assert not told


def test_every_page_is_in_the_navigation():
    listed = (REPOSITORY / "mkdocs.yml").read_text()
    files = [path.relative_to(REPOSITORY / "docs").as_posix() for path in (REPOSITORY / "docs").glob("*.md")]
    assert [file for file in files if f" {file}" not in listed] == []


@pytest.mark.parametrize("file", sorted((REPOSITORY / ".github" / "workflows").glob("*.yml")), ids=lambda one: one.name)
def test_workflows_are_yaml_and_run_targets_that_are_there(file):
    found = yaml.safe_load(file.read_text())
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    steps = [step for job in found["jobs"].values() for step in job["steps"]]
    asked = {word for step in steps for word in re.findall(r"make ([a-z-]+)", step.get("run", ""))}
    assert asked <= targets
    assert all("uses" in step or "run" in step for step in steps)
