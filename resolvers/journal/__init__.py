"""The journal and webhooks."""
