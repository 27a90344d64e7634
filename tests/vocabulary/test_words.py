"""The vocabulary: values that can be compared, kept and read back, and that no peer can fill from outside."""

import inspect
from types import ModuleType
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from dragoman.dialects.v1.updates import mode_option
from dragoman.vocabulary import asking, content, events, hello, options, requests, services, tools, word
from dragoman.vocabulary.content import Audio, BlobResource, Image, Resource, ResourceLink, Text, TextResource, text_of
from dragoman.vocabulary.word import Extras, Word

MODULES: list[ModuleType] = [asking, content, events, hello, options, requests, services, tools, word]
WORDS = sorted(
    {kind for module in MODULES for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Word)},
    key=lambda kind: kind.__qualname__,
)


@pytest.mark.parametrize("kind", WORDS)
def test_every_word_is_frozen_keeps_what_is_unknown_and_knows_no_other_fields(kind: type[Word]) -> None:
    config = kind.__struct_config__
    assert (config.frozen, config.gc, config.forbid_unknown_fields, config.omit_defaults) == (True, False, True, True)
    assert {"meta", "extras"} <= set(kind.__struct_fields__)
    assert kind.__doc__


@pytest.mark.parametrize("kind", WORDS)
def test_every_name_on_paper_is_camel_case(kind: type[Word]) -> None:
    assert all("_" not in name.removeprefix("_meta") for name in kind.__struct_encode_fields__)


def test_words_are_equal_by_value_and_absent_null_and_value_are_three_things() -> None:
    patches = [events.ToolCallUpdate("c", title=title) for title in (UNSET, None, "t")]
    assert [msgspec.json.encode(patch) for patch in patches] == [
        b'{"sessionUpdate":"tool_call_update","toolCallId":"c"}',
        b'{"sessionUpdate":"tool_call_update","toolCallId":"c","title":null}',
        b'{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"t"}',
    ]
    assert patches[2] == events.ToolCallUpdate("c", title="t")
    assert patches[0] != patches[1]


@pytest.mark.parametrize(
    "event",
    [
        events.AgentMessageChunk(Text("a", meta={"k": 1}), "m"),
        events.UserMessage("m", [Image("YQ==", "image/png"), Resource(BlobResource("YQ==", "u"))]),
        events.ToolCallUpdate("c", title=None, content=[tools.Diff.of("/x", None, "a"), tools.TerminalItem("t")]),
        events.PlanUpdate(options.PlanItems("p", [options.PlanEntry("a")])),
        events.OptionsChanged([options.Select("c", "n", "v", [options.ChoiceGroup("g", "G", [])])]),
        events.Idle(stop_reason="error", error=events.Failure(-32603, "no", {"reason": "server"})),
        events.UnknownEvent("_x", {"a": [1]}),
        events.UnknownState("_x", {"a": None}),
    ],
)
def test_an_event_can_be_kept_and_read_back(event: events.AnyEvent) -> None:
    kept = msgspec.json.encode(event)
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(events.AnyEvent, dec_hook=refuse)
    assert decoder.decode(kept) == event


@pytest.mark.parametrize("field", ["extras", "outer"])
def test_no_peer_can_fill_what_is_kept_beside_the_fields(field: str) -> None:
    kept = b'{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"a"},"%b":{"fields":{}}}'
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(kept % field.encode(), type=events.AnyEvent, dec_hook=refuse)


def refuse(kind: type, value: object) -> object:
    if kind is object:  # any JSON value
        return value
    raise ValueError


def test_unknown_fields_are_compared_by_value() -> None:
    assert Extras({"a": 1}) == Extras({"a": 1})
    assert Extras({"a": 1}) != Extras({"a": 2})
    assert Extras({}) != {}
    assert repr(Extras({"a": 1})) == "Extras({'a': 1})"


def test_text_of_blocks_names_what_is_no_text() -> None:
    blocks: list[content.Content] = [
        Text("a"),
        Resource(TextResource("b", "u")),
        Resource(BlobResource("YQ==", "file:///c")),
        ResourceLink("d", "file:///d"),
        Image("YQ==", "image/png"),
        Audio("YQ==", "audio/wav"),
        content.UnknownContent("_e", {}),
    ]
    shown = "ab[resource: file:///c][d](file:///d)[image: image/png][audio: audio/wav][_e]"
    assert text_of(blocks) == shown


def test_the_mode_is_the_first_select_of_its_category() -> None:
    mode = options.Select("m", "M", "a", [options.Choice("a", "A")], category="mode")
    odd = options.Toggle("t", "T", True, category="mode")
    assert mode_option([odd, mode, options.Select("n", "N", "b", [], category="mode")]) is mode
    assert mode_option([odd, options.Select("n", "N", "b", [])]) is None


def test_choices_are_all_values_with_groups_opened() -> None:
    one, two, three = (options.Choice(value, value) for value in "abc")
    grouped = options.Select("m", "M", "a", [options.ChoiceGroup("g", "G", [one, two]), three])
    assert grouped.choices() == [one, two, three]


@pytest.mark.parametrize(("old", "operation"), [(None, "add"), ("", "modify"), ("a", "modify")])
def test_a_diff_of_two_texts_says_whether_there_was_a_file(old: str | None, operation: str) -> None:
    change = tools.FileChange(operation, "/x", old_text=old, new_text="b")
    assert tools.Diff.of("/x", old, "b") == tools.Diff([change])


def test_the_text_of_a_chunk_is_empty_for_other_content() -> None:
    assert events.AgentMessageChunk(Text("a")).text == "a"
    assert events.AgentMessageChunk(Image("YQ==", "image/png")).text == ""
