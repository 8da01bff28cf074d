"""The Memory page without script: what it shows, and what its forms do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gitmem
from gitmem.http.page.routes import PAGES
from tests.http.page import ENVIRONMENT, NOTES, Shown, Visitor, document_url, visiting
from tests.http.server import Api, Server


@pytest.fixture
def visitor(server: Server) -> Iterator[Visitor]:
    with visiting(server) as found:
        yield found


def test_every_page_leads_on_to_the_next(api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique, title="Über <b>alles</b>", text="line\n  indented", summary="In short.")
    home = visitor.get("/")
    assert ENVIRONMENT in [form.get("href") for tag, form in home.tags if tag == "a"]
    environment = visitor.get(ENVIRONMENT)
    assert environment.links["notes"] == NOTES
    listing = visitor.get(environment.links["notes"])
    page = visitor.get(listing.links["Über <b>alles</b>"])
    assert "Über <b>alles</b>" in page.text
    assert "line indented" in page.text
    for fact in ("In short.", "owner", "may read and save it", "15 of 8,192 B", "create"):
        assert fact in page.text


def test_a_document_is_created_edited_and_retitled(api: Api, visitor: Visitor, unique: str) -> None:
    form = visitor.get(f"{NOTES}/new")
    answer = visitor.submit(form, "/new", id=unique, title="First", summary="s", text="\none\ntwo\n")
    page = visitor.follow(answer)
    assert "The document is created." in page.text
    assert api.read(unique)["text"] == "\none\ntwo\n"
    edit = visitor.get(f"{document_url(unique)}/edit")
    assert edit.form("/edit").fields["text"] == "\none\ntwo\n"
    page = visitor.follow(visitor.submit(edit, "/edit", text="ünö\n", summary=""))
    assert "Saved." in page.text
    page = visitor.follow(visitor.submit(visitor.get(f"{document_url(unique)}/title"), "/title", title="Second <i>"))
    assert "Second <i>" in page.text
    found = api.read(unique)
    assert (found["title"], found["text"], found["summary"]) == ("Second <i>", "ünö\n", "")
    assert found["writer"] == {"kind": "owner"}
    operations = [version["operation"] for version in api("GET", f"{unique}/history").json()["versions"]]
    assert operations == ["retitle", "replace", "create"]


def test_freezing_and_unfreezing(api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique)
    page = visitor.follow(visitor.submit(visitor.get(document_url(unique)), "/freeze"))
    assert api.read(unique)["agentWrites"] == "disabled"
    assert "frozen" in page.text
    assert "frozen" in visitor.get(f"{NOTES}?filter={unique}").text
    visitor.follow(visitor.submit(page, "/unfreeze"))
    assert api.read(unique)["agentWrites"] == "enabled"
    answer = visitor.submit(visitor.get(f"{NOTES}/new"), "/new", id=f"{unique}-2", title="T", frozen="yes")
    assert answer.status_code == 303
    assert api.read(f"{unique}-2")["agentWrites"] == "disabled"


def test_deleting_asks_once_and_keeps_the_history(api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique, title="Doomed", text="old words")
    page = visitor.get(f"{document_url(unique)}/delete")
    assert api.read(unique)["title"] == "Doomed"
    listing = visitor.follow(visitor.submit(page, "/delete"))
    assert "Deleted." in listing.text
    assert "Doomed" not in listing.text
    gone = visitor.get(document_url(unique), 404)
    history = visitor.get(gone.links["See its history"])
    assert "is deleted" in history.text
    assert not [link for link in history.links.values() if link.endswith("/restore")]
    version = visitor.get(next(link for text, link in history.links.items() if text == "create"))
    assert "old words" in version.text
    assert visitor.get(next(link for text, link in history.links.items() if text == "delete"))
    visitor.get(f"{document_url(unique)}/edit", 404)
    visitor.get(document_url(f"{unique}-never"), 404)


def test_history_shows_what_changed_and_brings_versions_back(api: Api, visitor: Visitor, unique: str) -> None:
    first = api.created(unique, title="T", text="keep\nold\n", summary="one")
    changed = api("PUT", unique, {"text": "keep\nnew\n", "summary": "two"}, match=f'"{first["revision"]}"').json()
    api("PATCH", unique, {"agentWrites": "disabled"}, match=f'"{changed["revision"]}"')
    history = visitor.get(f"{document_url(unique)}/history")
    assert history.text.index("freeze") < history.text.index("replace") < history.text.index("create")
    version = visitor.get(f"{document_url(unique)}/history/{changed['revision']}")
    lines = [attributes.get("class") for tag, attributes in version.tags if tag == "tr"]
    assert lines.count("added") == lines.count("removed") == 2
    for words in ("Removed − old", "Added + new", "Removed − summary: one", "Added + summary: two"):
        assert words in version.text
    older = visitor.get(version.links["Older version →"])
    assert "Added + old" in older.text
    assert "Older version →" not in older.links
    assert older.links["← Newer version"] == version.answer.request.url.path
    confirm = visitor.get(f"{document_url(unique)}/history/{first['revision']}/restore")
    assert "Removed − new" in confirm.text
    assert "agentWrites" not in confirm.text
    page = visitor.follow(visitor.submit(confirm, "/restore"))
    assert "The earlier version is restored." in page.text
    found = api.read(unique)
    assert (found["text"], found["summary"], found["agentWrites"]) == ("keep\nold\n", "one", "disabled")


def test_a_stale_edit_shows_both_versions_and_loses_neither(api: Api, visitor: Visitor, unique: str) -> None:
    first = api.created(unique, text="shared\n")
    edit = visitor.get(f"{document_url(unique)}/edit")
    api("PUT", unique, {"text": "shared\ntheirs\n"}, match=f'"{first["revision"]}"')
    answer = visitor.submit(edit, "/edit", text="shared\nmine\n", summary="my summary")
    assert answer.status_code == 412
    conflict = Shown(answer)
    assert "Added + theirs" in conflict.text
    assert "Removed − theirs" in conflict.text
    assert api.read(unique)["text"] == "shared\ntheirs\n"
    fields = conflict.form("/edit").fields
    assert (fields["text"], fields["summary"]) == ("shared\nmine\n", "my summary")
    # Somebody saves once more: the deliberate save is again on what was shown.
    newest = api.read(unique)
    api("PUT", unique, {"text": "shared\ntheirs, again\n"}, match=f'"{newest["revision"]}"')
    again = visitor.submit(conflict, "/edit")
    assert again.status_code == 412
    assert "theirs, again" in again.text
    visitor.follow(visitor.submit(Shown(again), "/edit", text="shared\ntheirs, again\nmine\n"))
    assert api.read(unique)["text"] == "shared\ntheirs, again\nmine\n"
    assert api.read(unique)["summary"] == "my summary"


def test_the_same_form_sent_twice_is_saved_once(api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique)
    edit = visitor.get(f"{document_url(unique)}/edit")
    for _ in range(2):
        assert visitor.submit(edit, "/edit", text="once").status_code == 303
    assert len(api("GET", f"{unique}/history").json()["versions"]) == 2


@pytest.mark.parametrize("change", ["freeze", "delete", "title", "restore"])
def test_other_stale_changes_are_shown_and_can_be_repeated(
    api: Api, visitor: Visitor, unique: str, change: str
) -> None:
    first = api.created(unique, text="before")
    url = document_url(unique)
    forms = {"freeze": url, "restore": f"{url}/history/{first['revision']}/restore"}
    page = visitor.get(forms.get(change, f"{url}/{change}"))
    api("PUT", unique, {"text": "meanwhile"}, match=f'"{first["revision"]}"')
    mine = {"title": "My title"} if change == "title" else {}
    answer = visitor.submit(page, f"/{change}", **mine)
    assert answer.status_code == 412
    shown = Shown(answer)
    assert "Added + meanwhile" in shown.text
    assert api.read(unique)["text"] == "meanwhile"
    assert shown.form(f"/{change}").fields.get("title", "") == mine.get("title", "")
    assert visitor.submit(shown, f"/{change}").status_code == 303
    if change == "delete":
        assert api("GET", unique).status_code == 404
    else:
        found = api.read(unique)
        expected = {
            "freeze": ("agentWrites", "disabled"),
            "title": ("title", "My title"),
            "restore": ("text", "before"),
        }
        assert found[expected[change][0]] == expected[change][1]


def test_what_was_typed_into_a_deleted_document_becomes_a_new_one(api: Api, visitor: Visitor, unique: str) -> None:
    first = api.created(unique)
    edit = visitor.get(f"{document_url(unique)}/edit")
    api("DELETE", unique, match=f'"{first["revision"]}"')
    answer = visitor.submit(edit, "/edit", text="hours of work")
    assert answer.status_code == 404
    page = Shown(answer)
    assert page.form("/new").fields["text"] == "hours of work"
    visitor.follow(visitor.submit(page, "/new", id=f"{unique}-2", title="Saved after all"))
    assert api.read(f"{unique}-2")["text"] == "hours of work"


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"id": "no spaces"}, 400, "is not a document id"),
        ({"id": ""}, 400, "is not a document id"),
        ({"title": ""}, 400, "title is empty"),
        ({"title": "é" * 121}, 413, "the limit is 240"),
        ({"summary": "x" * 241}, 413, "the limit is 240"),
        ({"text": "ü" * 30_000}, 413, "text has 60000 bytes; the limit is 8192"),
    ],
)
def test_a_refused_form_comes_back_with_what_was_typed(
    visitor: Visitor, api: Api, unique: str, fields: dict[str, str], status: int, words: str
) -> None:
    typed = {"id": unique, "title": "T", "summary": "s", "text": "t"} | fields
    answer = visitor.submit(visitor.get(f"{NOTES}/new"), "/new", **typed)
    assert answer.status_code == status
    page = Shown(answer)
    assert words in page.text
    assert page.form("/new").fields | typed == page.form("/new").fields
    assert api("GET", unique).status_code == 404


def test_an_id_in_use_is_refused_and_an_edit_over_the_limit_comes_back(api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique, text="t")
    answer = visitor.submit(visitor.get(f"{NOTES}/new"), "/new", id=unique, title="T", text="mine")
    assert answer.status_code == 412
    assert Shown(answer).form("/new").fields["text"] == "mine"
    edit = visitor.get(f"{document_url(unique)}/edit")
    answer = visitor.submit(edit, "/edit", text="x" * 8193)
    assert answer.status_code == 413
    assert len(Shown(answer).form("/edit").fields["text"]) == 8193
    answer = visitor.submit(visitor.get(f"{document_url(unique)}/title"), "/title", title="x" * 241)
    assert answer.status_code == 413
    assert Shown(answer).form("/title").fields["title"] == "x" * 241
    assert api.read(unique)["text"] == "t"


@pytest.mark.parametrize(
    "text",
    ["", "\n", "\n\n x", "a\r\nb\r\n", "a\rb\n", "nul \0 here", "\tx  \n", "&amp;<br>", "\u2028\u0085\ufeff", "🦊"],
)
def test_an_edit_of_the_summary_leaves_every_byte_of_the_text(
    api: Api, visitor: Visitor, unique: str, text: str
) -> None:
    api.created(unique, text=text)
    edit = visitor.get(f"{document_url(unique)}/edit")
    visitor.follow(visitor.submit(edit, "/edit", summary="new"))
    found = api.read(unique)
    assert (found["text"], found["summary"]) == (text, "new")


def test_an_edit_keeps_dos_line_ends_and_warns_where_it_cannot(api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique, text="one\r\ntwo\r\n")
    edit = visitor.get(f"{document_url(unique)}/edit")
    assert "a browser replaces" not in edit.text
    visitor.follow(visitor.submit(edit, "/edit", text="one\nand a half\ntwo\n"))
    assert api.read(unique)["text"] == "one\r\nand a half\r\ntwo\r\n"
    api.created(f"{unique}-2", text="one\rtwo\n")
    assert "a browser replaces" in visitor.get(f"{document_url(unique + '-2')}/edit").text


def test_documents_are_paged_and_filtered(server: Server, visitor: Visitor) -> None:
    with gitmem.open_store(server.folder) as store:
        environment = store.project("bot").environment("production")
        many = gitmem.define_memory(id="many", description="Many.")
        environment.deploy(agent="tutor", memories=[many])
        for number in range(60):
            environment.documents("many").create(f"d-{number}", title=f"Éclair {number}")
    url = "/projects/bot/production/memory/many"
    first = visitor.get(url)
    assert "60 documents" in first.text
    assert ("Éclair 59" in first.links, "Éclair 9" in first.links) == (True, False)
    second = visitor.get(first.links["Older documents →"])
    assert ("Éclair 59" in second.links, "Éclair 9" in second.links) == (False, True)
    assert second.links["← Newest documents"] == url
    assert "Older documents →" not in second.links
    found = visitor.get(f"{url}?filter=éCLAIR+1")
    assert len([title for title in found.links if title.startswith("Éclair")]) == 11
    pages = visitor.get(f"{url}?filter=d-")
    assert "Éclair 0" in visitor.get(pages.links["Older documents →"]).links
    assert "No document has" in visitor.get(f"{url}?filter=%3Cb%3E").text
    assert visitor.get(f"{url}?cursor=abc", 400)


def test_retired_resources_stay_and_are_marked(server: Server, visitor: Visitor) -> None:
    with gitmem.open_store(server.folder) as store:
        environment = store.project("bot").environment("production")
        old = gitmem.define_memory(id="old", description="Was used once.")
        environment.deploy(agent="archivist", memories=[old])
        environment.documents("old").create("kept", title="Kept")
        environment.deploy(agent="archivist", memories=[])
    page = visitor.get("/projects/bot/production")
    assert "retired" in page.text
    listing = visitor.get(page.links["old"])
    assert "retired" in listing.text
    assert "Kept" in listing.links


def test_sessions_show_bindings_and_saves(server: Server, api: Api, visitor: Visitor, unique: str) -> None:
    api.created(unique, text="before")
    with gitmem.open_store(server.folder) as store:
        environment = store.project("bot").environment("development")
        bound = {"notes": {"scope": "document", "id": unique, "access": "read-write"}}
        session = environment.sessions.create(agent="tutor", memory=bound, source="a test")
        render = session.render(["notes"])
        saved = render.call("memory_save", {"text": "by an agent", "summary": "s"})
        assert saved.status == "saved", saved
    environment_page = visitor.get(ENVIRONMENT)
    page = visitor.get(environment_page.links[session.id])
    for words in ("tutor", "active", f"notes/{unique}", "read-write", "writable", "Save 1", "11 B", "from a test"):
        assert words in page.text
    document = visitor.get(document_url(unique))
    assert document.links["agent"].endswith(session.id)
    ended = visitor.follow(visitor.submit(page, "/end"))
    assert "ended" in ended.text
    assert "not writable" in ended.text
    assert session.id in visitor.get(f"{ENVIRONMENT}/sessions").links


def test_what_is_not_there_is_a_page_with_its_status(visitor: Visitor, api: Api, unique: str) -> None:
    html = {"Accept": "text/html,*/*;q=0.8"}
    for path in ("/nowhere", "/projects", "/projects/bot", "/%FF", "/projects//development"):
        assert "nothing at this address" in visitor.get(path, 404, html).text, path
    api.created(unique)
    url = document_url(unique)
    for path in (
        "/projects/nobody/development", "/projects/bot/staging", "/projects/%2e%2e/development",
        f"{ENVIRONMENT}/memory/none",
        f"{ENVIRONMENT}/sessions/ses_none", f"{ENVIRONMENT}/sessions/%FF", f"{url}/history/0000000",
        f"{url}/history/zzz", f"{url}/history/{'0' * 40}/restore", f"{ENVIRONMENT}/memory/none/new",
    ):  # fmt: skip
        assert visitor.client.get(path).status_code == 404, path
    for path in (document_url("a%20b"), f"{ENVIRONMENT}/memory/No", f"{ENVIRONMENT}/sessions?cursor=x",
                 f"{url}?done=a&done=b", f"{url}?x=%FF", f"{url}/history?cursor=x"):  # fmt: skip
        assert visitor.client.get(path).status_code == 400, path
    for method, path, allow in (
        ("POST", "/", "GET, HEAD"),
        ("GET", f"{url}/freeze", "POST"),
        ("PUT", f"{url}/edit", "GET, POST, HEAD"),
    ):
        answer = visitor.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allow), path


def test_no_address_and_no_form_fails_inside(api: Api, visitor: Visitor, server: Server, unique: str) -> None:
    revision = api.created(unique)["revision"]
    right = {"project": "bot", "environment": "development", "resource": "notes", "document": unique,
             "revision": revision, "session": "ses_" + "0" * 26}  # fmt: skip
    odd = ["%00", "%FF", "..", "-", "a" * 2000, "%E2%80%A8", "%F0%9F%A6%8A", "'", "%25s", "{{7*7}}"]
    csrf = visitor.get("/sign-in").form("/sign-in").fields["csrf"]
    before = len([line for line in server.lines() if line["event"] != "request"])
    for page in PAGES:
        for name in [name for name in right if f"{{{name}}}" in page.path]:
            for value in odd:
                path = page.path.format_map(right | {name: value})
                assert visitor.client.get(path).status_code < 500, path
                form = {"csrf": csrf, "revision": revision, "text": "t", "title": "t", "summary": "", "id": "a b"}
                assert visitor.client.post(path, data=form).status_code < 500, path
        if page.act is not None and "{session}" not in page.path:
            path = page.path.format_map(right)
            for value in ("", "\0", "\ud7ff\U0010ffff", "a" * 20_000, revision[:8], "z"):
                form = {"csrf": csrf, **dict.fromkeys(("revision", "text", "title", "summary", "id", "key"), value)}
                assert visitor.client.post(path, data=form).status_code < 500, (path, value)
    assert len([line for line in server.lines() if line["event"] != "request"]) == before


def test_an_environment_without_anything_says_what_to_do(visitor: Visitor, server: Server) -> None:
    with gitmem.open_store(server.folder) as store:
        store.project("fresh").create()
    page = visitor.get("/projects/fresh/production")
    assert "gitmem deploy --environment production" in page.text
    assert "Nothing deployed yet" in visitor.get("/").text
    assert "No agent has run here yet" in visitor.get("/projects/fresh/production/sessions").text


def test_the_page_says_cheaply_whether_anything_was_saved(api: Api, visitor: Visitor, unique: str) -> None:
    tips = [visitor.client.get(f"{ENVIRONMENT}/live").json()["tip"]]
    assert visitor.client.get(f"{ENVIRONMENT}/live").json()["tip"] == tips[0]
    first = api.created(unique)
    tips.append(visitor.client.get(f"{ENVIRONMENT}/live").json()["tip"])
    api("PATCH", unique, {"title": "New"}, match=f'"{first["revision"]}"')
    tips.append(visitor.client.get(f"{ENVIRONMENT}/live").json()["tip"])
    assert len(set(tips)) == 3
    page = visitor.get(document_url(unique))
    assert [attributes["data-tip"] for tag, attributes in page.tags if tag == "main"] == [tips[2]]
