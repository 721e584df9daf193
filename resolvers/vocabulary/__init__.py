"""Resolvers of vocabulary: word lists, daily words and subscriptions, quizzes, sentences and streaks.

| module                | contents                                                            |
|-----------------------|---------------------------------------------------------------------|
| lists                 | word lists and their words                                          |
| texts                 | rules for the texts of lists and words                              |
| transfer              | importing words                                                     |
| corrections           | changing and removing words, lists and sentences                    |
| visibility            | what a viewer sees of lists, words, quizzes and cards               |
| cache                 | lists and words that the process remembers                          |
| daily_words           | the word of a list and date                                         |
| subscriptions         | daily words by email                                                |
| address_subscriptions | the same for an address without an account                          |
| learning              | quiz results and sentences, streaks, the leaderboard's fields       |
| quizzes               | quizzes that the service asks and grades                            |
| quiz_questions        | a quiz's questions as pure rules                                    |
| quiz_leaderboard      | a day's quizzes, ranked                                             |
| cards                 | words that are due for review                                       |
| scheduling            | when to ask for a word again                                        |
| profile_screen        | what several fields show of one member, read in one query           |
| member_data           | taking back and erasing what a member has learned and subscribed to |
| streaks               | days and streaks as pure rules                                      |
"""
