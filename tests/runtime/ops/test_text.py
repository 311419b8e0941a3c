from types import SimpleNamespace

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import DeviceError, GradientError, InputError
from tests.harness.operators import case


def words(*values):
    return np.array(values, object)


def as_text(value):
    return lambda *_: np.array(value, object)


WORDS = words("Ada", "né", "", "b c  d")
TOKENS = np.array([[1, 2, 1, 3], [3, 1, 2, 2]])
GRAMS = {"pool": [1, 2, 1, 2, 3, 1], "starts": [0, 2], "indexes": [0, 2, 1, 3]}
HOST = {"dtypes": ("int64",), "grad": False, "gpu": False}
CASES = [
    case(
        ops.string_concat,
        words(["a"], ["é"]),
        words("x", ""),
        expect=as_text([["ax", "a"], ["éx", "é"]]),
        **HOST,
    ),
    case(
        ops.string_concat,
        np.array("a", object),
        np.array("b", object),
        expect=as_text("ab"),
        **HOST,
    ),
    case(
        ops.string_split,
        WORDS,
        expect=lambda x: (
            np.array(
                [["Ada", "", ""], ["né", "", ""], ["", "", ""], ["b", "c", "d"]], object
            ),
            np.array([1, 1, 0, 3]),
        ),
        **HOST,
    ),
    case(
        ops.string_split,
        words("a-b-c", "-"),
        delimiter="-",
        maxsplit=1,
        expect=lambda x: (
            np.array([["a", "b-c"], ["", ""]], object),
            np.array([2, 2]),
        ),
        **HOST,
    ),
    case(
        ops.tokenize,
        words("a-bc d", "-"),
        separators=["-", " "],
        shortest=1,
        mark=True,
        pad="#",
        expect=as_text(
            [["\x02", "a", "bc", "d", "\x03"], ["\x02", "\x03", "#", "#", "#"]]
        ),
        **HOST,
    ),
    case(
        ops.murmur_hash3,
        words("hello", "hello, world", ""),
        expect=lambda x: np.uint32([0x248BFA47, 0x149BBB7F, 0]),
        **HOST,
    ),
    case(
        ops.murmur_hash3,
        words("aaaa", "abc"),
        seed=0x9747B28C,
        signed=True,
        expect=lambda x: np.uint32([0x5A97808A, 0xC84A62DD]).view(np.int32),
        **HOST,
    ),
    case(
        ops.tokenize,
        words("a1 b", ""),
        pattern="[a-z]+",
        expect=as_text([["a", "b"], ["", ""]]),
        **HOST,
    ),
    case(
        ops.tokenize,
        words("ab"),
        separators=[""],
        expect=as_text([["a", "b"]]),
        **HOST,
    ),
    case(
        ops.tokenize,
        words("abc", "a;b,c"),
        separators=["bc", "ab", "(,|;)"],
        expect=as_text([["a", "", ""], ["a", "b", "c"]]),
        **HOST,
    ),
    *(
        case(
            ops.regex_full_match,
            WORDS.reshape(2, 2),
            pattern=pattern,
            expect=lambda x, e=expected: np.array([[True, e], [False, False]]),
            **HOST,
        )
        for pattern, expected in ((r"\w+", False), (r"(?u)\w+", True))
    ),
    case(
        ops.string_normalizer,
        words("The", "cat", "the", "Hat"),
        stopwords=("THE",),
        case_change_action="UPPER",
        expect=as_text(["CAT", "HAT"]),
        **HOST,
    ),
    case(
        ops.string_normalizer,
        words("The", "the").reshape(1, 2),
        stopwords=("The", "the"),
        is_case_sensitive=True,
        expect=as_text([[""]]),
        **HOST,
    ),
    case(
        ops.tf_idf_vectorizer,
        TOKENS,
        max_length=2,
        **GRAMS,
        expect=lambda x: np.array([[2, 1, 1, 0], [1, 1, 2, 1]], np.float32),
        **HOST,
    ),
    case(
        ops.tf_idf_vectorizer,
        TOKENS.astype(str).astype(object),
        min_length=2,
        max_length=2,
        max_skip=1,
        weights=[1, 1, 2, 3],
        mode="TFIDF",
        **{**GRAMS, "pool": list("121231")},
        expect=lambda x: np.array([[0, 2, 0, 0], [0, 4, 0, 3]], np.float32),
        **HOST,
    ),
    case(
        ops.tf_idf_vectorizer,
        TOKENS[0],
        weights=[5, 6, 7, 8],
        mode="IDF",
        **GRAMS,
        expect=lambda x: np.array([5, 0, 6, 0], np.float32),
        **HOST,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize(
    "given",
    [
        ["a", "bc"],
        np.array(["a", "bc"]),
        np.array([b"a", b"bc"]),
        np.array(["a", "bc"], np.dtypes.StringDType()),
        np.array(["a", "bc"], object),
    ],
    ids=["list", "str", "bytes", "StringDType", "object"],
)
def test_every_kind_of_strings_becomes_objects(given):
    tensor = Tensor(given)
    assert tensor.dtype == object
    assert tensor.tolist() == ["a", "bc"]
    assert ops.string_concat(tensor, "!").tolist() == ["a!", "bc!"]


def test_numbers_become_strings_and_back():
    text = Tensor(np.array([1, -2])).to("str")
    assert text.dtype == object
    assert text.tolist() == ["1", "-2"]
    np.testing.assert_array_equal(text.to("float32").numpy(), np.float32([1, -2]))


def test_long_ngrams_of_many_tokens():
    rng = np.random.default_rng(0)
    grams = np.unique(rng.integers(0, 50, (300, 7)), axis=0)
    tokens = np.concatenate([grams[17], grams[3], grams[17]])
    got = ops.tf_idf_vectorizer(
        tokens,
        pool=grams.ravel(),
        starts=[0] * 7,
        indexes=np.arange(len(grams)),
        min_length=7,
        max_length=7,
    )
    assert got[17] == 2
    assert got[3] == 1
    assert got.sum() == 3


def test_text_has_no_gradient():
    x = Tensor(np.ones(3)).require_grad()
    y = ops.tf_idf_vectorizer(x, pool=[1.0], starts=[0], indexes=[0])
    with pytest.raises(GradientError, match="tf_idf_vectorizer: no gradient"):
        y.sum().backward()


def test_a_bad_pattern_is_refused():
    with pytest.raises(InputError, match="regex_full_match: expected a regular"):
        ops.regex_full_match(WORDS, pattern="(")


def test_strings_stay_on_the_host(monkeypatch):
    from burnish import Device

    device = Device("cuda:7")
    monkeypatch.setattr(device, "_library", SimpleNamespace(ndarray=bytes))
    with pytest.raises(DeviceError, match="strings live on the host"):
        device.put(WORDS)


def test_tokens_that_begin_as_one_of_the_pool_are_others():
    tokens = np.array([["greenish", "green", "blue", "gree"]], object)
    for pool in (["green", "blue"], np.array(["green", "blue"])):
        counts = ops.tf_idf_vectorizer(tokens, pool=pool, starts=[0], indexes=[1, 0])
        assert counts.tolist() == [[1.0, 1.0]]
