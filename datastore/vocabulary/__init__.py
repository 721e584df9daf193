"""Word lists, a word a day, and what members make of them.

| wanted                                  | read or write                                           | requests        |
|-----------------------------------------|---------------------------------------------------------|-----------------|
| one list; the lists behind a page       | GetItem LIST#<id>; BatchGetItem                         | 1; 1 a hundred  |
| public lists, and one's own, by name    | gsi1 LISTS#PUBLIC and LISTS#OF-<user>, merged           | 2 a page, mostly |
| a list's words                          | LIST#<id>, WORD#                                        | 1 a page        |
| new list                                | transaction: list, the owner's count of private ones    | 1               |
| new words                               | words and the list's count in one; more than 90:   | 1; 2 and 1 a 90 |
|                                         | behind a claim                                          |                 |
| the daily word of a list and date       | GetItem LIST#<id> DAILY#<date>                          | 1               |
| the same, drawn                         | BatchGetItem, GetItem, transaction: day, walk           | 3, once a day   |
| all daily words of a date               | gsi1 DAILY#<date>#PUBLIC and #OF-<user>                 | 2               |
| past daily words of a list              | LIST#<id>, DAILY# newest first                          | 1 a page        |
| subscribe, unsubscribe                  | BatchGetItem, transaction: it, the other character set, | 2               |
|                                         | the list's count                                        |                 |
| a list's subscribers                    | LIST#<id>, SUBSCRIBERS#, 16 parts                       | 1               |
| all members with active subscriptions   | gsi1 USERS#<shard>, 16 shards, to the end               | 1 a page        |
| a profile screen                        | USER#<id>, DAY#<since> to SUBSCRIPTION#                 | 1               |
| a quiz result, a sentence               | BatchGetItem (zone, days), transaction: it, days        | 2               |
| an amended sentence                     | GetItem, UpdateItem                                     | 2               |
| a day's leaderboard                     | gsi1 DAY#<date>#<shard>, 16 shards, kept in the process | 16 every 2 s    |
| a member's mail of a date               | Put (claim), Update (sent)                              | 2               |
"""

from datastore.vocabulary.daily import (
    DAILY,
    DailyWord,
    ListBroken,
    days_like,
    draw,
    import_day,
    imported_day,
    on_date,
    review,
    stored,
)
from datastore.vocabulary.learning import (
    DAYS,
    QUIZ,
    SENTENCE,
    Days,
    QuizResult,
    Screen,
    Sentence,
    Span,
    amend,
    days_of,
    profile_and_days,
    quiz_page,
    quiz_request,
    quiz_result,
    read_day,
    record,
    screen,
    sentence,
    sentence_page,
    sentence_request,
)
from datastore.vocabulary.lists import (
    LIST,
    LONGEST_LIST,
    MOST_LISTS,
    MOST_WORDS,
    QUOTA,
    WORD,
    AddedWords,
    Batch,
    TooManyLists,
    TooManyWords,
    Word,
    WordList,
    add_words,
    added_words,
    create_list,
    lists_by_name,
    lists_page,
    owner_scope,
    word,
    word_list,
    word_lists,
    word_page,
    words,
    words_at,
)
from datastore.vocabulary.mail import MAIL, Mail, begin_mailing, claim_mail, mails, mark_sent, release_claim
from datastore.vocabulary.subscriptions import (
    SUBSCRIBERS,
    SUBSCRIPTION,
    CharacterSet,
    Reader,
    Subscribers,
    Subscription,
    import_subscription,
    readers,
    subscribe,
    subscriber_count,
    subscriptions,
    subscriptions_like,
    unsubscribe,
)
from datastore.vocabulary.word_order import DrawnWord, WordOrder, next_word

__all__ = [
    "DAILY",
    "DAYS",
    "LIST",
    "LONGEST_LIST",
    "MAIL",
    "MOST_LISTS",
    "MOST_WORDS",
    "QUIZ",
    "QUOTA",
    "SENTENCE",
    "SUBSCRIBERS",
    "SUBSCRIPTION",
    "WORD",
    "AddedWords",
    "Batch",
    "CharacterSet",
    "DailyWord",
    "Days",
    "DrawnWord",
    "ListBroken",
    "Mail",
    "QuizResult",
    "Reader",
    "Screen",
    "Sentence",
    "Span",
    "Subscribers",
    "Subscription",
    "TooManyLists",
    "TooManyWords",
    "Word",
    "WordList",
    "WordOrder",
    "add_words",
    "added_words",
    "amend",
    "begin_mailing",
    "claim_mail",
    "create_list",
    "days_like",
    "days_of",
    "draw",
    "import_day",
    "import_subscription",
    "imported_day",
    "lists_by_name",
    "lists_page",
    "mails",
    "mark_sent",
    "next_word",
    "on_date",
    "owner_scope",
    "profile_and_days",
    "quiz_page",
    "quiz_request",
    "quiz_result",
    "read_day",
    "readers",
    "record",
    "release_claim",
    "review",
    "screen",
    "sentence",
    "sentence_page",
    "sentence_request",
    "stored",
    "subscribe",
    "subscriber_count",
    "subscriptions",
    "subscriptions_like",
    "unsubscribe",
    "word",
    "word_list",
    "word_lists",
    "word_page",
    "words",
    "words_at",
]
