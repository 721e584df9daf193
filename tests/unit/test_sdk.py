"""What is asked of the SDK: address, credentials, certificates, proxies. An upgrade that answers otherwise fails here.

The engines and the givers of credentials here are small servers, since what they are sent is the question.
"""

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aioboto3
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from datastore.dynamo import CredentialsRefused, DeadlineExceeded, EngineUnavailable, Table, deadline, open_table
from datastore.dynamo.transport.client import DirectClient, read_endpoint
from datastore.people.profiles import PROFILE
from tests.waiting import until

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
CHAIN = ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def settings_of_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing but what a test says, on whosever machine it runs."""
    for name in CHAIN:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    server = web.Server(handler)
    door = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{door.sockets[0].getsockname()[1]}"
    finally:
        door.close()
        await server.shutdown(0.1)


class Engine:
    """Has nothing, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[web.BaseRequest] = []

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        self.asked.append(request)
        return web.json_response({})

    @property
    def signers(self) -> list[str]:
        return [request.headers["Authorization"].split("Credential=")[1].split("/")[0] for request in self.asked]


async def nobody(table: Table) -> None:
    with deadline(60):
        assert await table.get(PROFILE.at(user="ada")) is None


async def fails_since(table: Table, reason: str) -> None:
    """What is read fails for this reason, unless the deadline ends the first attempt: then it is read again."""

    async def is_told() -> bool:
        with deadline(2), pytest.raises(EngineUnavailable) as failed:
            await table.get(PROFILE.at(user="ada"))
        return reason in str(failed.value)

    await until(is_told, f"a read fails, since {reason}")


@pytest.mark.usefixtures("keys")
async def test_the_address_at_aws_is_the_sdks() -> None:
    """With the region that requests are signed for; nothing is sent to find out."""
    async with aioboto3.Session().client("dynamodb") as client:
        endpoint = await read_endpoint(client, "ringside")
    assert str(endpoint.url) == "https://dynamodb.eu-west-1.amazonaws.com/"
    assert (endpoint.target, endpoint.content_type) == ("DynamoDB_20120810.", "application/x-amz-json-1.0")
    assert (endpoint.region, endpoint.service, endpoint.unsupported) == ("eu-west-1", "dynamodb", None)
    assert endpoint.agent.startswith("aiobotocore")


@pytest.mark.usefixtures("keys")
async def test_other_addresses_are_the_sdks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """FIPS, dual stack: settings of the SDK's chain that the service knows nothing of."""
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    async with aioboto3.Session(region_name="us-east-2").client("dynamodb") as client:
        assert (await read_endpoint(client, "ringside")).url.host == "dynamodb-fips.us-east-2.amazonaws.com"


@pytest.mark.usefixtures("keys")
async def test_requests_are_signed_with_the_chains_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the environment, and a session's token with them, sent to the address that the environment names."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token")
    engine = Engine()
    async with serving(engine) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        async with open_table("ringside") as table:
            assert isinstance(table.client.client, DirectClient)
            await nobody(table)
    (request,) = engine.asked
    assert engine.signers == ["AKID"]
    assert request.headers["X-Amz-Security-Token"] == "a-token"
    assert "/eu-west-1/dynamodb/aws4_request" in request.headers["Authorization"]


async def test_credentials_that_expire_are_fetched_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container's role has them: each time they are about to expire, by the SDK's own rules."""
    given = 0

    async def credentials(_: web.BaseRequest) -> web.Response:
        nonlocal given
        given += 1
        expires = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1 if given < 3 else 60)
        return web.json_response({
            "AccessKeyId": f"AKID{given}", "SecretAccessKey": f"secret{given}", "Token": f"token{given}",
            "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        })  # fmt: skip

    engine = Engine()
    async with serving(engine) as url, serving(credentials) as giver:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", giver)
        async with open_table("ringside") as table:
            assert isinstance(table.client.client, DirectClient)
            for _ in range(4):
                await nobody(table)
    assert given >= 3  # the SDK asks again for what has not come within two seconds
    assert engine.signers[-2:] == [f"AKID{given}"] * 2
    assert engine.asked[-1].headers["X-Amz-Security-Token"] == f"token{given}"


@pytest.mark.parametrize("sdk_only", [False, True])
async def test_credentials_that_come_expired_are_fetched_again(
    monkeypatch: pytest.MonkeyPatch, *, sdk_only: bool
) -> None:
    """The SDK raises a bare RuntimeError for those: whichever client asked, the request asks once more."""
    minutes: list[int] = []

    async def credentials(_: web.BaseRequest) -> web.Response:
        expires = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=minutes.pop(0) if minutes else 1)
        expiration = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        return web.json_response({"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t", "Expiration": expiration})

    engine = Engine()
    async with serving(engine) as url, serving(credentials) as giver:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", giver)
        async with open_table("ringside", sdk_only=sdk_only) as table:
            minutes += [-1, 60]
            await nobody(table)
    assert (engine.signers, minutes) == (["A"], [])


async def test_a_role_that_is_refused_is_asked_for_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By an identity provider's token, as in EKS: a refusal of the token service is none of DynamoDB's."""
    refused: list[bool] = []

    async def assume_role(_: web.BaseRequest) -> web.Response:
        if refused:
            refused.append(True)
            error = "<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>"
            return web.Response(status=400, text=error, content_type="text/xml")
        expires = (dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1)).isoformat()
        given = {"AccessKeyId": "A", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": expires}
        fields = "".join(f"<{name}>{value}</{name}>" for name, value in given.items())
        action = "AssumeRoleWithWebIdentity"
        answer = f"<{action}Result><Credentials>{fields}</Credentials></{action}Result>"
        return web.Response(text=f"<{action}Response>{answer}</{action}Response>", content_type="text/xml")

    token = tmp_path / "token"
    token.write_text("a-token")
    async with serving(assume_role) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ringside")
        async with open_table("ringside") as table:

            async def is_refused_repeatedly() -> bool:
                refused[:] = [True]
                with deadline(2), pytest.raises(DeadlineExceeded) as late:
                    await table.get(PROFILE.at(user="ada"))
                return len(refused) > 2 and isinstance(late.value.__cause__, CredentialsRefused)

            await until(is_refused_repeatedly, "two seconds are enough for two refusals")


async def test_a_missing_region_or_profile_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the SDK's own words; a command prints it, and no traceback."""
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(EngineUnavailable, match=r"profile \(missing\) could not be found"):
        async with open_table("ringside"):
            pass
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.delenv("AWS_REGION", raising=False)
    with pytest.raises(EngineUnavailable, match="specify a region"):
        async with open_table("ringside"):
            pass


async def test_without_credentials_the_sdk_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """When the first call is made, as it always did."""
    async with open_table("ringside") as table:
        assert not isinstance(table.client.client, DirectClient)
        await fails_since(table, "has no credentials")
    assert "there are no credentials" in caplog.text


@pytest.mark.usefixtures("keys")
async def test_a_proxy_is_left_to_the_sdk(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It knows how to go through one; the log says that this takes more work. Addresses that need none go directly.

    So does the embedded engine, at whichever address of the loopback it is: a proxy would see members' data, and look
    for the engine on its own machine.
    """
    proxy = "http://proxy.example:3128"
    for name, value in {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "engine.example"}.items():
        monkeypatch.setenv(name, value)
    async with open_table("ringside") as table:
        assert not isinstance(table.client.client, DirectClient)
    assert "there is a proxy" in caplog.text
    for host in ("engine.example", "127.59.86.123", "localhost", "[::1]"):
        async with open_table("ringside", url=f"http://{host}:1") as table:
            assert isinstance(table.client.client, DirectClient), host
    async with open_table("ringside", url="http://dynamodb:8000") as table:
        assert not isinstance(table.client.client, DirectClient)


@pytest.mark.usefixtures("keys")
async def test_certificates_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Against the bundle that the SDK is told of; one that nobody vouches for is no engine."""
    bundle, tls = certificate(tmp_path)
    engine = Engine()
    async with serving(engine, tls) as url:
        async with open_table("ringside", url=url) as table:
            await fails_since(table, "SSLCertVerificationError")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
        async with open_table("ringside", url=url) as table:
            assert isinstance(table.client.client, DirectClient)
            await nobody(table)
    assert len(engine.asked) == 1


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate that vouches for itself, and a server's settings with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "engine")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    bundle = folder / "bundle.pem"
    bundle.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = folder / "key.pem"
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(bundle, private)
    return bundle, tls
