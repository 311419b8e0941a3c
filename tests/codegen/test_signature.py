"""The digest in generated text, and what does and does not change it."""

import time

import pytest

from burnish import __version__
from burnish.codegen.signature import LINES, header_in, signature_of, signed
from tests.harness.attempts import measured

TEXT = signed("\n".join(('"""x -> y', "", *LINES, '"""', "", "x = 1", "")))


def test_a_signed_text_is_genuine():
    read = signature_of(TEXT)
    assert read is not None
    assert read.genuine
    assert read.version == __version__
    assert read.digest in TEXT


def test_signing_again_changes_nothing():
    assert signed(TEXT) == TEXT


@pytest.mark.parametrize(
    ("change", "genuine"),
    [
        (lambda text: text, True),
        (lambda text: text.replace("\n", "\r\n"), True),  # git's autocrlf
        (lambda text: text.replace("x = 1", "x = 2"), False),
        (lambda text: text.replace("x = 1", "x=1"), False),  # a formatter
        (lambda text: text + "\n", False),
        (lambda text: text.replace("x -> y", "What it is for"), False),
        (lambda text: text.replace(__version__, "0.0.1"), False),
        (lambda text: text.replace("\n", "\r"), None),
        (lambda text: text.replace("sha256 of", "sha of"), None),
    ],
)
def test_what_counts_as_a_change(change, genuine):
    read = signature_of(change(TEXT))
    assert (read.genuine if read else None) is genuine


def test_a_text_without_a_place_stays_as_it_is():
    assert signed("x = 1\n") == "x = 1\n"
    assert signature_of("x = 1\n") is None


@pytest.mark.parametrize(
    ("text", "is_header"),
    [
        ("Imported from a (x), sha256 " * 10_000, False),
        ("Imported from " * 20_000 + "sha256", False),
        ("Imported from m (" + "a" * 280_000 + ", sha256 ", False),
        (f"Imported from m (x), sha256 {'0' * 64}; " + "; options: " * 20_000, True),
    ],
)
@measured
def test_a_long_docstring_is_read_in_linear_time(text, is_header):
    start = time.process_time()
    header = header_in(f'"""{text}"""\n')
    assert time.process_time() - start < 2  # backtracking took minutes
    assert (header is not None) == is_header


def test_a_text_nested_too_deep_is_no_python():
    deep = "(" * 5000 + "0" + ")" * 5000
    with pytest.raises(SyntaxError):
        header_in(f'"""Imported from m.onnx (opset 18), sha256"""\n{deep}\n')
