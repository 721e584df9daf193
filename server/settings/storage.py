"""The settings of the table, its engine and the secrets."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, SecretStr
from pydantic_settings import BaseSettings

from server.settings.fields import PREFIX, REGIONS, number, setting
from server.settings.secret import MIN_SECRET_LENGTH
from server.settings.values import EMBEDDED, CommaSeparated, parse_engine, validate_secrets


class StorageSettings(BaseSettings):
    """The part of the settings about what is stored, and the secrets that sign what clients keep."""

    dynamodb_url: Annotated[str, AfterValidator(parse_engine)] = setting(
        "The engine that holds the table: an address, `embedded` to start one here, `aws` for DynamoDB.",
        write="embedded, aws, or an address such as http://127.0.0.1:8001",
        default=EMBEDDED,
    )
    data: Path = setting(
        "Folder for the embedded engine's table and its generated secret.",
        write="a folder that this user may write to",
        default=Path(".ringside"),
    )
    backup_hours: float | None = number(
        "Hours between backups of the embedded engine's table, to `backups` in `RINGSIDE_DATA`, where 7 are kept.",
        default=None,
        within=(0.25, 720),
        unit="hours",
        shown="none are made",
    )
    table: str = setting(
        "Name of the table. It is created at startup if the engine is embedded.",
        write="3 to 255 letters, digits, dots, dashes or underscores",
        default="ringside",
        pattern="^[A-Za-z0-9_.-]{3,255}$",
    )
    aws_region: str | None = setting(
        "Region of the table; `AWS_REGION` and `AWS_DEFAULT_REGION` work too.",
        write="a region such as eu-central-1",
        shown="the AWS SDK's own",
        pattern="^[a-z0-9-]{3,40}$",
        validation_alias=AliasChoices(f"{PREFIX}AWS_REGION", *REGIONS),
    )
    secrets: Annotated[CommaSeparated[SecretStr], AfterValidator(validate_secrets)] = setting(
        "Secrets that sign cookies, ballots, cursors and development tokens: up to four, comma-separated, newest "
        f"first, each of {MIN_SECRET_LENGTH} characters or more.",
        write="the output of `openssl rand -base64 48`; keep the old one after a comma until all it signed has expired",
        default=(),
        shown="generated once in `RINGSIDE_DATA` if embedded; otherwise required",
    )
