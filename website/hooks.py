"""What MkDocs calls while it builds the site: notebooks become pages."""

from __future__ import annotations

import json
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.notebooks import as_markdown


class Notebook(File):
    """A notebook as a page of its own."""

    def is_documentation_page(self) -> bool:
        """Return whether it is a page: it is, whatever its name ends with."""
        return True


def on_files(files: Files, config: Any) -> Files:
    """Take notebooks for pages."""
    for file in [one for one in files if one.src_uri.endswith(".ipynb")]:
        files.remove(file)
        page = Notebook(file.src_uri, config.docs_dir, config.site_dir, config.use_directory_urls)
        page.dest_uri = file.src_uri.removesuffix(".ipynb") + ".html"
        page.abs_dest_path = f"{config.site_dir}/{page.dest_uri}"
        page.url = page.dest_uri
        files.append(page)
    return files


def on_page_read_source(page: Page, config: Any) -> str | None:
    """Return a notebook's Markdown; other pages are read as they are."""
    if not page.file.src_uri.endswith(".ipynb"):
        return None
    return as_markdown(json.loads(page.file.content_string))
