import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabir.proto import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    has_unknown,
    unknown_bytes,
)
from sabir.proto._wire import encode_bytes, encode_number, encode_varint

_GROUP = (
    encode_varint(900 << 3 | 3)
    + encode_number(1, 5)
    + (b"\x13" + encode_bytes(3, b"inner") + b"\x14")
    + encode_varint(900 << 3 | 4)
)
_FIELDS = {
    "varint": encode_number(500, 2**64 - 1),
    "fixed64": encode_varint(501 << 3 | 1) + b"\x01\x02\x03\x04\x05\x06\x07\xff",
    "fixed32": encode_varint(502 << 3 | 5) + b"\x01\x02\x03\xff",
    "bytes": encode_bytes(503, b"abc"),
    "group": _GROUP,
}
_ALL = b"".join(_FIELDS.values())


@pytest.mark.parametrize("kind", [*_FIELDS, "all"])
def test_unknown_fields_move_to_another_message(kind):
    data = _FIELDS.get(kind, _ALL)
    message = ModelProto.FromString(encode_number(1, 8) + data)
    assert unknown_bytes(message) == data
    other = ModelProto(producer_name="x")
    other.MergeFromString(unknown_bytes(message))
    assert other.SerializeToString() == encode_bytes(2, b"x") + data


def test_only_the_messages_own_are_returned():
    model = ModelProto.FromString(encode_bytes(7, _ALL))
    assert not unknown_bytes(model)
    assert unknown_bytes(model.graph) == _ALL
    assert not unknown_bytes(ModelProto())


def test_an_enum_value_that_nobody_knows_is_unknown():
    attribute = AttributeProto.FromString(encode_number(20, 99))
    assert not attribute.HasField("type")
    assert unknown_bytes(attribute) == encode_number(20, 99)
    assert has_unknown(attribute)


@given(
    st.lists(
        st.tuples(
            st.integers(100, 2**29 - 1).filter(lambda n: not 19000 <= n < 20000),
            st.integers(0, 2**64 - 1) | st.binary(),
        )
    )
)
def test_any_unknown_fields_come_back(fields):
    data = b"".join(encode_bytes(n, v) if isinstance(v, bytes) else encode_number(n, v) for n, v in fields)
    assert unknown_bytes(TensorProto.FromString(data)) == data


@pytest.mark.parametrize("kind", _FIELDS)
def test_unknown_fields_are_found_at_any_level(kind):
    data = _FIELDS[kind]
    for cls, number in (
        (TensorProto, 5),
        (AttributeProto, 5),
        (NodeProto, 1),
        (GraphProto, 7),
        (ModelProto, 0),
    ):
        assert has_unknown(cls.FromString(data)) is True
        data = encode_bytes(number, data)


def test_known_fields_are_not_unknown(rich_model):
    before = rich_model.SerializeToString()
    assert has_unknown(rich_model) is False
    rich_model.functions[0].node[0].MergeFromString(_FIELDS["varint"])
    assert has_unknown(rich_model) is True
    assert rich_model.SerializeToString() != before


@pytest.mark.parametrize("levels", range(15, 33))
def test_unknown_fields_are_found_deeper_than_protobuf_discards_them(levels):
    def nested(innermost):
        for _ in range(levels):
            for number in (6, 5, 1):
                innermost = encode_bytes(number, innermost)
        return GraphProto.FromString(innermost)

    assert has_unknown(nested(_FIELDS["varint"])) is True
    assert has_unknown(nested(b"")) is False


def test_the_message_itself_is_left_as_it_is():
    model = ModelProto.FromString(_ALL)
    assert has_unknown(model)
    assert unknown_bytes(model) == _ALL
