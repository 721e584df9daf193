"""The environment decides, is understood or is refused with what to write instead."""

import logging
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from server.auth.secret import load_or_create_secrets
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
        "INTROSPECTION": "off",
        "TRUSTED_DOCUMENTS": str(manifest),
        "SMTP_URL": "smtps://me:hush-hush@mail.example.com",
        "MAIL_FROM": "Words <words@example.com>",
        "PUBLIC_URL": "https://api.example.com",
        "DAY_BEGINS_AT": "4",
        "CORS_ORIGINS": "https://a.example, http://b.example:3000",
        "LOG": "DEBUG, json",
        "OTLP_ENDPOINT": "http://collector:4318",
        "ENGINE_BINARY": str(program),
        "REQUEST_TIMEOUT": "2.5",
        "MAX_BODY_BYTES": "2048",
        "MAX_IN_FLIGHT": "7",
        "COMMENT_RATE": "30/minute",
        "PREMODERATION": "true",
        "DEMO": "true",
        "BALLOT_HOURS": "0.5",
        "VOTES_PER_VISITOR": "9/second",
        "VOTES_PER_ADDRESS": "99/minute",
    }
    assert {*given, "DATA"} == {name.upper() for name in Settings.model_fields}
    for name, value in given.items():
        monkeypatch.setenv(f"RINGSIDE_{name}", value)
    settings = Settings.load()
    assert settings.dynamodb_url == "http://engine:8000"
    assert [secret.get_secret_value() for secret in settings.secrets] == [f"{SECRET}2", f"{SECRET}1"]
    assert settings.cors_origins == ("https://a.example", "http://b.example:3000")
    assert settings.log == Log(Level.DEBUG, Format.JSON)
    assert settings.introspection is Introspection.OFF
    assert (settings.request_timeout, settings.max_body_bytes, settings.max_in_flight) == (2.5, 2048, 7)
    assert (settings.trusted_documents, settings.engine_binary) == (manifest, program)
    assert (settings.comment_rate, settings.premoderation) == ("30/minute", True)
    assert (settings.demo, settings.ballot_hours) == (True, 0.5)
    assert (settings.votes_per_visitor, settings.votes_per_address) == ("9/second", "99/minute")


def test_settings_are_frozen() -> None:
    """What was read at start stays."""
    with pytest.raises(ValidationError, match="frozen"):
        Settings.load().table = "other"


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
        ("SECRETS", f"{SECRET},hush-hush", "fewer than 32 characters", "openssl rand -base64 48"),
        ("JWKS_URL", "login.example.com", "not an address", "https://login.example.com/"),
        ("JWKS_URL", "http://login.example.com/jwks", "must come over https", "https://"),
        ("JWKS_URL", "http://8.8.8.8/jwks", "must come over https", "https://"),
        ("INTROSPECTION", "maybe", "'on', 'off' or 'role'", "on, off or role"),
        ("TRUSTED_DOCUMENTS", "/nowhere/at/all.json", "no such file", "the path"),
        ("SMTP_URL", "mail.example.com", "smtp:// or smtps://", "smtp://user:password@"),
        ("MAIL_FROM", "words", "not an e-mail address", "words@example.com"),
        ("MAIL_FROM", "a@example.com\nBcc: b@example.com", "not an e-mail address", "words@example.com"),
        ("PUBLIC_URL", "api.example.com", "not an address", "https://api.example.com"),
        ("DAY_BEGINS_AT", "13", "less than or equal to 12", "0 to 12"),
        ("CORS_ORIGINS", "*", "every site", "https://www.example.com"),
        ("CORS_ORIGINS", "https://a.example/", "more than a scheme", "without a path"),
        ("CORS_ORIGINS", "a.example", "not an address", "https://www.example.com"),
        ("LOG", "loud", "neither a level nor a format", "info,json"),
        ("OTLP_ENDPOINT", "collector:4317", "not an address", "http://127.0.0.1:4318"),
        ("ENGINE_BINARY", "/nowhere/dynoxide", "no such file", "the path"),
        ("ENGINE_BINARY", __file__, "not executable", "the path"),
        ("REQUEST_TIMEOUT", "0", "greater than or equal to 0.1", "0.1 to 300"),
        ("REQUEST_TIMEOUT", "nan", "finite number", "0.1 to 300"),
        ("MAX_BODY_BYTES", "1MB", "valid integer", "1024 to 16777216"),
        ("MAX_IN_FLIGHT", "0", "greater than or equal to 1", "1 to 100000"),
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
    "url", ["http://127.0.0.1:1/k", "http://localhost:1/k", "http://keycloak:8080/k", "http://[::1]/k"]
)
def test_keys_may_come_without_tls_from_a_private_network(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """From this machine, or a neighbour in compose or a cluster."""
    monkeypatch.setenv("RINGSIDE_JWKS_URL", url)
    assert Settings.load().jwks_url == url


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
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8000_TCP", "PORT_8000_TCP_ADDR"):
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
    ("content", "wrong"), [(b"short", "fewer than 32 characters"), (b"", "fewer than 32"), (b"\xff" * 40, "not text")]
)
def test_a_damaged_secret_file_is_refused(tmp_path: Path, content: bytes, wrong: str) -> None:
    """Rather than signing with whatever is left of it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_bytes(content)
    text = refusal()
    assert wrong in text
    assert "short" not in text


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
