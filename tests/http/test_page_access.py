"""Who may see and use the Memory page, and what must not act on it from outside."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem.errors import UnauthorizedError
from gitmem.http.page.signins import LINK_SECONDS, SIGN_IN_SECONDS, SignIns
from gitmem.keys import Keys
from tests.http.page import ENVIRONMENT, NOTES, Shown, Visitor, document_url, visiting
from tests.http.server import Api, Server, client_of, prepared_store, raw
from tests.workshop import ManualClock

EVIL = (
    '<script>document.title="acted"</script><img src=x onerror=alert(1)>"\'><!--</textarea></pre><svg/onload=alert(1)>'
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two workers whose store has had a key from the start."""
    folder = tmp_path_factory.mktemp("guarded-page")
    store = prepared_store(folder / "store")
    with gitmem.open_store(store) as opened:
        opened.project("other").create()
    Keys(str(store)).create(name="first")
    with Server(store, "--workers", "2", "--open", log=folder / "log") as running:
        yield running
    assert not [line for line in running.lines() if line["event"] != "request"]
    assert "token" not in running.log.read_text()


@pytest.fixture
def keys(guarded: Server) -> Keys:
    return Keys(str(guarded.folder))


@pytest.fixture
def visitor(guarded: Server) -> Iterator[Visitor]:
    with visiting(guarded) as found:
        yield found


@pytest.fixture
def local(server: Server) -> Iterator[Visitor]:
    """Somebody at a server without keys."""
    with visiting(server) as found:
        yield found


# Signing in


def test_a_key_opens_the_page_and_signing_out_closes_it(
    guarded: Server, visitor: Visitor, keys: Keys, unique: str
) -> None:
    page = visitor.get(NOTES, 401)
    assert page.form("/sign-in").fields["target"] == NOTES
    _, token = keys.create(name=unique)
    listing = visitor.follow(visitor.submit(page, "/sign-in", key=f" {token}\n"))
    assert str(listing.answer.request.url).endswith(NOTES)
    assert unique[:40] in listing.text
    with visiting(guarded) as copy:
        copy.client.cookies.update(dict(visitor.client.cookies))
        copy.get(NOTES)
        out = visitor.submit(listing, "/sign-out")
        copy.get(NOTES, 401)
    assert out.headers["clear-site-data"] == '"cache"'
    visitor.follow(out)
    visitor.get(NOTES, 401)


def test_a_wrong_key_does_not(visitor: Visitor, keys: Keys, unique: str) -> None:
    key, token = keys.create(name=unique)
    for wrong in ("", "x", key.id, token[:-1], "é" * 70, f"{token}x"):
        answer = visitor.submit(visitor.get("/sign-in"), "/sign-in", key=wrong)
        assert answer.status_code == 401, wrong
        assert "not known here" in Shown(answer).text
        assert wrong not in answer.text or len(wrong) < 2
    visitor.get("/", 401)


def test_the_cookie_is_a_new_one_out_of_reach_of_scripts_and_other_sites(
    guarded: Server, visitor: Visitor, keys: Keys, unique: str
) -> None:
    before = visitor.get("/sign-in").answer.headers["set-cookie"]
    _, token = keys.create(name=unique)
    answer = visitor.submit(visitor.get("/sign-in"), "/sign-in", key=token)
    after = answer.headers["set-cookie"]
    for cookie in (before, after):
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert before.partition(";")[0] != after.partition(";")[0]
    assert token not in after
    kept = b"".join(path.read_bytes() for path in (guarded.folder / ".gitmem" / "page").iterdir())
    assert after.partition("=")[2].partition(";")[0].encode() not in kept


def test_nobody_is_sent_elsewhere_after_signing_in(visitor: Visitor, keys: Keys, unique: str) -> None:
    _, token = keys.create(name=unique)
    for target in (
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "",
        "/a\nb",
        "/é",
    ):
        answer = visitor.submit(visitor.get("/sign-in"), "/sign-in", key=token, target=target)
        assert (answer.status_code, answer.headers["location"]) == (303, "/"), target


def test_a_revoked_key_ends_its_sign_ins_at_once(guarded: Server, keys: Keys, unique: str) -> None:
    key, token = keys.create(name=unique)
    with visiting(guarded) as visitor:
        page = visitor.sign_in(token)
        edit = visitor.get(f"{NOTES}/new")
        keys.revoke(key.id)
        for _ in range(6):
            visitor.get("/", 401)
        answer = visitor.submit(edit, "/new", id=unique, title="T", text="long <typed> text")
        assert answer.status_code == 401
        assert "long <typed> text" in Shown(answer).text
        assert visitor.client.get(f"{ENVIRONMENT}/live").status_code == 401
        assert visitor.submit(page, "/sign-out").status_code == 303


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_link_signs_in_once(tmp_path: Path, workers: str) -> None:
    store = prepared_store(tmp_path / "store")
    Keys(str(store)).create(name="first")
    with Server(store, "--workers", workers, "--open", log=tmp_path / "log") as server:
        link = server.ready["open"]
        with visiting(server) as visitor, visiting(server) as late:
            assert visitor.client.head(link).status_code == 405
            assert visitor.client.get(link, headers={"Sec-Purpose": "prefetch;prerender"}).status_code == 403
            visitor.follow(visitor.client.get(link))
            for _ in range(4):
                visitor.get(NOTES)
            assert "used or has expired" in late.get(link, 401).text
            late.get(NOTES, 401)
            visitor.follow(visitor.submit(visitor.get(f"{NOTES}/new"), "/new", id="by-link", title="T"))
            kept = dict(visitor.client.cookies)
    # What a link opened ends with the server.
    with Server(store, "--workers", workers, log=tmp_path / "log") as server, visiting(server) as visitor:
        assert "open" not in server.ready
        visitor.client.cookies.update(kept)
        visitor.get(NOTES, 401)
    assert link.rpartition("=")[2] not in (tmp_path / "log").read_text()


def test_links_and_sign_ins_end_by_themselves(tmp_path: Path, clock: ManualClock) -> None:
    signins = SignIns(str(tmp_path), "run", clock=clock)
    link, other = signins.link(), signins.link()
    clock.move(LINK_SECONDS * 1000 - 1)
    token = signins.redeem(link)
    clock.move(1)
    for used in (link, other, "", "../../x", token):
        with pytest.raises(UnauthorizedError):
            signins.redeem(used)
    assert signins.find(token) is not None
    assert signins.find(other) is None
    assert SignIns(str(tmp_path), "another run", clock=clock).find(token) is None
    clock.move(SIGN_IN_SECONDS * 1000)
    assert signins.find(token) is None
    folder = tmp_path / ".gitmem" / "page"
    assert folder.stat().st_mode & 0o077 == 0
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    signins.begin("key")
    assert len(list(folder.iterdir())) == 1


# What a key may


def test_a_members_key_gets_403_on_what_is_for_owners(visitor: Visitor, keys: Keys, unique: str) -> None:
    _, token = keys.create(name=unique, member="pat@example.org", role="member")
    answer = visitor.submit(visitor.get("/sign-in"), "/sign-in", key=token)
    assert answer.status_code == 303
    page = visitor.get("/", 403)
    for path in (
        ENVIRONMENT,
        NOTES,
        f"{NOTES}/new",
        f"{ENVIRONMENT}/sessions",
        f"{ENVIRONMENT}/live",
        document_url("x"),
    ):
        visitor.get(path, 403)
    form = {"csrf": page.form("/sign-out").fields["csrf"], "id": unique, "title": "T", "text": "", "summary": ""}
    assert visitor.post(f"{NOTES}/new", form).status_code == 403
    visitor.follow(visitor.submit(page, "/sign-out"))
    _, admin = keys.create(name=f"{unique}-admin", member="lee@example.org", role="admin")
    assert "bot" in visitor.sign_in(admin).text


def test_a_key_to_read_shows_no_forms_and_sends_none(
    visitor: Visitor, keys: Keys, guarded: Server, unique: str
) -> None:
    with client_of(guarded, keys.create(name=f"{unique}-owner")[1]) as owner:
        Api(owner).created(unique)
    _, token = keys.create(name=unique, scopes=("memory:read",))
    visitor.sign_in(token)
    page = visitor.get(document_url(unique))
    assert [form.action for form in page.forms] == ["/sign-out"]
    assert not {"Edit", "Delete", "Retitle"} & set(page.links)
    edit = visitor.get(f"{document_url(unique)}/edit")
    assert visitor.submit(edit, "/edit", text="mine").status_code == 403


def test_a_projects_key_sees_no_other_project(visitor: Visitor, keys: Keys, unique: str) -> None:
    _, token = keys.create(name=unique, project="other")
    home = visitor.sign_in(token)
    assert "/projects/other/development" in home.answer.text
    assert "/projects/bot/" not in home.answer.text
    visitor.get(ENVIRONMENT, 403)
    visitor.get("/projects/other/development")


def test_a_key_in_a_header_shows_pages_too(guarded: Server, keys: Keys, unique: str) -> None:
    _, token = keys.create(name=unique)
    with client_of(guarded, token) as client:
        assert client.get(NOTES).status_code == 200
        assert client.post(f"{NOTES}/new", data={"id": unique, "title": "T"}).status_code == 403


# What other sites may not


def test_a_form_needs_the_token_of_the_browser_that_was_shown_it(
    api: Api, server: Server, local: Visitor, unique: str
) -> None:
    form = local.get(f"{NOTES}/new")
    fields = form.form("/new").fields | {"id": unique, "title": "T", "text": "typed"}
    with visiting(server) as stranger:
        other = stranger.get(f"{NOTES}/new").form("/new").fields["csrf"]
        assert stranger.post(f"{NOTES}/new", fields).status_code == 403
    for wrong in ("", "x", other, fields["csrf"][:-1], "é"):
        answer = local.post(f"{NOTES}/new", fields | {"csrf": wrong})
        assert answer.status_code == 403
        assert "typed" in Shown(answer).text
    del fields["csrf"]
    assert local.post(f"{NOTES}/new", fields).status_code == 403
    assert api("GET", unique).status_code == 404
    local.follow(local.submit(form, "/new", id=unique, title="T"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ],
    ids=str,
)
def test_forms_of_other_sites_are_refused_without_a_key_too(
    api: Api, local: Visitor, unique: str, headers: dict[str, str]
) -> None:
    api.created(unique)
    page = local.get(document_url(unique))
    assert local.submit(page, "/freeze", headers=headers).status_code == 403
    assert api.read(unique)["agentWrites"] == "enabled"
    own = {"Origin": str(local.client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert local.submit(page, "/freeze", headers=own).status_code == 303


def test_a_request_from_elsewhere_signs_nobody_out(guarded: Server) -> None:
    with visiting(guarded) as visitor:
        elsewhere = {"Sec-Fetch-Site": "cross-site"}
        answer = visitor.client.get(NOTES, headers=elsewhere | {"Sec-Fetch-Dest": "document"})
        assert (answer.status_code, answer.headers["refresh"]) == (200, "0")
        assert "set-cookie" not in answer.headers
        answer = visitor.client.get(NOTES, headers=elsewhere | {"Sec-Fetch-Dest": "image"})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert "set-cookie" in visitor.get(NOTES, 401).answer.headers


def test_a_form_is_urlencoded_utf8_and_bounded(server: Server, local: Visitor, unique: str) -> None:
    fields = local.get(f"{NOTES}/new").form("/new").fields | {"id": unique, "title": "T"}
    post = local.client.post
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    csrf = fields["csrf"]
    assert post(f"{NOTES}/new", json=fields).status_code == 415
    assert post(f"{NOTES}/new", files={"id": b"x"}).status_code == 415
    assert (
        post(f"{NOTES}/new", content=b"csrf=" + csrf.encode(), headers=kind | {"Content-Encoding": "gzip"}).status_code
        == 415
    )
    for body in ("id=%FF", "id=é", "id=a&id=b", "&".join(f"a{n}=1" for n in range(50))):
        assert post(f"{NOTES}/new", content=f"csrf={csrf}&{body}".encode(), headers=kind).status_code == 400, body
    missing = post(f"{NOTES}/new", data={"csrf": csrf, "id": unique})
    assert missing.status_code == 400
    assert "no field" in Shown(missing).text
    assert post(f"{NOTES}/new", content=b"x" * 600_000, headers=kind).status_code == 413
    assert (
        raw(server.port, f"POST {NOTES}/new HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())[0]
        == 415
    )


def test_stored_markup_is_text_everywhere(server: Server, local: Visitor, unique: str) -> None:
    with gitmem.open_store(server.folder) as store:
        environment = store.project("bot").environment("development")
        documents = environment.documents("notes")
        made = documents.create(unique, title=EVIL[:200], text=EVIL, summary=EVIL[:200])
        bound = {"notes": {"scope": "document", "id": unique, "access": "read-write"}}
        session = environment.sessions.create(agent="tutor", memory=bound, source=EVIL[:200])
        declared = gitmem.define_memory(id="evil", description=EVIL)
        store.project("bot").environment("production").deploy(agent="evil", memories=[declared])
    url = document_url(unique)
    paths = [
        url, f"{url}/edit", f"{url}/title", f"{url}/delete", f"{url}/history", f"{url}/history/{made.revision}",
        f"{url}/history/{made.revision}/restore", f"{ENVIRONMENT}/sessions/{session.id}", "/projects/bot/production",
        "/projects/bot/production/memory/evil", "/projects/bot/production/memory/evil/new",
    ]  # fmt: skip
    pages = [local.get(path) for path in paths]
    pages.append(local.get(f"{NOTES}?filter=%3Cscript%3Ealert(1)%3C/script%3E"))
    edit = local.get(f"{url}/edit")
    pages.append(Shown(local.submit(edit, "/edit", text=EVIL * 100)))
    for page in pages:
        tags = [tag for tag, _ in page.tags]
        assert tags.count("script") == 1
        assert "svg" not in tags
        assert all(not name.startswith("on") and name != "style" for _, found in page.tags for name in found)
        assert [found["src"] for tag, found in page.tags if tag == "img" and "icon" not in str(found["src"])] == []
    assert edit.form("/edit").fields["text"] == EVIL


def test_every_page_forbids_what_it_does_not_need(api: Api, local: Visitor, server: Server, unique: str) -> None:
    api.created(unique)
    page = local.get(document_url(unique))
    answers = [page.answer, local.get("/sign-in").answer, local.get(document_url("missing"), 404).answer]
    answers.append(local.submit(page, "/freeze"))
    for answer in answers:
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
    assert not re.search(r"<script(?![^>]* src=)|<style|style=|javascript:", page.answer.text)


def test_the_pages_own_files_are_served_as_what_they_are(local: Visitor) -> None:
    page = local.get("/sign-in")
    urls = [str(found.get("src") or found.get("href")) for tag, found in page.tags if tag in {"script", "link", "img"}]
    kinds = {local.client.get(url).headers["content-type"].partition(";")[0] for url in urls}
    assert kinds == {"text/javascript", "text/css", "image/svg+xml"}
    for url in urls:
        answer = local.client.get(url)
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")
        assert "immutable" in answer.headers["cache-control"]
    for path in ("/static/", "/static/page.py", "/static/..%2fstatic.py", "/static/%2e%2e/static.py"):
        assert local.client.get(path).status_code in {400, 404}


def test_without_keys_nobody_signs_in_until_there_is_one(own_store: Path, tmp_path: Path) -> None:
    with Server(own_store, "--open", log=tmp_path / "log") as server, visiting(server) as visitor:
        page = visitor.get("/")
        assert "Sign out" not in page.text
        with visiting(server) as guest:
            guest.follow(guest.client.get(server.ready["open"]))
            Keys(str(own_store)).create(name="first")
            visitor.get("/", 401)
            guest.get(NOTES)
