"""Bodies that are no good, and those that come oddly (HAZARDS "Faces")."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

from tests.http.server import ENVIRONMENT, Api, Server, answered, raw, refused

TITLE = json.dumps({"title": "T"}).encode()


def head(api: Api, document_id: str, *lines: str, method: str = "PUT") -> bytes:
    """The head of a create."""
    start = f"{method} {api.documents}/{document_id}?environment=development HTTP/1.1"
    fixed = ("Host: localhost", "If-None-Match: *", "Connection: close")
    return "\r\n".join((start, *fixed, *lines, "", "")).encode()


@pytest.mark.parametrize(
    "types",
    [
        [], [""], ["text/plain"], ["text/json"], ["application/jsonx"], ["application/merge-patch+json"], ["json"],
        ["application/x-www-form-urlencoded"], ["application/json; charset=latin-1"], ["application/json, text/plain"],
        ["application/json", "text/plain"], ['application/json; charset="utf-16"'],
    ],
)  # fmt: skip
def test_another_media_type_is_415(api: Api, unique: str, types: list[str]) -> None:
    headers = [("If-None-Match", "*"), *(("Content-Type", value) for value in types)]
    path = f"{api.documents}/{unique}"
    refused(api.client.put(path, params=ENVIRONMENT, headers=headers, content=TITLE), 415, "invalid_request")


@pytest.mark.parametrize(
    "value", ["application/json; charset=utf-8", "Application/JSON", 'application/json ;charset="UTF-8"; x=y']
)
def test_json_may_be_spelled_in_its_ways(api: Api, unique: str, value: str) -> None:
    headers = {"If-None-Match": "*", "Content-Type": value}
    answer = api.client.put(f"{api.documents}/{unique}", params=ENVIRONMENT, headers=headers, content=TITLE)
    assert answer.status_code == 201


def test_a_compressed_body_is_415(api: Api, unique: str) -> None:
    headers = {"If-None-Match": "*", "Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = api.client.put(
        f"{api.documents}/{unique}", params=ENVIRONMENT, headers=headers, content=gzip.compress(TITLE)
    )
    refused(answer, 415, "invalid_request")
    headers["Content-Encoding"] = "identity"
    answer = api.client.put(f"{api.documents}/{unique}", params=ENVIRONMENT, headers=headers, content=TITLE)
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{", b"{}x", b"{'title': 'T'}", b'{"title": "T",}', b"nul", b'{"title": "T", "title": "U"}',
        b'{"title": "T", "summary": NaN}', b'{"title": "\xff"}', b"\xef\xbb\xbf" + TITLE,
        TITLE.decode().encode("utf-16"), b'{"title": "a\nb"}', b"[" * 10_000, b'{"a":' * 10_000, b"1" * 5_000,
        b'{"title": "T", "text": 1' + b"0" * 400 + b"}", b"null",
    ],
)  # fmt: skip
def test_what_is_no_json_is_400(api: Api, unique: str, body: bytes) -> None:
    headers = {"If-None-Match": "*", "Content-Type": "application/json"}
    answer = api.client.put(f"{api.documents}/{unique}", params=ENVIRONMENT, headers=headers, content=body)
    refused(answer, 400, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        {}, [], "title", 7, True, {"title": ""}, {"title": None}, {"title": 1}, {"title": ["a"]},
        {"title": "T", "id": "x"}, {"title": "T", "text": None}, {"title": "T", "agentWrites": "on"},
        {"title": "T", "agentWrites": True}, {"title": "T", "agent_writes": "enabled"}, {"title": "T", "": 1},
        {"title": "\ud800"}, {"title": "T", "text": "a\udc00b"}, {"title": "T", "\ud83d": 1},
        {"title": "T", "agentWrites": "\ud800"}, {"title": "T", "text": 10**19}, {"title": "T", "text": 1e999},
    ],
)  # fmt: skip
def test_fields_that_do_not_fit_are_400(api: Api, unique: str, body: object) -> None:
    refused(api("PUT", unique, json.loads(json.dumps(body)), none_match="*"), 400, "invalid_request")
    refused(api("GET", unique), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("PUT", {}), ("PUT", {"title": "T"}), ("PUT", {"text": "x", "title": "T"}), ("PUT", {"text": None}),
        ("PUT", {"text": "x", "summary": None}), ("PATCH", {}), ("PATCH", {"text": "x"}), ("PATCH", {"title": ""}),
        ("PATCH", {"title": None}), ("PATCH", {"agentWrites": "frozen"}), ("PATCH", {"title": "T", "summary": "x"}),
    ],
)  # fmt: skip
def test_changes_that_do_not_fit_are_400(api: Api, unique: str, method: str, body: object) -> None:
    before = api.created(unique)
    refused(api(method, unique, body, match=f'"{before["revision"]}"'), 400, "invalid_request")
    assert api.read(unique) == before


@pytest.mark.parametrize(
    "text", ["\0", "\u2028\u2029", "\r\n\r", "\ufeffx", "😀 é", "a\n", "\n", "\x7f\x1b[31m", '"\\', "\ufffd\uffff"]
)
def test_every_text_comes_back_as_it_was(api: Api, unique: str, text: str) -> None:
    document = api.created(unique, title=f"t{text}", text=text, summary=text)
    found = api.read(unique)
    assert (found, found["text"], found["title"]) == (document, text, f"t{text}")
    assert found["bytes"] == len(text.encode())


def test_a_body_of_64_kib_is_the_largest(api: Api, unique: str) -> None:
    def padded(size: int) -> bytes:
        return TITLE[:-1] + b" " * (size - len(TITLE)) + b"}"

    headers = {"If-None-Match": "*", "Content-Type": "application/json"}
    path = f"{api.documents}/{unique}"
    for content in (padded(65_537), iter([padded(65_537)]), iter([b" " * 1_000] * 70)):
        answer = api.client.put(path, params=ENVIRONMENT, headers=headers, content=content)
        refused(answer, 413, "memory_limit_exceeded")
    answer = api.client.put(path, params=ENVIRONMENT, headers=headers, content=iter([padded(65_536)]))
    assert answer.status_code == 201


def test_an_announced_length_is_refused_before_the_body(api: Api, server: Server, unique: str) -> None:
    for length in ("65537", "9" * 18):
        sent = head(api, unique, "Content-Type: application/json", f"Content-Length: {length}", "Expect: 100-continue")
        status, _, body = raw(server.port, sent)
        assert (status, json.loads(body)["error"]["code"]) == (413, "memory_limit_exceeded")


def test_a_body_comes_in_pieces_and_after_100_continue(api: Api, server: Server, unique: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        lines = ("Content-Type: application/json", "Transfer-Encoding: chunked", "Expect: 100-continue")
        connection.sendall(head(api, unique, *lines))
        with connection.makefile("rb") as file:
            assert file.readline() == b"HTTP/1.1 100 Continue\r\n"
            assert file.readline() == b"\r\n"
            for byte in TITLE:
                connection.sendall(b"1\r\n%c\r\n" % byte)
            connection.sendall(b"0\r\n\r\n")
            assert answered(file)[0] == 201


def test_whoever_leaves_in_the_middle_of_a_body_leaves_nothing(api: Api, server: Server, unique: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(head(api, unique, "Content-Type: application/json", "Content-Length: 500") + TITLE)
    refused(api("GET", unique), 404, "not_found")
    assert api("PUT", unique, {"title": "T"}, none_match="*").status_code == 201


def test_a_body_where_none_is_wanted_does_no_harm(api: Api, unique: str) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    path = f"{api.documents}/{unique}"
    answer = api.client.request("GET", path, params=ENVIRONMENT, content=b"x" * 200_000)
    assert answer.status_code == 200
    answer = api.client.request("DELETE", path, params=ENVIRONMENT, headers={"If-Match": tag}, content=b"{}")
    assert answer.status_code == 204


def test_refused_bodies_do_not_break_the_connection(api: Api, server: Server, unique: str) -> None:
    large = head(api, unique, "Content-Type: application/json", "Content-Length: 70000")
    large = large.replace(b"Connection: close\r\n", b"") + b"x" * 70_000
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(large + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with connection.makefile("rb") as file:
            assert answered(file)[0] == 413
            assert answered(file)[0] == 200
