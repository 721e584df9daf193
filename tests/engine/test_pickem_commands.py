"""Season files and scoring from the command line."""

from __future__ import annotations

from pathlib import Path

import orjson

from datastore.dynamo import Table
from server.settings import Settings
from tests.service import ringside

SEASON = {
    "events": [
        {
            "name": "Past",
            "season": "2026",
            "startsAt": "2026-11-01T20:00:00Z",
            "matches": [
                {
                    "name": "Main",
                    "points": 25,
                    "teams": [{"members": ["A"]}, {"members": ["B"]}],
                    "result": {"outcome": "WON", "winner": 0},
                }
            ],
        },
        {"name": "Next", "season": "2027", "startsAt": "2096-11-01T20:00:00Z"},
    ]
}


async def test_a_season_is_imported_and_exported(one_table: Table, settings: Settings, tmp_path: Path) -> None:
    """Imported, exported, scored; what cannot be read is named, and then nothing is written."""
    variables = {
        "RINGSIDE_DYNAMODB_URL": settings.dynamodb_url,
        "RINGSIDE_TABLE": one_table.name,
        "RINGSIDE_SECRETS": "s" * 48,
    }
    file, copy = tmp_path / "season.json", tmp_path / "copy.json"
    file.write_bytes(orjson.dumps(SEASON))
    assert "2 events were created, 0 existed already" in ringside("import", "events", str(file), **variables).stdout
    assert ringside("export", "events", "--season", "2026", "--out", str(copy), **variables).returncode == 0
    [event] = orjson.loads(copy.read_bytes())["events"]
    assert (event["name"], event["state"]) == ("Past", "LOCKED")
    assert event["matches"][0]["result"] == {"outcome": "WON", "winner": 0}
    scored = ringside("score", event["id"], **variables)
    assert (scored.returncode, scored.stdout.strip()) == (0, "Past: 0 predictions are scored.")
    file.write_bytes(orjson.dumps({"events": [*SEASON["events"], {"name": "Broken"}]}))
    broken = ringside("import", "events", str(file), **variables)
    assert broken.returncode == 1
    assert "events.2: KeyError: 'startsAt'. Nothing was imported." in broken.stderr
