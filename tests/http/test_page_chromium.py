"""The Memory page in real Chromium, by the words that a person sees, with script and without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from gitmem.keys import Keys
from tests.http.chromium import findings, launched, opened
from tests.http.page import ENVIRONMENT, NOTES, document_url
from tests.http.server import Api, Server, client_of, prepared_store

PHONE = {"width": 360, "height": 740}

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that needs a key."""
    folder = tmp_path_factory.mktemp("guarded-browser")
    store = prepared_store(folder / "store")
    Keys(str(store)).create(name="first")
    with Server(store, log=folder / "log") as running:
        yield running


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def link(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).first.click()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_an_owner_does_everything(browser: Browser, guarded: Server, unique: str, script: bool) -> None:
    _, token = Keys(str(guarded.folder)).create(name=unique)
    with opened(browser, guarded, java_script_enabled=script) as page, client_of(guarded, token) as client:
        page.goto("/")
        page.get_by_label("API key").fill(token)
        button(page, "Sign in")
        link(page, "notes") if page.url.endswith("development") else page.locator("a", has_text="development").click()
        link(page, "notes")

        link(page, "New document")
        page.get_by_label("Id").fill(unique)
        page.get_by_label("Title").fill("Workshop notes")
        page.get_by_label("Text").fill("Node.js 20.\nLaptops.\n")
        button(page, "Create")
        expect(page.get_by_role("heading", name="Workshop notes")).to_be_visible()
        expect(page.get_by_label("Text of the document")).to_have_text("Node.js 20.\nLaptops.\n")

        link(page, "notes")
        page.get_by_label("Title or id contains").fill(unique.upper())
        button(page, "Filter")
        expect(page.get_by_role("rowheader")).to_have_count(1)
        link(page, "Workshop notes")

        link(page, "Edit")
        api = Api(client)
        api("PUT", unique, {"text": "Node.js 24.\nLaptops.\n"}, match=f'"{api.read(unique)["revision"]}"')
        page.get_by_label("Text").fill("Node.js 22.\nLaptops.\n")
        button(page, "Save")
        expect(page.get_by_role("heading", name="Somebody saved before you")).to_be_visible()
        expect(page.get_by_label("Your text")).to_have_value("Node.js 22.\nLaptops.\n")
        expect(page.get_by_label("Its text")).to_have_value("Node.js 24.\nLaptops.\n")
        button(page, "Save mine over the newest")
        expect(page.get_by_text("Saved.", exact=True)).to_be_visible()

        link(page, "Retitle")
        page.get_by_label("Title").fill("Notes, autumn")
        button(page, "Save")
        button(page, "Freeze")
        expect(page.get_by_text("may read it only: it is frozen")).to_be_visible()

        link(page, "History, and what each version changed")
        expect(page.get_by_role("rowheader")).to_have_count(5)
        page.get_by_role("rowheader").last.get_by_role("link").click()
        link(page, "Restore this version")
        expect(page.locator("ins")).to_have_text(["title: Workshop notes", "Node.js 20."])
        button(page, "Restore")
        expect(page.get_by_role("heading", name="Workshop notes")).to_be_visible()
        expect(page.get_by_label("Text of the document")).to_have_text("Node.js 20.\nLaptops.\n")
        button(page, "Unfreeze")

        link(page, "Delete")
        button(page, "Delete")
        expect(page.get_by_role("status").first).to_contain_text("Deleted.")
        assert api("GET", unique).status_code == 404
        button(page, "Sign out")
        page.goto(NOTES)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_what_is_saved_elsewhere_appears_and_never_disturbs_typing(
    browser: Browser, server: Server, api: Api, unique: str
) -> None:
    first = api.created(unique, text="one")
    with opened(browser, server) as page:
        page.goto(document_url(unique))
        second = api("PUT", unique, {"text": "two"}, match=f'"{first["revision"]}"').json()
        expect(page.get_by_label("Text of the document")).to_have_text("two")
        expect(page.locator("#live")).to_have_text("Updated: something was saved.")
        link(page, "Edit")
        page.get_by_label("Text").fill("mine, half")
        api("PUT", unique, {"text": "three"}, match=f'"{second["revision"]}"')
        expect(page.locator("#live")).to_contain_text("Somebody has saved this document meanwhile.")
        expect(page.get_by_label("Text")).to_have_value("mine, half")
        page.get_by_label("Text").press("End")
        page.keyboard.type(" typed")
        asked: list[str] = []
        page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
        link(page, "Cancel")
        expect(page.get_by_label("Text")).to_have_value("mine, half typed")
        assert asked == ["beforeunload"]
        button(page, "Save")
        expect(page.get_by_label("Your text")).to_have_value("mine, half typed")
        expect(page.get_by_label("Its text")).to_have_value("three")
        revision = api.read(unique)["revision"]
        api("DELETE", unique, match=f'"{revision}"')
        expect(page.locator("#live")).to_contain_text("is not there any more")
        button(page, "Save mine over the newest")
        expect(page.get_by_label("Text")).to_have_value("mine, half typed")


def test_bytes_are_counted_while_typing(browser: Browser, server: Server, api: Api, unique: str) -> None:
    api.created(unique, text="é")
    with opened(browser, server) as page:
        page.goto(f"{document_url(unique)}/edit")
        counter = page.locator("#text-count")
        expect(counter).to_have_text("2 of 8,192 bytes")
        page.get_by_label("Text").press("End")
        page.keyboard.type("🦊\n")
        expect(counter).to_have_text("7 of 8,192 bytes")
        page.get_by_label("Text").fill("é" * 4097)
        expect(counter).to_have_text("8,194 of 8,192 bytes")
        expect(page.get_by_label("Text")).to_have_attribute("aria-invalid", "true")


def test_stored_markup_does_not_act(browser: Browser, server: Server, api: Api, unique: str) -> None:
    evil = "<script>document.title='acted'</script><img src=x onerror=\"document.title='acted'\"></pre></textarea>"
    dialogs: list[Dialog] = []
    api.created(unique, title=evil, text=f"{evil}<svg onload=alert(1)>", summary=evil)
    with opened(browser, server) as page:
        page.on("dialog", lambda dialog: dialogs.append(dialog))
        for path in ("", "/edit", "/title", "/history", "/delete"):
            page.goto(document_url(unique) + path)
            assert "acted" not in page.title().replace("'acted'", "")
            expect(page.locator("main img, main script, main svg")).to_have_count(0)
        page.goto(document_url(unique))
        expect(page.get_by_label("Text of the document")).to_have_text(f"{evil}<svg onload=alert(1)>")
    assert dialogs == []


def test_a_form_on_another_site_cannot_act(browser: Browser, server: Server, api: Api, unique: str) -> None:
    revision = api.created(unique)["revision"]
    with opened(browser, server) as page:
        page.goto(document_url(unique))
        csrf = page.locator("input[name=csrf]").first.get_attribute("value")
        form = (
            f'<form method="post" action="{server.url}{document_url(unique)}/freeze">'
            f'<input name="csrf" value="{csrf}"><input name="revision" value="{revision}"><button>Win</button></form>'
        )
        page.route("http://evil.example/", lambda route: route.fulfill(content_type="text/html", body=form))
        page.goto("http://evil.example/")
        button(page, "Win")
        page.wait_for_url("**/freeze")
        assert "forbidden" in page.content()
    assert api.read(unique)["agentWrites"] == "enabled"


def test_a_link_on_another_site_finds_one_signed_in(browser: Browser, guarded: Server, unique: str) -> None:
    _, token = Keys(str(guarded.folder)).create(name=unique)
    with opened(browser, guarded) as page:
        page.route("http://chat.example/", lambda route: route.fulfill(
            content_type="text/html", body=f'<a href="{guarded.url}{NOTES}?filter=x">Look</a>'
        ))  # fmt: skip
        page.goto("/sign-in")
        page.get_by_label("API key").fill(token)
        button(page, "Sign in")
        expect(page.get_by_role("heading", name="Projects")).to_be_visible()
        page.goto("http://chat.example/")
        link(page, "Look")
        expect(page.get_by_role("heading", name="notes")).to_be_visible()
        assert page.url.endswith(f"{NOTES}?filter=x")


def test_the_keyboard_is_enough(browser: Browser, server: Server, api: Api, unique: str) -> None:
    api.created(unique, title="By keyboard")
    with opened(browser, server) as page:
        page.goto(NOTES)
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="New document")).to_be_focused()
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Tab")
        page.keyboard.type(unique)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**filter={unique}*")
        page.get_by_role("link", name="By keyboard").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="By keyboard")).to_be_visible()


def pages_of(api: Api, document_id: str) -> list[str]:
    """One page of each kind; the last is where a stale edit can be made."""
    wide = "An_unbroken_name_" * 12
    first = api.created(document_id, title=wide, text=f"{wide}\n" * 30, summary=wide)
    api("PUT", document_id, {"text": "short\n"}, match=f'"{first["revision"]}"')
    url = document_url(document_id)
    history = f"{url}/history/{first['revision']}"
    return [
        "/sign-in", NOTES, url, f"{url}/history", f"{url}/edit",
        "/", ENVIRONMENT, f"{NOTES}?filter=nothing-has-this", f"{url}/title", f"{url}/delete", history,
        f"{history}/restore", f"{NOTES}/new", f"{ENVIRONMENT}/sessions", document_url("missing"),
        "/projects/bot/production",
    ]  # fmt: skip


def stale_edit(page: Page, document_id: str) -> None:
    page.goto(f"{document_url(document_id)}/edit")
    page.locator("main input[name=revision]").evaluate("field => field.value = '0'.repeat(40)")
    page.get_by_label("Text").fill("mine")
    button(page, "Save")
    expect(page.get_by_role("heading", name="Somebody saved before you")).to_be_visible()


def test_axe_finds_nothing(browser: Browser, server: Server, api: Api, unique: str) -> None:
    with opened(browser, server) as page:
        for path in pages_of(api, unique)[:4]:
            page.goto(path)
            assert findings(page) == [], path
        stale_edit(page, unique)
        assert findings(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [PHONE["width"], 1200])
def test_axe_finds_nothing_anywhere(browser: Browser, server: Server, api: Api, unique: str, width: int) -> None:
    with opened(browser, server, viewport={"width": width, "height": 800}) as page:
        for path in pages_of(api, unique):
            page.goto(path)
            assert findings(page) == [], path


def test_nothing_is_wider_than_a_phone(browser: Browser, server: Server, api: Api, unique: str) -> None:
    with opened(browser, server, viewport=PHONE) as page:
        for path in pages_of(api, unique):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
        stale_edit(page, unique)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
