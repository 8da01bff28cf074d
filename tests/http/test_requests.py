"""Paths, methods and heads of requests: whatever comes, the answer is JSON of the seed's shape."""

from __future__ import annotations

import json

import pytest

from tests.http.server import ENVIRONMENT, Api, Server, raw, refused


@pytest.mark.parametrize(
    "spelled", ["%FF", "%C3%28", "a%2Fb", "a%2fhistory", "%00", "%0A", "a%0A", "b%20d", "a.b", "%EF%BF%BD", "é",
                "%ED%A0%80", "%", "%zz", "a%", "~", "a" * 129, "..%2Fworkshop", "%2e%2e", "a%5Cb"],
)  # fmt: skip
def test_an_id_outside_the_grammar_is_400(api: Api, server: Server, spelled: str) -> None:
    for method, suffix in (("GET", ""), ("GET", "/history"), ("DELETE", "")):
        path = f"{api.documents}/{spelled}{suffix}?environment=development"
        sent = f'{method} {path} HTTP/1.1\r\nHost: localhost\r\nIf-Match: "x"\r\nConnection: close\r\n\r\n'
        status, _, body = raw(server.port, sent.encode())
        assert (status, json.loads(body)["error"]["code"]) == (400, "invalid_request"), method


def test_ids_that_do_not_decode_are_never_one(api: Api, server: Server, unique: str) -> None:
    api.created(unique)
    for spelled in (f"{unique}%FF", f"{unique}%00", f"{unique}%0A", f"{unique}%2F"):
        sent = f"GET {api.documents}/{spelled}?environment=development HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert raw(server.port, sent.encode())[0] == 400
    escaped = "".join(f"%{ord(c):02X}" for c in unique)
    assert api.client.get(f"{api.documents}/{escaped}", params=ENVIRONMENT).json()["id"] == unique


def test_ids_differ_in_case_and_may_look_like_options(api: Api) -> None:
    for document_id in ("case", "Case", "-rf", "--json", "_", "-", "history", "restore", "con", "a" * 128):
        api.created(document_id, text=document_id)
    for document_id in ("case", "Case", "-rf", "--json", "_", "-", "history", "restore", "con", "a" * 128):
        assert api.read(document_id)["text"] == document_id


def test_an_unknown_path_is_404(api: Api, server: Server) -> None:
    for path in ("/nope", "/api", "/healthz/", f"{api.documents}/", f"{api.documents}/a/b", "/healthz;x"):
        refused(api.client.get(path, params=ENVIRONMENT), 404, "not_found")
    # A client library would take the second slash for the start of a host's name.
    assert raw(server.port, b"GET //healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 404
    assert raw(server.port, b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 404
    for path in ("/%FF", "/healthz%0A", "/%2Fhealthz", "/healthz%00"):
        status, _, body = raw(server.port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert (status, json.loads(body)["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("path", "methods", "allow"),
    [
        ("{documents}/x", ["OPTIONS", "POST", "TRACE"], "GET, PUT, PATCH, DELETE, HEAD"),
        ("{documents}", ["PUT", "DELETE", "OPTIONS"], "GET, HEAD"),
        ("/api/managed-agents/deployments", ["GET", "HEAD"], "POST"),
        ("/healthz", ["POST"], "GET, HEAD"),
    ],
)
def test_another_method_is_405(api: Api, path: str, methods: list[str], allow: str) -> None:
    for method in methods:
        answer = api.client.request(method, path.format(documents=api.documents), params=ENVIRONMENT)
        assert (answer.status_code, answer.headers["allow"]) == (405, allow)
        if method != "HEAD":
            refused(answer, 405, "invalid_request")


def test_head_is_get_without_its_body(api: Api, unique: str) -> None:
    api.created(unique)
    full, bare = api("GET", unique), api("HEAD", unique)
    assert (bare.status_code, bare.content, bare.headers["etag"]) == (200, b"", full.headers["etag"])
    assert bare.headers["content-length"] == full.headers["content-length"]
    assert api("HEAD", "missing").status_code == 404


@pytest.mark.parametrize(
    "sent",
    [
        b"FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /healthz\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /h ealthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nb ad: 1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: a\0b\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"x: " + b"y" * 70_000,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"x: y\r\n" * 20_000,
        b"GET /" + b"a" * 70_000,
    ],
)
def test_what_is_no_http_is_400_in_json(server: Server, sent: bytes) -> None:
    status, headers, body = raw(server.port, sent)
    assert (status, headers["content-type"]) == (400, "application/json")
    assert json.loads(body)["error"]["code"] == "invalid_request"


def test_old_and_absolute_requests_are_understood(server: Server) -> None:
    assert raw(server.port, b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")[0] == 200
    assert raw(server.port, b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert raw(server.port, upgrade)[0] == 200


@pytest.mark.parametrize(
    "query", ["environment=%FF", "environment=development&cursor=%FF", "environment", "environment=development%00",
              "environment=development&environment=development", "=&=&", "environment=development" + "&a=b" * 60],
)  # fmt: skip
def test_a_broken_query_is_400(api: Api, server: Server, query: str) -> None:
    status, _, body = raw(server.port, f"GET {api.documents}?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert (status, json.loads(body)["error"]["code"]) == (400, "invalid_request")


def test_health_and_description_need_nothing(api: Api) -> None:
    assert api.client.get("/healthz").json() == {"status": "ok"}
    assert api.client.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_no_answer_lets_other_sites_read_it(api: Api, unique: str) -> None:
    api.created(unique)
    for answer in (api("GET", unique), api("GET", "missing"), api.client.get("/healthz")):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
