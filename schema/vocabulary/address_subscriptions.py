"""Subscriptions of email addresses without an account."""

from __future__ import annotations

import strawberry

from resolvers.vocabulary import address_subscriptions
from schema.framework.mutations import mutation
from schema.framework.types import object_type
from schema.vocabulary.lists import ListSubscription


@strawberry.type
class AddressSubscriptionMutation:
    request_subscription = mutation(
        address_subscriptions.request_subscription,
        "Emails an address a link that subscribes it to a public list's daily word. It needs no "
        "account, and stores nothing but a keyed hash until the link is confirmed.",
        object_type(
            "SubscriptionRequested",
            "A link was sent to the address today. Confirming it subscribes the address.",
            email=(str, "The address as it was given, whether or not it is known here."),
        ),
        input_description="An address that wants a list's daily word.",
        result_description="Confirmation that the email was sent today, or why it was not.",
        email="The address. It gets one such email a day, whose link works once, within 24 hours.",
        list="The list, which must be public.",
        character_set="The spelling of its words.",
    )
    claim_subscriptions = mutation(
        address_subscriptions.claim_subscriptions,
        "Moves the subscriptions of the viewer's address to the viewer: those that were confirmed without an account, "
        "or migrated. The address must be proven: by the link that `updateProfile` sends to it, or by a token of the "
        "configured issuer with `email_verified: true`.",
        object_type(
            "SubscriptionsClaimed",
            "The subscriptions now belong to the viewer, and no longer to the address.",
            subscriptions=(list[ListSubscription], "The viewer's subscriptions that the address had."),
        ),
        input_description="A claim to the subscriptions of the viewer's address.",
        result_description="The subscriptions, or why none were claimed.",
    )
