"""Webhooks in memory: signatures, addresses that nothing is sent to, and pauses."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.changes.occurrences import Delivery, DeliveryState, Occurrence
from datastore.refusals import InvalidInput
from datastore.values.ids import first_id
from resolvers.journal.webhooks import ForbiddenAddress, check_address, parse_destination
from server.webhooks import failing_since, next_attempt, sign

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PUBLISHED_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of the specification's example
PUBLISHED_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_signature_is_that_of_the_specifications_example() -> None:
    """The published example of Standard Webhooks."""
    body = b'{"test": 2432232314}'
    signed = sign([PUBLISHED_SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == PUBLISHED_SIGNATURE
    both = sign([PUBLISHED_SECRET, "whsec_AAAA"], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert both.split() == [PUBLISHED_SIGNATURE, sign(["whsec_AAAA"], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)]


FORBIDDEN = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.31.0.1",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2a00::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_nothing_is_sent_to_addresses_that_are_not_public(address: str) -> None:
    """Private, loopback, link-local, multicast, metadata; also inside another address."""
    with pytest.raises(ForbiddenAddress):
        check_address(address, (), secure=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::1"])
def test_public_addresses_are_sent_to_over_https_only(address: str) -> None:
    """Not over http."""
    check_address(address, (), secure=True)
    with pytest.raises(ForbiddenAddress, match="http"):
        check_address(address, (), secure=False)


def test_allowed_networks_are_sent_to_in_any_way() -> None:
    """Their neighbours are not."""
    for secure in (True, False):
        check_address("10.1.2.3", ("10.1.0.0/16", "fd00::/8"), secure=secure)
        check_address("fd00::7", ("10.1.0.0/16", "fd00::/8"), secure=secure)
        for other in ("10.2.0.1", "::ffff:10.1.2.3"):
            with pytest.raises(ForbiddenAddress):
                check_address(other, ("10.1.0.0/16", "fd00::/8"), secure=secure)


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_in_ipv6_form_is_never_public(number: int) -> None:
    """Mapped, compatible, 6to4, NAT64 and Teredo forms of any address."""
    address = int(IPv4Address(number))
    high, low = address >> 16, address & 0xFFFF
    for form in (f"::ffff:{high:x}:{low:x}", f"::{high:x}:{low:x}", f"2002:{high:x}:{low:x}::1"):
        with pytest.raises(ForbiddenAddress):
            check_address(form, (), secure=True)
    for form in (f"64:ff9b::{high:x}:{low:x}", f"2001:0:{high:x}:{low:x}::1"):
        with pytest.raises(ForbiddenAddress):
            check_address(form, (), secure=True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "begins with https"),
        ("ftp://example.com/", "begins with https"),
        ("//example.com/", "begins with https"),
        ("https://", "names a host"),
        ("http://example.com/", "begins with https"),
        ("https://user:secret@example.com/", "user or a password"),
        ("https://@example.com/", "user or a password"),
        ("https://example.com:99999/", "cannot be read"),
        ("https://example.com:0/", "names a host"),
        ("https://exa mple.com/", "plain ASCII"),
        ("https://ex\u00e4mple.com/", "plain ASCII"),
        ("https://example.com\\@127.0.0.1/", "plain ASCII"),
        ("https://example.com/#part", "fragment"),
        ("https://127.0.0.1/", "not a public address"),
        ("https://127.1/", "usual form"),
        ("https://2130706433/", "usual form"),
        ("https://0x7f.0.0.1/", "usual form"),
        ("https://0x7f000001/", "usual form"),
        ("https://0177.0.0.1/", "usual form"),
        ("https://127.0.0.1./", "usual form"),
        ("https://a..example/", "cannot be a host name"),
        (f"https://{'a' * 64}.example/", "cannot be a host name"),
        ("https://a%2e.example/", "cannot be a host name"),
        ("https://[::1]/", "not a public address"),
        ("https://[::ffff:127.0.0.1]/", "not a public address"),
        ("https://[fe80::1%25eth0]/", "not a public address"),
        ("https://example.com/" + "x" * 2000, "at most"),
    ],
)
def test_an_url_that_may_not_be_sent_to_is_refused_with_its_reason(url: str, reason: str) -> None:
    """Before any name is looked up."""
    with pytest.raises(InvalidInput, match=reason) as refused:
        parse_destination(url, ())
    assert refused.value.path == ("input", "url")


def delivery(*, since: datetime | None = None, attempts: int = 0) -> Delivery:
    occurrence = Occurrence(first_id(NOW), "comment.edited", object="a")
    return Delivery("w", DeliveryState.WAITING, occurrence.ulid, occurrence.kind, occurrence, attempts, since=since)


def test_a_delivery_is_tried_again_for_a_day() -> None:
    """With pauses of at most 2, 4, 8 … seconds and an hour, from its first failure or from when it was queued again."""
    for attempts, longest in ((0, 2), (1, 4), (5, 64), (30, 3600)):
        pauses = [next_attempt(delivery(attempts=attempts), NOW) for _ in range(50)]
        assert all(pause is not None and NOW <= pause <= NOW + timedelta(seconds=longest) for pause in pauses)
        assert len(set(pauses)) > 1
    day = timedelta(days=1)
    assert next_attempt(delivery(), NOW + 2 * day) is not None
    assert next_attempt(delivery(since=NOW, attempts=30), NOW + day) is None
    assert next_attempt(delivery(since=NOW + day), NOW + day + day / 2) is not None
    assert next_attempt(delivery(since=NOW + day), NOW + 2 * day) is None


def test_a_time_in_which_nobody_tried_does_not_count_towards_the_day() -> None:
    """Nor does a clock that was ahead or behind at an earlier failure make a delivery wait longer, or end it."""
    minute, day = timedelta(minutes=1), timedelta(days=1)
    assert failing_since(delivery(), NOW) == NOW
    for since, next_at, expected in (
        (NOW - 5 * minute, NOW, NOW - 5 * minute),
        (NOW - 3 * day, NOW - 3 * day + minute, NOW - minute),
        (NOW + day, NOW + day + minute, NOW),
        (NOW - 999 * day, NOW - 999 * day + minute, NOW - minute),
    ):
        failed = replace(delivery(since=since, attempts=3), next_at=next_at)
        assert failing_since(failed, NOW) == expected
