"""Vocabulary: lists and their subscriptions; learning."""
