"""Word lists, daily words, subscriptions, and members' quizzes and sentences.

| wanted                                  | read or write                                           | requests        |
|-----------------------------------------|---------------------------------------------------------|-----------------|
| one list; the lists of a page           | GetItem LIST#<id>; BatchGetItem                         | 1; 1 a hundred  |
| public and a member's own lists, by name| gsi1 LISTS#PUBLIC and LISTS#OF-<user>, merged           | 2 a page, mostly |
| a list's words                          | LIST#<id>, WORD#                                        | 1 a page        |
| a new list                              | transaction: list, the owner's count of private ones    | 1               |
| new words                               | transaction: words, the list's count; above 90 words:   | 1; 2 and 1 a 90 |
|                                         | a claim, transactions of words, the count               |                 |
| the daily word of a list and date       | GetItem LIST#<id> DAILY#<date>                          | 1               |
| the same, drawn                         | BatchGetItem, GetItem, transaction: day, order          | 3, once a day   |
| all daily words of a date               | gsi1 DAILY#<date>#PUBLIC and #OF-<user>                 | 2               |
| a list's past daily words               | LIST#<id>, DAILY# newest first                          | 1 a page        |
| subscribe, unsubscribe                  | BatchGetItem, transaction: both character sets,         | 2               |
|                                         | the list's count                                        |                 |
| the number of a list's subscribers      | LIST#<id>, SUBSCRIBERS#, 16 shards                      | 1               |
| all members with active subscriptions   | gsi1 USERS#<shard>, 16 shards, to the end               | 1 a page        |
| a profile screen                        | USER#<id>, DAY#<since> to SUBSCRIPTION#                 | 1               |
| a quiz result, a sentence               | BatchGetItem (zone, days), transaction: it, days        | 2               |
| an amended sentence                     | GetItem, UpdateItem                                     | 2               |
| a day's leaderboard                     | gsi1 DAY#<date>#<shard>, 16 shards, cached              | 16 every 2 s    |
| a member's mail of a date               | Put (claim), Update (sent)                              | 2               |
"""

from datastore.vocabulary.daily import (
    DAILY,
    DailyWord,
    ListBroken,
    daily_words_of_date,
    draw_daily_word,
    import_daily_word,
    imported_daily_word,
    read_daily_word,
    read_past_daily_words,
    read_same_daily_words,
)
from datastore.vocabulary.learning import (
    ACTIVE_DAYS,
    QUIZ,
    SENTENCE,
    ActiveDays,
    DateRange,
    ProfileScreen,
    QuizResult,
    Sentence,
    amend_sentence,
    quiz_request,
    read_active_days,
    read_profile_and_days,
    read_profile_screen,
    read_quiz_page,
    read_quiz_result,
    read_results_of_day,
    read_sentence,
    read_sentence_page,
    record_result,
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
    TooManyLists,
    TooManyWords,
    Word,
    WordBatch,
    WordList,
    add_words,
    all_words,
    create_list,
    lists_by_name,
    owner_scope,
    read_added_words,
    read_list,
    read_lists,
    read_lists_page,
    read_word,
    read_words,
    read_words_page,
)
from datastore.vocabulary.mail import (
    MAIL,
    Mail,
    begin_mailing,
    claim_mail,
    mark_sent,
    read_mails,
    release_claim,
)
from datastore.vocabulary.subscriptions import (
    SUBSCRIBER_COUNT,
    SUBSCRIPTION,
    CharacterSet,
    Subscriber,
    SubscriberCount,
    Subscription,
    all_subscribers,
    import_subscription,
    read_same_subscriptions,
    read_subscriber_count,
    read_subscriptions,
    subscribe,
    unsubscribe,
)
from datastore.vocabulary.word_order import (
    DrawnWord,
    WordOrder,
    next_word,
)

__all__ = [
    "ACTIVE_DAYS",
    "DAILY",
    "LIST",
    "LONGEST_LIST",
    "MAIL",
    "MOST_LISTS",
    "MOST_WORDS",
    "QUIZ",
    "QUOTA",
    "SENTENCE",
    "SUBSCRIBER_COUNT",
    "SUBSCRIPTION",
    "WORD",
    "ActiveDays",
    "AddedWords",
    "CharacterSet",
    "DailyWord",
    "DateRange",
    "DrawnWord",
    "ListBroken",
    "Mail",
    "ProfileScreen",
    "QuizResult",
    "Sentence",
    "Subscriber",
    "SubscriberCount",
    "Subscription",
    "TooManyLists",
    "TooManyWords",
    "Word",
    "WordBatch",
    "WordList",
    "WordOrder",
    "add_words",
    "all_subscribers",
    "all_words",
    "amend_sentence",
    "begin_mailing",
    "claim_mail",
    "create_list",
    "daily_words_of_date",
    "draw_daily_word",
    "import_daily_word",
    "import_subscription",
    "imported_daily_word",
    "lists_by_name",
    "mark_sent",
    "next_word",
    "owner_scope",
    "quiz_request",
    "read_active_days",
    "read_added_words",
    "read_daily_word",
    "read_list",
    "read_lists",
    "read_lists_page",
    "read_mails",
    "read_past_daily_words",
    "read_profile_and_days",
    "read_profile_screen",
    "read_quiz_page",
    "read_quiz_result",
    "read_results_of_day",
    "read_same_daily_words",
    "read_same_subscriptions",
    "read_sentence",
    "read_sentence_page",
    "read_subscriber_count",
    "read_subscriptions",
    "read_word",
    "read_words",
    "read_words_page",
    "record_result",
    "release_claim",
    "sentence_request",
    "subscribe",
    "unsubscribe",
]
