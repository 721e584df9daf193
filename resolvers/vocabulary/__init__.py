"""Resolvers of vocabulary: word lists, daily words and subscriptions, quizzes, sentences and streaks.

| module           | contents                                                    |
|------------------|-------------------------------------------------------------|
| lists            | word lists and their words; rules for their texts           |
| corrections      | changing and removing words, lists and sentences            |
| daily_words      | the word of a list and date                                 |
| subscriptions    | daily words by email                                        |
| learning         | quizzes and sentences, streaks, the leaderboard's fields    |
| quiz_leaderboard | a day's quizzes, ranked                                     |
| profile_screen   | what several fields show of one member, read in one query   |
| streaks          | days and streaks as pure rules                              |
| visibility       | who may see which lists and words                           |
| cache            | lists and words that the process remembers                  |
"""
