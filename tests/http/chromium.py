"""Real Chromium on a server's pages, where it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, sync_playwright

from tests.http.server import Server

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_MILLISECONDS = 20_000


def launched() -> Iterator[Browser]:
    """A browser, for a fixture; skips where there is none."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, server: Server, **options: Any) -> Generator[Page, None, None]:
    """A page of a person of its own, on a server. At its end, its script must have made no errors."""
    context = browser.new_context(base_url=server.url, reduced_motion="reduce", **options)
    context.set_default_timeout(_PATIENCE_MILLISECONDS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    try:
        yield page
    finally:
        context.close()
    assert errors == []


def findings(page: Page) -> list[str]:
    """What axe finds on a page, in light colours and in dark ones."""
    page.evaluate(AXE_SCRIPT)
    page.emulate_media(color_scheme="light")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    page.emulate_media(color_scheme="dark")
    # Only colours differ.
    found += page.evaluate("axe.run(document, {runOnly: ['color-contrast']})")["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]
