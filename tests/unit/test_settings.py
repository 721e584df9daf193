"""The environment decides, is understood or is refused with what to write instead."""

import json
import logging
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from datastore.values.seal import MOST_SECRETS
from resolvers.requests.context import Role
from resolvers.requests.policy import Policy
from server.mail.sending import sender_address
from server.settings import (
    BadSettings,
    Format,
    Introspection,
    Level,
    Log,
    Settings,
    settings_help,
    settings_table,
    variable,
)
from server.settings.fields import load_or_create_secrets
from server.settings.values import TokenKey

OF_OIDC_ISSUER = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")
"""Not beside RINGSIDE_JWKS_URL."""
SECRET = "a secret that is never to be shown to anybody"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing set, but for a data folder that may be written to."""
    for name in os.environ:
        if name.upper().startswith("RINGSIDE_") or name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RINGSIDE_DATA", str(tmp_path / "data"))


def refusal() -> str:
    with pytest.raises(BadSettings) as refused:
        Settings.load()
    return str(refused.value)


def test_nothing_set_means_an_embedded_engine() -> None:
    """What `make run` stands on: open introspection, a table, a secret of its own."""
    settings = Settings.load()
    assert settings.embedded
    assert settings.introspection is Introspection.ON
    assert settings.table == "ringside"
    assert len(settings.secrets) == 1
    assert settings.log == Log(Level.INFO, None)


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files pass on what is missing as an empty text."""
    for name in Settings.model_fields:
        if name != "data":
            monkeypatch.setenv(variable(name), "")
    assert Settings.load().embedded


def test_everything_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each variable reaches its field, lists by commas."""
    manifest = tmp_path / "documents.json"
    manifest.write_text("{}")
    program = tmp_path / "dynoxide"
    program.touch(mode=0o755)
    given = {
        "DYNAMODB_URL": "http://engine:8000/",
        "TABLE": "comments-2",
        "AWS_REGION": "eu-central-1",
        "SECRETS": f" {SECRET}2 , {SECRET}1,",
        "JWKS_URL": "https://login.example.com/jwks",
        "JWT_AUDIENCE": "ringside",
        "JWT_ISSUER": "https://login.example.com/",
        "JWT_CLIENT_IDS": "website, app",
        "JWT_ROLES_CLAIM": r"https://example\.com/roles.site",
        "JWT_NAME_CLAIM": "preferred_username",
        "JWT_EMAIL_CLAIM": "contact.email",
        "JWT_ROLES": '{"site-editors": "editor"}',
        "INTROSPECTION": "off",
        "TRUSTED_DOCUMENTS": str(manifest),
        "SMTP_URL": "smtps://me:hush-hush@mail.example.com",
        "MAIL_FROM": "Words <words@example.com>",
        "EMAIL_MINUTES": "15",
        "EMAIL_TEMPLATES": str(tmp_path),
        "PUBLIC_URL": "https://api.example.com/",
        "JOURNAL_DAYS": "30",
        "FRONT_PAGE": "on",
        "ERASED_DAYS": "60",
        "WEBHOOK_NETWORKS": "10.1.0.0/16, ::1",
        "DAY_BEGINS_AT": "4",
        "QUIZ_SECONDS_PER_QUESTION": "2.5",
        "CORS_ORIGINS": "https://A.example, HTTP://b.example:3000",
        "LOG": "DEBUG, json",
        "OTLP_ENDPOINT": "http://collector:4318",
        "ENGINE_BINARY": str(program),
        "REQUEST_TIMEOUT": "2.5",
        "MAX_BODY_BYTES": "2048",
        "MAX_HEADER_BYTES": "8192",
        "HEADER_TIMEOUT": "3",
        "BODY_TIMEOUT": "4",
        "EMAILS_PER_ADDRESS": "7/day",
        "IDLE_TIMEOUT": "5",
        "MAX_CONNECTIONS": "100",
        "ALLOWED_HOSTS": "api.example.com, [::1]",
        "MAX_STREAMS": "10",
        "STREAMS_PER_ADDRESS": "5",
        "MAX_SUBSCRIPTIONS": "20",
        "SUBSCRIPTIONS_PER_ADDRESS": "6",
        "OPERATIONS_PER_SOCKET": "4",
        "MAX_IN_FLIGHT": "7",
        "MAX_COMPLEXITY": "5000",
        "MAX_DOCUMENT_TOKENS": "1000",
        "DOCUMENT_CACHE_BYTES": "2097152",
        "IMAGE_HOSTS": "Images.example.com, cdn.example.org",
        "COMMENT_RATE": "30/minute",
        "PREMODERATION": "true",
        "ONE_REVIEW_PER_PRODUCT": "true",
        "DEMO": "true",
        "BALLOT_HOURS": "0.5",
        "VOTES_PER_VISITOR": "9/second",
        "VOTES_PER_ADDRESS": "99/minute",
        "NEW_VISITORS_PER_ADDRESS": "0",
        "TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8, fd00::/8",
        "SITE_KEYS": json.dumps([{"issuer": "shop", "hs256": SECRET, "roles": True}]),
        "PROOF_KEYS": '[{"issuer": "till", "jwks": "https://till.example.com/keys"}]',
        "GUESTS": "comments, quizzes",
        "NEW_GUESTS_PER_ADDRESS": "3/hour",
        "ROLE_ORIGINS": "https://a.example",
        "CHALLENGE": "guests, first",
        "MODERATION_EMAILS": "mods@example.com=1h, ada@example.com=1d/de",
    }
    assert {*given, "BACKUP_HOURS", "DATA", *OF_OIDC_ISSUER} == {name.upper() for name in Settings.model_fields}
    for name, value in given.items():
        monkeypatch.setenv(f"RINGSIDE_{name}", value)
    settings = Settings.load()
    policy, unset = settings.policy(), Policy()
    assert [field.name for field in fields(Policy) if getattr(policy, field.name) == getattr(unset, field.name)] == []
    assert settings.site_keys == (TokenKey("shop", SecretStr(SECRET), roles=True),)
    assert settings.proof_keys == (TokenKey("till", jwks="https://till.example.com/keys"),)
    assert settings.policy().guests == {"comments", "quizzes"}
    assert settings.policy().role_origins == {"https://a.example"}
    assert settings.dynamodb_url == "http://engine:8000"
    assert [secret.get_secret_value() for secret in settings.secrets] == [f"{SECRET}2", f"{SECRET}1"]
    assert settings.jwt_client_ids == ("website", "app")
    assert settings.jwt_roles_claim == ("https://example.com/roles", "site")
    assert (settings.jwt_name_claim, settings.jwt_email_claim) == (("preferred_username",), ("contact", "email"))
    assert settings.jwt_roles == {"site-editors": Role.EDITOR}
    assert settings.cors_origins == ("https://a.example", "http://b.example:3000")
    assert settings.log == Log(Level.DEBUG, Format.JSON)
    assert settings.introspection is Introspection.OFF
    assert (settings.public_url, settings.emails_per_address) == ("https://api.example.com", "7/day")
    assert (settings.request_timeout, settings.max_body_bytes, settings.max_in_flight) == (2.5, 2048, 7)
    assert (settings.max_complexity, settings.max_document_tokens) == (5000, 1000)
    assert settings.document_cache_bytes == 2097152
    assert (settings.trusted_documents, settings.engine_binary) == (manifest, program)
    assert (settings.comment_rate, settings.premoderation) == ("30/minute", True)
    assert (settings.demo, settings.front_page, settings.ballot_hours) == (True, True, 0.5)
    assert (settings.votes_per_visitor, settings.votes_per_address) == ("9/second", "99/minute")
    assert (settings.new_visitors_per_address, settings.journal_days, settings.erased_days) == ("0", 30, 60)
    assert settings.image_hosts == ("images.example.com", "cdn.example.org")
    assert settings.webhook_networks == ("10.1.0.0/16", "::1")
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8", "fd00::/8")


def test_a_policy_without_settings_is_that_of_their_defaults() -> None:
    """Tests and programs that make one by themselves run by the rules that an operator who sets nothing gets."""
    policy = Settings().policy()
    assert replace(policy, public_url="") == Policy()


def test_settings_are_frozen() -> None:
    """What was read at start stays."""
    with pytest.raises(ValidationError, match="frozen"):
        Settings.load().table = "other"  # type: ignore[misc]  # it is read-only


@pytest.mark.parametrize("name", ["RINGSIDE_AWS_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_is_found_where_aws_puts_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Our own variable wins over the platform's two."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.setenv(name, "eu-central-1")
    assert Settings.load().aws_region == "eu-central-1"


@pytest.mark.parametrize(
    ("url", "introspection"), [("aws", "role"), ("http://127.0.0.1:1", "role"), ("embedded", "on")]
)
def test_introspection_is_open_only_beside_an_embedded_engine(
    monkeypatch: pytest.MonkeyPatch, url: str, introspection: str
) -> None:
    """A deployment shows its schema to those with a role."""
    monkeypatch.setenv("RINGSIDE_DYNAMODB_URL", url)
    monkeypatch.setenv("RINGSIDE_SECRETS", SECRET)
    assert Settings.load().introspection == introspection


@pytest.mark.parametrize(
    ("name", "value", "wrong", "write"),
    [
        ("DYNAMODB_URL", "dynamo", "not an address", "embedded, aws, or"),
        ("DYNAMODB_URL", "http://", "not an address", "http://127.0.0.1:8001"),
        ("DYNAMODB_URL", "http://x:99999", "not an address", "http://127.0.0.1:8001"),
        ("DYNAMODB_URL", "http://[::1", "not an address", "http://127.0.0.1:8001"),
        ("DYNAMODB_URL", "http://me:pass@x:1", "must not carry a password", "http://127.0.0.1:8001"),
        ("TABLE", "a b", "invalid characters", "3 to 255 letters"),
        ("TABLE", "ab", "wrong length", "3 to 255 letters"),
        ("AWS_REGION", "Frankfurt!", "invalid characters", "eu-central-1"),
        ("SECRETS", "hush-hush", "fewer than 32 characters", "openssl rand -base64 48"),
        (
            "SECRETS",
            ",".join(f"{SECRET}{number}" for number in range(5)),
            "more than 4 secrets",
            "openssl rand -base64 48",
        ),
        ("SECRETS", f"{SECRET},hush-hush", "fewer than 32 characters", "openssl rand -base64 48"),
        ("JWKS_URL", "login.example.com", "not an address", "https://login.example.com/"),
        ("JWKS_URL", "http://login.example.com/jwks", "must come over https", "https://"),
        ("JWKS_URL", "http://8.8.8.8/jwks", "must come over https", "https://"),
        ("OIDC_ISSUER", "login.example.com", "not an address", "https://login.example.com/"),
        ("OIDC_ISSUER", "http://login.example.com/", "must come over https", "openid-configuration"),
        ("OIDC_ISSUER", "https://me:pass@login.example.com/", "must not carry a password", "openid-configuration"),
        ("OIDC_ISSUER", "https://login.example.com/?tenant=a", "not an issuer", "openid-configuration"),
        ("OIDC_ISSUER", "https://a.example/.well-known/openid-configuration", "not an issuer", "openid-configuration"),
        ("OIDC_CLIENT_ID", "website", "RINGSIDE_OIDC_ISSUER is not set", "with RINGSIDE_OIDC_ISSUER"),
        ("OIDC_CLIENT_SECRET", "hush", "RINGSIDE_OIDC_CLIENT_ID is not set", "with RINGSIDE_OIDC_CLIENT_ID"),
        ("SITE_KEYS", "shop", "not JSON", '[{"issuer": "shop"'),
        ("SITE_KEYS", "[]", "a JSON list of 1 to 20 keys", '[{"issuer": "shop"'),
        ("SITE_KEYS", '[{"issuer": "shop"}]', "exactly one of hs256 and jwks", '[{"issuer": "shop"'),
        ("SITE_KEYS", '[{"issuer": "shop", "hs256": "hush"}]', "fewer than 32 characters", "32 characters or more"),
        ("SITE_KEYS", '[{"issuer": "shop", "jwks": "http://8.8.8.8/"}]', "must come over https", '[{"issuer": "shop"'),
        ("SITE_KEYS", f'[{{"issuer": "a", "hs256": "{SECRET}", "role": true}}]', "an entry is not", "jwks.json"),
        ("SITE_KEYS", json.dumps([{"issuer": "a", "hs256": SECRET}] * 2), "names an issuer twice", "jwks.json"),
        ("SITE_KEYS", f'[{{"issuer": "a", "hs256": "{SECRET}", "roles": 1}}]', "neither true nor false", "jwks.json"),
        (
            "SITE_KEYS",
            json.dumps([{"issuer": "import:disqus", "hs256": SECRET}]),
            "as those of imported authors do",
            "jwks.json",
        ),
        ("PROOF_KEYS", f'[{{"issuer": "a", "hs256": "{SECRET}", "roles": true}}]', "an entry is not", "jwks.json"),
        ("GUESTS", "comments,leagues", "'leagues' is nothing that guests", "comments, predictions and quizzes"),
        ("ROLE_ORIGINS", "https://a.example", "RINGSIDE_CORS_ORIGINS does not list", "RINGSIDE_CORS_ORIGINS lists"),
        ("JWT_CLIENT_IDS", "website", "no OIDC provider is set", "RINGSIDE_OIDC_ISSUER or RINGSIDE_JWKS_URL"),
        ("JWT_ROLES_CLAIM", "a..b", "none of them empty", "realm_access.roles"),
        ("JWT_ROLES_CLAIM", ".".join("abcdefghijk"), "1 to 10 keys", "realm_access.roles"),
        ("JWT_ROLES_CLAIM", "x" * 501, "more than 500 characters", "realm_access.roles"),
        ("JWT_ROLES_CLAIM", "aud", "a meaning of its own", "realm_access.roles"),
        ("JWT_NAME_CLAIM", "sub", "a meaning of its own", "preferred_username"),
        ("JWT_NAME_CLAIM", "roles", "the claim of RINGSIDE_JWT_ROLES_CLAIM", "preferred_username"),
        ("JWT_NAME_CLAIM", "roles.name", "the claim of RINGSIDE_JWT_ROLES_CLAIM", "preferred_username"),
        ("JWT_EMAIL_CLAIM", "name", "the claim of RINGSIDE_JWT_NAME_CLAIM", "a claim such as email"),
        ("JWT_ROLES", "editor", "not JSON", '{"site-editors": "editor"}'),
        ("JWT_ROLES", "[" * 100_000, "not JSON", '{"site-editors": "editor"}'),
        ("JWT_ROLES", '["editor"]', "not a JSON object", '{"site-editors": "editor"}'),
        ("JWT_ROLES", "{}", "1 to 1000 groups", '{"site-editors": "editor"}'),
        ("JWT_ROLES", '{"a": "root"}', "a role that does not exist", "member, moderator, editor and admin"),
        ("JWT_ROLES", '{"a": ["admin"]}', "a role that does not exist", "member, moderator, editor and admin"),
        ("JWT_ROLES", '{"": "admin"}', "a group without a name", "member, moderator, editor and admin"),
        ("JWT_ROLES", '{"a": "admin", "a": "editor"}', "a group twice", "member, moderator, editor and admin"),
        ("DYNAMODB_URL", "http://dynamo_db:8000", "letters, digits, dots and dashes", "http://127.0.0.1:8001"),
        ("DYNAMODB_URL", "http://a..b:8000", "letters, digits, dots and dashes", "http://127.0.0.1:8001"),
        ("INTROSPECTION", "maybe", "'on', 'off' or 'role'", "on, off or role"),
        ("TRUSTED_DOCUMENTS", "/nowhere/at/all.json", "it does not point to a file", "the path"),
        ("SMTP_URL", "mail.example.com", "smtp:// or smtps://", "smtp://user:password@"),
        ("SMTP_URL", "smtp://me:a#b@mail.example.com", "smtp:// or smtps://", "percent-encoded, as %23 for #"),
        ("MAIL_FROM", "words", "not an email address", "words@example.com"),
        ("MAIL_FROM", "a@example.com\nBcc: b@example.com", "not an email address", "words@example.com"),
        ("MAIL_FROM", "jörg@example.com", "letters beyond a to z", "words@example.com"),
        ("EMAIL_MINUTES", "0.5", "greater than or equal to 1", "1 to 360"),
        ("EMAIL_MINUTES", "1440", "less than or equal to 360", "1 to 360"),
        ("EMAIL_TEMPLATES", "/nowhere/at/all", "it does not point to a directory", "the path of a folder"),
        ("PUBLIC_URL", "api.example.com", "not an address", "https://api.example.com"),
        ("PUBLIC_URL", "https://api.example.com ", "white space", "https://api.example.com"),
        ("PUBLIC_URL", " https://api.example.com", "white space", "https://api.example.com"),
        ("PUBLIC_URL", "https://api.exa mple.com", "white space", "https://api.example.com"),
        ("PUBLIC_URL", "https://api.example.com/?a=b", "a query", "https://api.example.com"),
        ("PUBLIC_URL", "https://api.example.com/#", "a fragment", "https://api.example.com"),
        ("PUBLIC_URL", "https://api.example.com/bücher", "percent-encode", "https://api.example.com"),
        ("PUBLIC_URL", "https://☃.example", "begins with xn--", "https://api.example.com"),
        ("JOURNAL_DAYS", "-1", "greater than or equal to 0", "0 to 3650"),
        ("DAY_BEGINS_AT", "13", "less than or equal to 12", "0 to 12"),
        ("CORS_ORIGINS", "*", "every site", "https://www.example.com"),
        ("CORS_ORIGINS", "https://*.example.com", "name each origin", "https://www.example.com"),
        ("CORS_ORIGINS", "https://a.example/", "more than a scheme", "without a path"),
        ("CORS_ORIGINS", "a.example", "not an address", "https://www.example.com"),
        ("LOG", "loud", "neither a level nor a format", "info,json"),
        ("OTLP_ENDPOINT", "collector:4317", "not an address", "http://127.0.0.1:4318"),
        ("ENGINE_BINARY", "/nowhere/dynoxide", "it does not point to a file", "the path"),
        ("ENGINE_BINARY", __file__, "not executable", "the path"),
        ("REQUEST_TIMEOUT", "0", "greater than or equal to 0.1", "0.1 to 300"),
        ("REQUEST_TIMEOUT", "nan", "finite number", "0.1 to 300"),
        ("ALLOWED_HOSTS", "https://api.example.com", "not the name of a host", "without a scheme or a port"),
        ("IMAGE_HOSTS", "*", "show visitors' addresses", "images.example.com"),
        ("IMAGE_HOSTS", "https://images.example.com", "not the name of a host", "without a scheme"),
        ("IMAGE_HOSTS", "*.example.com", "not the name of a host", "without a scheme"),
        ("IMAGE_HOSTS", "images.example.com; script-src *", "not the name of a host", "without a scheme"),
        ("IMAGE_HOSTS", "images.example.com:8443", "not the name of a host", "without a scheme"),
        ("IMAGE_HOSTS", "data:", "not the name of a host", "without a scheme"),
        ("IMAGE_HOSTS", "localhost", "not the name of a host", "without a scheme"),
        ("MAX_HEADER_BYTES", "1024", "greater than or equal to 4096", "4096 to 1048576"),
        ("MAX_CONNECTIONS", "1000000", "less than or equal to 100000", "16 to 100000"),
        ("MAX_BODY_BYTES", "1MB", "valid integer", "1024 to 16777216"),
        ("MAX_IN_FLIGHT", "0", "greater than or equal to 1", "1 to 100000"),
        ("MAX_COMPLEXITY", "10", "greater than or equal to 100", "100 to 1000000"),
        ("MAX_DOCUMENT_TOKENS", "50000", "less than or equal to 10000", "500 to 10000"),
        ("DOCUMENT_CACHE_BYTES", "64MB", "valid integer", "1048576 to 4294967296"),
        ("VOTES_PER_VISITOR", "0", "not a rate", "60/minute"),
        ("VOTES_PER_ADDRESS", "lots", "not a rate", "6000/minute, or 0"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "neither an address nor a network", "10.0.0.0/8"),
        ("TRUSTED_PROXIES", "::/0", "covers every address", "127.0.0.1"),
        ("WEBHOOK_NETWORKS", "0.0.0.0/0", "covers every address", "10.0.0.0/8"),
    ],
)
def test_a_bad_setting_says_what_to_write(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, wrong: str, write: str
) -> None:
    """One line: the variable, the problem, a correct value."""
    monkeypatch.setenv(f"RINGSIDE_{name}", value)
    text = refusal()
    assert re.fullmatch(
        rf"RINGSIDE_{name}.* is invalid: .*{re.escape(wrong)}.*\. Write .*{re.escape(write)}.*\.", text
    ), text


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"JWKS_URL": "https://a.example/keys"}, "RINGSIDE_OIDC_ISSUER is invalid: RINGSIDE_JWKS_URL is set too"),
        ({"JWT_ISSUER": "https://a.example"}, "RINGSIDE_JWT_ISSUER is invalid: it differs from RINGSIDE_OIDC_ISSUER"),
        (
            {"JWT_NAME_CLAIM": "email"},
            "RINGSIDE_JWT_EMAIL_CLAIM is invalid: it is, contains or lies within the claim of RINGSIDE_JWT_NAME_CLAIM",
        ),
        (
            {"JWT_ROLES_CLAIM": "name"},
            "RINGSIDE_JWT_NAME_CLAIM is invalid: it is, contains or lies within the claim of RINGSIDE_JWT_ROLES_CLAIM",
        ),
    ],
)
def test_contradictory_settings_of_sign_in_are_refused(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], wrong: str
) -> None:
    """In one line, also where one of the two is a default."""
    for name, value in {"OIDC_ISSUER": "https://a.example/", **given}.items():
        monkeypatch.setenv(f"RINGSIDE_{name}", value)
    text = refusal()
    assert text.startswith(wrong)
    assert len(text.splitlines()) == 1


def test_keys_without_an_issuer_stop_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would count for tokens that name any other, a site's for instance."""
    monkeypatch.setenv("RINGSIDE_JWKS_URL", "https://login.example.com/jwks")
    text = refusal()
    assert text.startswith("RINGSIDE_JWT_ISSUER is invalid: RINGSIDE_JWKS_URL is set")
    assert len(text.splitlines()) == 1


def test_a_site_may_not_take_the_provider_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """One issuer has one key."""
    monkeypatch.setenv("RINGSIDE_OIDC_ISSUER", "https://a.example/")
    monkeypatch.setenv("RINGSIDE_SITE_KEYS", json.dumps([{"issuer": "https://a.example/", "hs256": SECRET}]))
    assert refusal().startswith("RINGSIDE_SITE_KEYS is invalid: it names the issuer of the OIDC provider")


def test_an_issuer_may_be_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly as the provider writes it, with or without a slash at its end."""
    for issuer in ("https://a.example/", "https://a.example"):
        for name in ("OIDC_ISSUER", "JWT_ISSUER"):
            monkeypatch.setenv(f"RINGSIDE_{name}", issuer)
        assert Settings.load().token_issuer == issuer


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/k", "http://localhost:1/k", "http://keycloak:8080/k", "http://[::1]/k"]
)
def test_keys_may_come_without_tls_from_a_private_network(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """From this machine, or a neighbour in compose or a cluster."""
    monkeypatch.setenv("RINGSIDE_JWKS_URL", url)
    monkeypatch.setenv("RINGSIDE_JWT_ISSUER", "http://keycloak:8080/")
    assert Settings.load().jwks_url == url


def test_a_sender_s_domain_may_be_written_in_any_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail servers are given the form of it that all of them accept."""
    monkeypatch.setenv("RINGSIDE_MAIL_FROM", "Bücher <words@bücher.example>")
    assert Settings.load().mail_from == "=?utf-8?q?B=C3=BCcher?= <words@xn--bcher-kva.example>"


@pytest.mark.parametrize(
    ("server", "sender"),
    [
        ("smtps://words%40b%C3%BCcher.example:x@mail.example", "words@xn--bcher-kva.example"),
        ("smtps://w%C3%B6rter%40example.org:x@mail.example", "ringside@mail.example"),
        ("smtps://x:y@mail.bücher.example", "ringside@mail.xn--bcher-kva.example"),
    ],
)
def test_the_sender_is_by_default_the_mail_server_s_user(server: str, sender: str) -> None:
    """If that is an address, and in ASCII: with another sender every email needs a server with SMTPUTF8."""
    assert sender_address(Settings(secrets=(SECRET,), smtp_url=SecretStr(server))) == sender


def test_the_public_address_has_its_host_as_browsers_send_it() -> None:
    """Headers of emails have it too, and have to be ASCII."""
    settings = Settings(secrets=(SECRET,), public_url="https://münchen.example:8443/api/")
    assert settings.public_url == "https://xn--mnchen-3ya.example:8443/api"


def test_all_mistakes_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody likes to mend a file line by line."""
    monkeypatch.setenv("RINGSIDE_TABEL", "comments")
    monkeypatch.setenv("RINGSIDE_LOG", "loud")
    monkeypatch.setenv("RINGSIDE_MAX_IN_FLIGHT", "many")
    assert len(refusal().splitlines()) == 3


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("TABEL", "TABLE"),
        ("SECRET", "SECRETS"),
        ("JWKS_URI", "JWKS_URL"),
        ("DYNAMO_URL", "DYNAMODB_URL"),
        ("CORS_ORIGIN", "CORS_ORIGINS"),
        ("JWT_AUDIENCES", "JWT_AUDIENCE"),
        ("SMPT_URL", "SMTP_URL"),
        ("REGION", "AWS_REGION"),
        ("MAX_BODY", "MAX_BODY_BYTES"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_correct_name(
    monkeypatch: pytest.MonkeyPatch, misspelt: str, meant: str
) -> None:
    """A secret that is silently not used is worse than a start that fails."""
    monkeypatch.setenv(f"RINGSIDE_{misspelt}", "whatever")
    assert refusal() == f"RINGSIDE_{misspelt} is not a setting. Did you mean RINGSIDE_{meant}?"


def test_variables_that_kubernetes_sets_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes gives every pod the addresses of a service called `ringside`."""
    for name in (
        "SERVICE_HOST",
        "TABLE_PORT",
        "SMTP_PORT_25_TCP",
        "SERVICE_PORT",
        "SERVICE_PORT_HTTP",
        "PORT",
        "PORT_8000_TCP",
        "PORT_8000_TCP_ADDR",
    ):
        monkeypatch.setenv(f"RINGSIDE_{name}", "10.0.0.1")
    Settings.load()


def test_without_an_embedded_engine_a_secret_is_required(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says how to make one, and makes none behind the operator's back."""
    monkeypatch.setenv("RINGSIDE_DYNAMODB_URL", "aws")
    text = refusal()
    assert "RINGSIDE_SECRETS is not set" in text
    assert "openssl rand -base64 48" in text
    assert not (tmp_path / "data").exists()


def test_the_embedded_secret_is_made_once_and_for_this_user_only(tmp_path: Path) -> None:
    """A restart signs with the same; nobody else on the machine can read it; nothing is left beside it."""
    first, second = Settings.load(), Settings.load()
    assert first.secrets == second.secrets
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret"]
    assert stat.S_IMODE((tmp_path / "data" / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_two_processes_that_create_the_secret_at_once_share_one(tmp_path: Path) -> None:
    """The command line beside a starting service."""
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(load_or_create_secrets, [tmp_path / "fresh"] * 8))
    assert len({tuple(secrets) for secrets in found}) == 1


def test_a_secret_in_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And then no file is made."""
    monkeypatch.setenv("RINGSIDE_SECRETS", SECRET)
    assert Settings.load().seal().sign("any", b"") == Settings(secrets=(SecretStr(SECRET),)).seal().sign("any", b"")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"short", "fewer than 32 characters"),
        (b"", "fewer than 32"),
        (b"\xff" * 40, "not text"),
        (b",".join([b"shortened" * 5] * (MOST_SECRETS + 1)), f"holds more than {MOST_SECRETS} secrets"),
    ],
)
def test_a_damaged_secret_file_is_refused(tmp_path: Path, content: bytes, wrong: str) -> None:
    """Rather than signing with whatever is left of it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_bytes(content)
    text = refusal()
    assert f"{tmp_path / 'data' / 'secret'} " in text
    assert wrong in text
    assert "short" not in text


@pytest.mark.parametrize(("content", "found"), [(b"\xff" * 40, "is not text"), (None, "is a folder")])
def test_what_cannot_be_a_secret_file_is_said_with_the_way_back(
    tmp_path: Path, content: bytes | None, found: str
) -> None:
    """The user may read it and write to the folder, so neither is advised. A mount without a source is a folder."""
    file = tmp_path / "data" / "secret"
    file.parent.mkdir()
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    text = refusal()
    assert f"{file} {found}. Put the saved secret back" in text
    assert "cookies and tokens signed before are then refused" in text
    assert "write to the folder" not in text


def test_a_folder_that_cannot_be_created_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("RINGSIDE_DATA", str(tmp_path / "file" / "data"))
    assert "Let this user write to the folder" in refusal()


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in repr, nor in JSON, nor in a log, nor in a refusal that concerns them or their neighbours."""
    monkeypatch.setenv("RINGSIDE_SECRETS", SECRET)
    monkeypatch.setenv("RINGSIDE_SMTP_URL", "smtp://me:hush-hush@mail.example.com")
    settings = Settings.load()
    logging.getLogger("test").warning("%s %r %s", settings, settings, settings.model_dump_json())
    monkeypatch.setenv("RINGSIDE_SMTP_URL", "http://me:hush-hush@mail.example.com")
    monkeypatch.setenv("RINGSIDE_OTLP_ENDPOINT", "http://me:hush-hush@mail.example.com")
    monkeypatch.setenv("RINGSIDE_SECRETS", f"{SECRET},hush-hush")
    shown = caplog.text + refusal()
    assert "RINGSIDE_SECRETS" in shown
    assert SECRET not in shown
    assert "hush-hush" not in shown


def test_every_setting_is_described_in_the_table_and_the_help() -> None:
    """One row and one paragraph each, with its default."""
    rows = settings_table().splitlines()
    assert len(rows) == len(Settings.model_fields) + 2
    assert "| `RINGSIDE_MAX_IN_FLIGHT` |" in settings_table()
    assert {row.count("|") for row in rows} == {4}
    for name, field in Settings.model_fields.items():
        assert field.description
        assert variable(name) in settings_table()
        assert f"{variable(name)}: " in settings_help()
