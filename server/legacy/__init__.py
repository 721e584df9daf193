"""Migration of the layout that preceded this one: two tables and a file.

| source              | key                     | attributes                                              |
|---------------------|-------------------------|---------------------------------------------------------|
| subscriptions table | ListId, SubscriberEmail | CharacterSet, Status, DateSubscribed                    |
| past words table    | ListId, Date            | Word: a text, or a map with the text in Simplified      |
| words file (CSV)    |                         | ListId, Simplified, Definition and, optionally,         |
|                     |                         | ListName, Level, Traditional, Pinyin                    |

The source is only read. A second run verifies what the first one wrote.
"""

from server.legacy.migration import Migration, MigrationOptions, MigrationSummary
from server.legacy.source import LegacySource

__all__ = ["LegacySource", "Migration", "MigrationOptions", "MigrationSummary"]
