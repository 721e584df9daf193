"""The direct client, compared with the SDK: the same answers and errors, the same signatures."""

import json
from typing import Any

import botocore.session
import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as some
from yarl import URL

from datastore.dynamo.transport.client import Endpoint, Signer, parse_answer, parse_error, request_body
from datastore.dynamo.transport.connections import Response
from tests.property.attributes import TEXT, Attributes, nested

MODEL = botocore.session.get_session().get_service_model("dynamodb")
NUMBER = some.one_of(
    some.integers(-(10**37), 10**37).map(str), some.floats(allow_nan=False, allow_infinity=False).map(repr)
)
# Names that could be taken for types, if anybody looked at names alone.
NAME = some.one_of(TEXT.filter(bool), some.sampled_from(["B", "BS", "S", "M", "L", "Items", "pk"]))
FLAT: Attributes = some.one_of(
    some.builds(lambda value: {"S": value}, TEXT),
    some.builds(lambda value: {"N": value}, NUMBER),
    some.builds(lambda value: {"B": value}, some.binary(max_size=40)),
    some.builds(lambda value: {"BOOL": value}, some.booleans()),
    some.just({"NULL": True}),
    some.builds(lambda values: {"BS": values}, some.lists(some.binary(max_size=9), min_size=1, max_size=3)),
    some.builds(lambda values: {"SS": values}, some.lists(TEXT, min_size=1, max_size=3)),
    some.builds(lambda values: {"NS": values}, some.lists(NUMBER, min_size=1, max_size=3)),
)


ATTRIBUTE = nested(FLAT, NAME)
ITEM = some.dictionaries(NAME, ATTRIBUTE, max_size=6)


def parsed_by_the_sdk(operation: str, body: bytes) -> Any:
    response = {"status_code": 200, "headers": {}, "body": body}
    shape = MODEL.operation_model(operation).output_shape
    assert shape is not None
    answer = create_parser("json").parse(response, shape)
    answer.pop("ResponseMetadata")
    return answer


@given(some.lists(ITEM, max_size=4), ITEM, some.sampled_from([None, 2]))
def test_answers_are_parsed_as_the_sdk_parses_them(items: list[Any], place: Any, indent: int | None) -> None:
    """Whatever items hold: binary, numbers, empty and foreign texts, maps whose names look like types."""
    answers = {
        "Query": {"Items": items, "Count": len(items), "LastEvaluatedKey": place},
        "GetItem": {"Item": place, "ConsumedCapacity": {"TableName": "abc", "CapacityUnits": 0.5}},
        "UpdateItem": {"Attributes": place},
        "BatchGetItem": {"Responses": {"abc": items}, "UnprocessedKeys": {"abc": {"Keys": items}}},
        "BatchWriteItem": {"UnprocessedItems": {"abc": [{"PutRequest": {"Item": item}} for item in items]}},
    }
    for operation, answer in answers.items():
        body = json.dumps(orjson.loads(request_body(answer)), indent=indent).encode()
        assert parse_answer(body) == parsed_by_the_sdk(operation, body) == answer


@given(ITEM, ITEM)
def test_requests_are_what_the_sdk_would_send(item: Any, values: Any) -> None:
    """Byte for byte the same JSON, binary as base64."""
    calls: dict[str, dict[str, Any]] = {
        "PutItem": {"TableName": "abc", "Item": item, "ExpressionAttributeValues": values},
        "Query": {"TableName": "abc", "ExclusiveStartKey": item, "Limit": 3, "ConsistentRead": True},
        "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": "abc", "Item": item}}]},
        "BatchWriteItem": {"RequestItems": {"abc": [{"PutRequest": {"Item": item}}]}},
    }
    for operation, parameters in calls.items():
        theirs = create_serializer("json", include_validation=False)
        request = theirs.serialize_to_request(parameters, MODEL.operation_model(operation))
        assert orjson.loads(request_body(parameters)) == json.loads(request["body"])


def test_a_lone_surrogate_is_sent_as_the_sdk_sends_it() -> None:
    """The engine decides what becomes of it; no fault of ours."""
    item = {"S": "\ud800"}
    assert json.loads(request_body(item)) == item


def test_a_value_that_no_attribute_can_hold_is_refused() -> None:
    """A mistake of ours, told as one."""
    with pytest.raises(TypeError, match="an attribute cannot hold object"):
        request_body({"S": object()})


@given(
    some.sampled_from(["http://127.0.0.1:8000/", "https://dynamodb.eu-west-1.amazonaws.com/", "http://engine/"]),
    some.binary(max_size=200),
    some.one_of(some.none(), some.text(some.characters(codec="ascii", categories=["L", "N"]), min_size=1)),
    some.text(some.characters(codec="ascii", categories=["L", "N"]), min_size=1),
)
def test_signatures_are_the_sdks(url: str, body: bytes, token: str | None, secret: str) -> None:
    """With and without a session's token, whatever the port."""
    way = Endpoint(URL(url), "DynamoDB_20120810.", "application/x-amz-json-1.0", "agent", "eu-west-1", "dynamodb", "v4")
    keys = ReadOnlyCredentials("AKID", secret, token)
    request = AWSRequest(
        "POST", url, {"Content-Type": way.content_type, "X-Amz-Target": "DynamoDB_20120810.Query"}, data=body
    )
    SigV4Auth(keys, "dynamodb", "eu-west-1").add_auth(request)
    signer = Signer(way)
    for _ in range(2):  # the second time with the day's key at hand
        mine = signer.authorization("DynamoDB_20120810.Query", body, keys, request.headers["X-Amz-Date"])
        assert mine == request.headers["Authorization"]
    whole = signer.request("Query", body, keys)
    assert whole.endswith(b"\r\n\r\n" + body)
    assert (b"x-amz-security-token" in whole) == (token is not None)


@given(ITEM)
def test_errors_are_parsed_by_the_sdk_s_own_parser(item: Any) -> None:
    """With the items that made conditions fail, binary ones too."""
    prefix = "com.amazonaws.dynamodb.v20120810#"
    failed = {"__type": f"{prefix}ConditionalCheckFailedException", "message": "no", "Item": item}
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": item, "Message": "no"}]
    cancelled = {"__type": f"{prefix}TransactionCanceledException", "Message": "x", "CancellationReasons": reasons}
    one: Any = parse_error(MODEL, "PutItem", Response(400, [], request_body(failed))).response
    assert (one["Error"]["Code"], one["Item"]) == ("ConditionalCheckFailedException", item)
    many = parse_error(MODEL, "TransactWriteItems", Response(400, [], request_body(cancelled))).response
    assert many["CancellationReasons"][1]["Item"] == item


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[]", b'{"message": null}'])
def test_an_unreadable_error_is_known_by_its_status(body: bytes) -> None:
    """As when something between here and the engine answers."""
    error = parse_error(MODEL, "Query", Response(502, [(b"Content-Type", b"text/html")], body))
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 502
