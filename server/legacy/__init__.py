"""The layout that this project's words came from: two tables and a file.

| source              | key                     | attributes                                           |
|---------------------|-------------------------|------------------------------------------------------|
| subscriptions table | ListId, SubscriberEmail | CharacterSet, Status, DateSubscribed                 |
| past words table    | ListId, Date            | Word: a text, or a map whose Simplified it is        |
| words file (CSV)    |                         | ListId, Simplified, Definition and, if any,          |
|                     |                         | ListName, Level, Traditional, Pinyin                 |

`move` brings it into the one table. The source is only read. A second run finds everything in its place.
"""

from server.legacy.move import Migration, Moved
from server.legacy.source import Legacy

__all__ = ["Legacy", "Migration", "Moved"]
