"""The explorer's page and files, as they leave the server."""

import gzip
import json
import re
from html import unescape
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from resolvers.requests.context import Role
from server.auth.cookies import LOOPBACK
from server.http.browser_pages import Explorer, demo_viewers, shows_emails, wants_page
from server.settings import Settings
from server.settings.values import TokenKey

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
LOCK = Path(__file__).parents[2] / "explorer" / "package-lock.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build of one page and one script, beside a file that is nobody's business."""
    (tmp_path / "secret.txt").write_text("secret")
    built = tmp_path / "explorer"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text('<meta property="csp-nonce" nonce="{nonce}"><script nonce="{nonce}"></script>')
    (built / "assets" / "index-B0x.js").write_text("run()")
    return built


@pytest.fixture
def settings_of_demo() -> Settings:
    return Settings(demo=True, allowed_hosts=LOOPBACK, secrets=[SecretStr("s" * 32)])


@pytest.fixture
def client(folder: Path) -> httpx.AsyncClient:
    """A client of an application that has the explorer and nothing else."""
    explorer = Explorer(folder)
    app = Starlette(routes=[*explorer.routes(), Route("/graphql", lambda _: explorer.page())])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://ringside.test")


def asked(method: str, accept: str | None, query: bytes = b"") -> Request:
    headers = [] if accept is None else [(b"accept", accept.encode())]
    return Request({"type": "http", "method": method, "path": "/graphql", "query_string": query, "headers": headers})


async def test_the_licences_of_what_is_shipped_are_shown(client: httpx.AsyncClient, folder: Path) -> None:
    """As text, which a browser shows; there are none before the explorer is built."""
    (folder / "licenses.md").write_text("## graphiql - 5.4.0 (MIT)")
    shown = await client.get("/explorer/licenses.txt")
    assert (shown.status_code, shown.text) == (200, "## graphiql - 5.4.0 (MIT)")
    assert shown.headers["content-type"] == "text/plain; charset=utf-8"
    assert shown.headers["x-content-type-options"] == "nosniff"
    (folder / "index.html").unlink()
    assert (await client.get("/explorer/licenses.txt")).status_code == 404


@pytest.mark.parametrize("accept", [BROWSER, "text/html", "Text/HTML; charset=utf-8", "*/*, text/html;q=0.5"])
def test_a_browser_gets_the_page(accept: str) -> None:
    """A request that accepts HTML and has no query; HEAD as GET."""
    assert wants_page(asked("GET", accept))
    assert wants_page(asked("HEAD", accept))


@pytest.mark.parametrize(
    ("method", "accept", "query"),
    [
        ("GET", None, b""),
        ("GET", "*/*", b""),
        ("GET", "application/json", b""),
        ("GET", "application/graphql-response+json, text/html;q=0.1", b""),
        ("GET", "text/event-stream, text/html", b""),
        ("GET", BROWSER, b"query=%7Bviewer%7Bid%7D%7D"),
        ("GET", BROWSER, b"query="),
        ("GET", BROWSER, b"documentId=sha256%3Aabc"),
        ("POST", BROWSER, b""),
    ],
)
def test_a_client_gets_the_api(method: str, accept: str | None, query: bytes) -> None:
    """A query, another method, or a type that the API answers with: none of these is for the page."""
    assert not wants_page(asked(method, accept, query))


async def test_a_page_has_a_nonce_of_its_own(client: httpx.AsyncClient) -> None:
    """Each has a nonce of its own, in the policy as in the page, and is kept by nobody."""
    first, second = [await client.get("/graphql") for _ in range(2)]
    for page in (first, second):
        nonces = set(re.findall(r'nonce="([^"]+)"', page.text))
        assert len(nonces) == 1
        assert f"style-src 'self' 'nonce-{nonces.pop()}';" in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"
    assert first.text != second.text


async def test_the_policy_is_strict(client: httpx.AsyncClient) -> None:
    """Scripts from this origin's files alone, no other origin anywhere, no frame around it."""
    headers = (await client.get("/graphql")).headers
    policy = dict(one.strip().split(" ", 1) for one in headers["Content-Security-Policy"].split(";"))
    assert policy.pop("style-src").startswith("'self' 'nonce-")
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "worker-src": "'self'",
        "style-src-attr": "'unsafe-inline'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Vary"] == "Accept"


async def test_an_unbuilt_explorer_says_how_to_build_it(client: httpx.AsyncClient, folder: Path) -> None:
    """And is found as soon as it is there: no restart."""
    page = folder / "index.html"
    built = page.read_text()
    page.unlink()
    answer = await client.get("/graphql")
    assert answer.status_code == 503
    assert "<code>make pages</code>" in answer.text
    page.write_text(built)
    assert (await client.get("/graphql")).status_code == 200


async def test_files_are_cached_for_a_year(client: httpx.AsyncClient) -> None:
    """Their names change with what is in them; and a worker that is made of one may do nothing."""
    answer = await client.get("/explorer/assets/index-B0x.js")
    assert answer.text == "run()"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    again = await client.get("/explorer/assets/index-B0x.js", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


async def test_files_are_sent_compressed_as_the_build_made_them(client: httpx.AsyncClient, folder: Path) -> None:
    """To clients that accept gzip, with the type of the file itself; others get it as it is."""
    (folder / "assets" / "index-B0x.js.gz").write_bytes(gzip.compress(b"run()"))
    for accepted, coding in (("gzip, br", "gzip"), ("gzip;q=0", None), ("identity", None)):
        answer = await client.get("/explorer/assets/index-B0x.js", headers={"Accept-Encoding": accepted})
        assert answer.text == "run()"
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert answer.headers.get("Content-Encoding") == coding


async def test_only_a_demo_on_this_machine_lists_members_to_sign_in_as(settings_of_demo: Settings) -> None:
    """With a public address, other hosts, a provider, a site's keys, a proxy or a client elsewhere there are no tokens.

    A member whose role no group has is left out. There are none for the script of another site's page, which names its
    origin, a visit from there, or a proxy's HTTP/1.0.
    """

    def names(
        settings: Settings = settings_of_demo,
        client: str = "127.0.0.1",
        *headers: tuple[bytes, bytes],
        http: str = "1.1",
    ) -> int:
        return len(demo_viewers(settings, {"http_version": http, "client": (client, 1), "headers": headers}))

    assert names() == 3
    assert names(settings_of_demo, "::1") == 3
    assert names(settings_of_demo, "10.0.0.8") == 0
    assert names(http="1.0") == 0
    for header in (b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via", b"origin"):
        assert names(settings_of_demo, "127.0.0.1", (header, b"10.0.0.8")) == 0
    assert names(settings_of_demo, "127.0.0.1", (b"sec-fetch-site", b"cross-site")) == 0
    assert names(settings_of_demo, "127.0.0.1", (b"sec-fetch-site", b"none")) == 3
    for change in (
        {"demo": False},
        {"public_url": "https://api.example.com"},
        {"allowed_hosts": ()},
        {"allowed_hosts": ("*",)},
        {"allowed_hosts": ("localhost", "api.example.com")},
        {"oidc_issuer": "https://id.example.com"},
        {"site_keys": (TokenKey("shop", SecretStr("s" * 48)),)},
    ):
        assert names(settings_of_demo.model_copy(update=change)) == 0, change
        assert not shows_emails(settings_of_demo.model_copy(update=change)), change
    assert shows_emails(settings_of_demo)
    assert names(settings_of_demo.model_copy(update={"jwt_roles": {"site-editors": Role.EDITOR}})) == 2


async def test_the_members_of_a_demo_stand_in_the_page_as_text(folder: Path) -> None:
    """Whatever their names hold."""
    (folder / "index.html").write_text('<meta property="demo-viewers" content="{viewers}" />')
    viewers = [{"name": '"><script>', "token": "a.b.c"}]
    body = bytes(Explorer(folder).page(viewers).body).decode()
    assert "<script>" not in body
    content = re.search(r'content="([^"]*)"', body)
    assert content is not None
    assert json.loads(unescape(content[1])) == viewers
    assert 'content=""' in bytes(Explorer(folder).page().body).decode()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/absent.js",
        "/../index.html",
        "/..%2findex.html",
        "/../../secret.txt",
        "/%2e%2e/%2e%2e/secret.txt",
        "/..%5c..%5csecret.txt",
        "//etc/passwd",
        "/%00",
        "/" + "a" * 5000,
    ],
)
async def test_other_files_are_not_served(client: httpx.AsyncClient, path: str) -> None:
    """No folder, no way out of it, no name that the file system chokes on."""
    assert (await client.get(f"/explorer/assets{path}")).status_code == 404


async def test_a_link_out_of_the_folder_is_not_followed(client: httpx.AsyncClient, folder: Path) -> None:
    """Even one that somebody put there."""
    (folder / "assets" / "link.js").symlink_to(folder.parent / "secret.txt")
    assert (await client.get("/explorer/assets/link.js")).status_code == 404


def test_the_lock_file_holds_hashes_and_no_addresses() -> None:
    """Whichever registry it is, what comes from it is what was tested."""
    packages = json.loads(LOCK.read_text())["packages"]
    own = packages.pop("")
    assert all("integrity" in package and "resolved" not in package for package in packages.values())
    assert all(version[0].isdigit() for version in (own["dependencies"] | own["devDependencies"]).values())
