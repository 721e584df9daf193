"""Resolvers of vocabulary: word lists, daily words and subscriptions, quizzes, sentences and streaks.

| module           | contents                                                                           |
|------------------|------------------------------------------------------------------------------------|
| lists            | word lists and their words, created, changed and removed                           |
| texts            | rules for the texts of lists and words                                             |
| transfer         | importing words                                                                    |
| visibility       | what a viewer sees of lists, words, quizzes and cards                              |
| cache            | lists and words that the process remembers; what several fields show of one member |
| daily_words      | the word of a list and date                                                        |
| subscriptions    | daily words by email, for members and for addresses without an account             |
| learning         | quiz results and sentences, words that are due, the leaderboard's fields           |
| schedules        | days, streaks, and when to ask for a word again, as pure rules                     |
| quizzes          | quizzes that the service asks and grades                                           |
| quiz_leaderboard | a day's quizzes, ranked                                                            |
| member_data      | taking back and erasing what a member has learned and subscribed to                |
"""
