"""The page of messages says what the product writes."""

from __future__ import annotations

import importlib

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.message import Message, Template
from layoutproof.layouts import axe
from tests.golden_messages import PAGE, asserted, page, templates
from tests.imports import sources

pytestmark = pytest.mark.slow


def test_the_page_is_up_to_date() -> None:
    """After a change of words: `python -m tests.golden_messages`."""
    assert PAGE.read_text("utf-8") == page()


def test_one_id_has_one_template() -> None:
    """Of all templates that stand in the modules of the product."""
    modules = [importlib.import_module(name) for name, text in sources().items() if "= Template(" in text]
    ids = [each.id for module in modules for each in vars(module).values() if isinstance(each, Template)]
    assert len(ids) > 900
    assert sorted(ids) == sorted(set(ids))


def test_what_tests_assert_by_id_is_there() -> None:
    """An id that no template has would never be said: the test that asserts its absence would always pass."""
    planted = {"kernel.word", "kernel.at"}
    assert set(asserted()) - set(templates()) - planted == set()


def test_what_str_gives_of_an_error_is_a_plain_text() -> None:
    """pytest-xdist sends it to another process and takes nothing else; the problem itself keeps its id."""
    with pytest.raises(LayoutError) as raised:
        axe.read("")
    assert type(str(raised.value)) is str
    assert type(str(raised.value.problem)) is str
    assert isinstance(raised.value.problem, Message)
