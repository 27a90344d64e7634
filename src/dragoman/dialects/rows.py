"""Where five documented systems differ from the protocol, row by row: what we do about it, and what proves that.

The first number of an id is the part of the survey, the second the system (1: iac-code, 2: the June draft of version 2,
3: elephant.ai, 4: Agentao, 5: simse), the third the row. `kind` is T for tolerance that cannot change a meaning, A for
a second name of a method, P for what only a chosen dialect does, and - where nothing has to be accepted. `where` is
`always`, or the dialect in which it holds. `proofs` are tests: a row without one fails the suite. The page
`docs/compatibility.md` is made from this table by `python -m tools.compatibility`.
"""

from typing import Final, Literal, NamedTuple

Kind = Literal["T", "A", "P", "-"]


class Row(NamedTuple):
    """One difference."""

    id: str
    kind: Kind
    where: str
    differs: str
    ours: str
    proofs: tuple[str, ...]

    @property
    def system(self) -> str:
        """Whose document it is from."""
        return SYSTEMS[int(self.id.split(".")[1]) - 1]


SYSTEMS: Final = ("iac-code", "v2-june", "elephant", "agentao", "simse")
_D: Final = "tests/dialects/"
_T: Final = f"{_D}test_tolerance.py::test_"
_IAC: Final = f"{_D}test_iac_code.py::test_"
_JUNE: Final = f"{_D}test_v2_june.py::test_"
_ELEPHANT: Final = f"{_D}test_elephant.py::test_"
_GATE: Final = "tests/gateway/test_elephant.py::test_"
_AGENTAO: Final = f"{_D}test_agentao.py::test_"
_SIMSE: Final = f"{_D}test_simse.py::test_"
_CLI: Final = "tests/cli/test_dialects.py::test_"
_ASKED: Final = "tests/agent/test_permission.py::test_"
_THEIRS: Final = "tests/interop/test_agentao_client.py::test_"
_PATIENCE: Final = "tests/client/test_timeouts.py::test_"
_V1: Final = f"{_D}test_v1_agent.py::test_"
_LINK: Final = "tests/test_link.py::test_"

ROWS: Final = (
    # -- 1: iac-code -------------------------------------------------------------------------------------------------
    Row(
        *("8.1.1", "-", "always", "its life cycle is drawn with the names of functions"),
        "those names are on no wire; they are unknown methods",
        (f"{_D}test_gates.py::test_a_method_that_nobody_knows_is_not_found",),
    ),
    Row(
        *("8.1.2", "T", "always", "`mcpServers` may be left out, or is an object"),
        "left out: no servers; an object whose values look like servers: a map by name; any other object: no servers",
        (f"{_T}8_5_1_mcp_servers_may_be_missing_or_odd", f"{_T}8_1_2_an_object_of_servers_is_a_map_by_name"),
    ),
    Row(
        *("8.1.3", "T", "always", "a session is loaded and forked without `mcpServers`"),
        "taken as a list without servers",
        (f"{_T}8_1_3_every_opening_may_go_without_servers",),
    ),
    Row(
        *("8.1.4", "P", "iac-code", "an opened session has `models`"),
        "agent: `models` beside `modes`; client: shown as the model option everywhere, set as such in the dialect",
        (
            f"{_IAC}8_1_4_sessions_have_modes_and_models",
            f"{_T}8_1_4_models_are_shown_as_the_option_they_have_become",
            f"{_IAC}8_1_4_a_client_sets_a_model_as_such",
        ),
    ),
    Row(
        *("8.1.5", "P", "iac-code", "fork and resume exist and are not advertised"),
        "agent: only list and close are advertised, all four work; client: asks for them all the same",
        (
            f"{_IAC}8_1_5_initialize_claims_what_the_reference_claims",
            f"{_IAC}8_1_5_fork_and_resume_work_although_nobody_claims_them",
            f"{_IAC}8_1_5_a_client_asks_for_what_nobody_claims",
        ),
    ),
    Row(
        *("8.1.6", "-", "always", "a load need not tell the story again"),
        "ours tells it; a client takes a load without one",
        (
            f"{_IAC}8_1_5_fork_and_resume_work_although_nobody_claims_them",
            f"{_T}8_1_6_a_load_that_tells_no_story_is_a_load",
        ),
    ),
    Row(
        *("8.1.7", "-", "always", "a resume reads the history if it has to"),
        "it does, and tells nothing of it",
        (f"{_IAC}8_1_5_fork_and_resume_work_although_nobody_claims_them",),
    ),
    Row(
        *("8.1.8", "T", "always", "content blocks are called by their classes"),
        "read as the blocks they are",
        (f"{_T}8_1_8_a_block_may_have_the_name_of_its_class",),
    ),
    Row(
        *("8.1.9", "T", "always", "images and audio are accepted although no capability says so"),
        "a model that does not take them is told what was there",
        ("tests/coder/models/test_providers.py::test_a_model_that_does_not_look_gets_markers_in_one_text",),
    ),
    Row(
        *("8.1.10", "P", "iac-code", "the end of a prompt counts tokens"),
        "agent: three numbers, zeros where the model tells none; client: finds them there and in `_meta`",
        (
            f"{_IAC}8_1_10_the_end_of_a_turn_has_its_tokens",
            f"{_IAC}8_1_10_the_tokens_are_zeros_where_no_model_told_any",
            f"{_IAC}8_1_10_a_client_finds_the_tokens_in_both_places",
        ),
    ),
    Row(
        *("8.1.11", "T", "always", "a cancel is a request, and running tools go on"),
        "answered if it has an id; ours kills the tools, which is stricter",
        (f"{_T}8_1_11_a_cancel_with_an_id_is_a_cancel", f"{_V1}session_cancel_may_be_sent_as_a_request"),
    ),
    Row(
        *("8.1.12", "A", "always", "`sessions/list` of one folder, without pages"),
        "the same as `session/list`; in the dialect a folder is required and the list is whole; its client asks by the "
        "other name where the first is not known, and takes sessions that do not name the folder they were asked for",
        (
            f"{_T}8_1_12_sessions_list_is_session_list",
            f"{_IAC}8_1_12_a_list_is_of_one_folder_and_whole",
            f"{_IAC}8_1_12_a_client_falls_back_to_the_other_name_of_the_list",
            f"{_LINK}8_1_12_what_a_peer_does_not_know_is_asked_under_its_other_name",
            f"{_IAC}8_1_12_a_session_in_a_list_of_one_folder_need_not_name_it",
        ),
    ),
    Row(
        *("8.1.13", "A", "always", "`config/set` with any value"),
        "the same as `session/set_config_option`; a text or a switch, and nothing else; its client asks by this name "
        "where the protocol's is not known, and takes any answer",
        (
            f"{_T}8_1_13_config_set_is_set_config_option",
            f"{_T}8_1_13_any_other_value_is_refused",
            f"{_IAC}8_1_13_config_set_sets_an_option",
            f"{_IAC}8_1_13_a_client_falls_back_to_the_other_name_of_an_option",
            f"{_IAC}8_1_13_whatever_config_set_is_answered_with_the_option_is_set",
        ),
    ),
    Row(
        *("8.1.14", "T", "always", "an update is named by `type` and has bare `text`"),
        "client: read; agent: said in both spellings in the dialect",
        (
            f"{_T}8_1_14_an_update_may_be_named_by_type_and_carry_bare_text",
            f"{_T}8_1_14_an_unknown_name_stays_unknown",
            f"{_IAC}8_1_14_text_is_said_in_both_spellings",
        ),
    ),
    Row(
        *("8.1.15", "T", "always", "updates are called by their classes"),
        "read as the updates they are",
        (f"{_T}8_1_15_an_update_may_have_the_name_of_its_class",),
    ),
    Row(
        *("8.1.16", "P", "iac-code", "errors and compaction are told as messages"),
        "told as messages in the dialect; the prompt is answered with the error as well",
        (f"{_IAC}8_1_16_errors_and_compaction_are_messages",),
    ),
    Row(
        *("8.1.17", "T", "always", "a call begins in progress; `raw_input` and `raw_output`"),
        "read; in the dialect begun in progress and said under both names, the end with everything that was shown",
        (
            f"{_D}test_v1_client.py::test_raw_fields_may_be_spelled_as_python_does",
            f"{_IAC}8_1_17_a_call_begins_in_progress_and_its_input_follows",
            f"{_IAC}8_1_17_a_call_that_ends_shows_everything_it_has_shown",
            f"{_IAC}8_1_17_a_failed_call_has_an_error_also_where_it_shows_nothing",
        ),
    ),
    Row(
        *("8.1.18", "A", "always", "`request_permission`, whose call has no id and an `input`"),
        "client: answered, with an id of ours; agent: `input` beside `rawInput` in the dialect",
        (
            f"{_T}8_1_18_a_permission_may_lack_the_id_of_its_call",
            f"{_IAC}8_1_18_a_question_has_its_input_under_both_names",
        ),
    ),
    Row(
        *("8.1.19", "T", "always", "a permission is answered with a plain word"),
        "`allowed` beside an offered id is that option, every other word is a no; our client calls a question off "
        "where a choice would be heard as a yes, and in the dialect answers `request_permission` in plain words",
        (
            f"{_T}8_1_19_a_flat_answer_is_a_yes_only_to_what_was_offered",
            f"{_IAC}8_1_19_a_flat_answer_is_taken_and_a_no_is_a_no",
            f"{_IAC}8_1_19_a_client_says_no_so_that_nobody_hears_a_yes",
            f"{_IAC}8_1_19_whoever_asks_in_plain_words_is_answered_in_them_and_hears_a_yes_only_for_one",
            f"{_CLI}8_1_19_iac_code_takes_flat_answers",
        ),
    ),
    Row(
        *("8.1.20", "P", "iac-code", "a session that is not there is a bad parameter"),
        "-32602 in the dialect; a client takes any code",
        (f"{_IAC}8_1_20_an_unknown_session_is_a_bad_parameter", f"{_T}8_1_20_any_code_is_a_failure"),
    ),
    Row(
        *("8.1.21", "-", "iac-code", "its table of errors lacks some codes"),
        "in the dialect only codes of the table are used",
        (f"{_IAC}8_1_20_an_unknown_session_is_a_bad_parameter",),
    ),
    Row(
        *("8.1.22", "-", "always", "always means this tool in this session"),
        "ours means this tool with what it matched, which is narrower",
        ("tests/coder/test_permissions.py::test_an_always_for_one_command_covers_no_other",),
    ),
    # -- 2: the June draft of version 2 ------------------------------------------------------------------------------
    Row(
        *("8.2.1", "P", "v2-june", "version 2 with `clientInfo` and `agentInfo`, both optional"),
        "version 2 without `info` is this draft, seen at `initialize`",
        (
            f"{_JUNE}8_2_1_version_2_without_info_is_the_june_draft",
            f"{_JUNE}8_2_1_everybody_else_is_not",
            f"{_JUNE}an_agent_of_the_june_draft_is_known_by_its_answer",
        ),
    ),
    Row(
        *("8.2.2", "A", "always", "`authenticate` and `logout`"),
        "both versions know both names",
        (f"{_T}8_2_2_logging_in_and_out_has_two_names", f"{_JUNE}8_2_2_logging_in_is_called_authenticate"),
    ),
    Row(
        *("8.2.3", "T", "always", "a login method has an `id`"),
        "either name is read; the draft's is said in the draft",
        (f"{_T}8_2_3_a_login_method_may_have_either_id", f"{_JUNE}8_2_5_everything_has_a_marker"),
    ),
    Row(
        *("8.2.4", "A", "always", "`session/load`"),
        "a resume from the start",
        (f"{_T}8_2_4_a_load_is_a_resume_from_the_start", f"{_JUNE}8_2_4_a_session_is_loaded_with_its_story"),
    ),
    Row(
        *("8.2.5", "T", "always", "markers for list, resume, close and load"),
        "not needed, and said in the draft",
        (f"{_T}8_2_5_markers_of_the_older_draft_are_ignored", f"{_JUNE}8_2_5_everything_has_a_marker"),
    ),
    Row(
        *("8.2.6", "P", "v2-june", "a prompt is answered when its turn ends"),
        "turns as in version 1; any reason ends one",
        (
            f"{_JUNE}8_2_6_a_prompt_is_answered_at_the_end_of_its_turn",
            f"{_JUNE}8_2_6_a_turn_ends_with_any_reason_and_its_meta",
            f"{_JUNE}the_answer_to_a_prompt_ends_its_turn",
        ),
    ),
    Row(
        *("8.2.7", "T", "always", "the lists of an MCP server are required"),
        "they may be left out everywhere; in the draft a client says them, and the type of its server",
        (
            f"{_T}8_2_7_the_lists_of_a_server_may_be_left_out",
            f"{_JUNE}8_2_7_a_client_says_the_type_of_its_servers",
        ),
    ),
    Row(
        *("8.2.8", "T", "always", "options have `id`, groups `group`, values no type"),
        "read; said so in the draft, which has no switches",
        (
            f"{_T}8_2_8_options_may_have_an_id_and_groups_a_group",
            f"{_JUNE}8_2_8_an_option_is_set_by_its_id_alone",
            f"{_JUNE}8_2_8_options_have_an_id_and_there_are_no_switches",
        ),
    ),
    Row(
        *("8.2.9", "T", "always", "three categories of options"),
        "any category is kept",
        (f"{_T}8_2_9_a_category_that_nobody_knows_is_kept",),
    ),
    Row(
        *("8.2.10", "T", "always", "a plan has an `id`"),
        "read; said so in the draft",
        (f"{_T}8_2_10_a_plan_may_have_an_id", f"{_JUNE}8_2_10_a_plan_has_an_id"),
    ),
    Row(
        *("8.2.11", "T", "always", "the input of a command has no type"),
        "read; said so in the draft",
        (f"{_T}8_2_11_the_input_of_a_command_may_have_no_type", f"{_JUNE}8_2_11_a_command_has_an_untyped_hint"),
    ),
    Row(
        *("8.2.12", "P", "v2-june", "a permission is about a `toolCall`"),
        "asked so in the draft, read everywhere; an option of an unknown kind is shown, and no yes of ours",
        (
            f"{_JUNE}8_2_12_a_permission_is_about_a_call",
            f"{_JUNE}8_2_12_options_of_an_unknown_kind_are_heard_at_their_place",
            f"{_JUNE}8_2_12_an_option_of_an_unknown_kind_is_never_a_yes_of_ours",
            f"{_T}8_2_12_a_permission_may_be_about_a_call_and_nothing_else",
        ),
    ),
    Row(
        *("8.2.13", "-", "v2-june", "the outcomes of a permission are two"),
        "any other is a no, as everywhere",
        (f"{_D}test_permissions.py::test_an_unknown_outcome_is_unknown_and_never_said_as_a_choice",),
    ),
    Row(
        *("8.2.14", "P", "v2-june", "a diff is an old and a new text"),
        "said so in the draft, read everywhere",
        (f"{_JUNE}8_2_14_a_diff_is_two_texts", f"{_T}8_2_14_a_diff_may_be_two_texts"),
    ),
    Row(
        *("8.2.15", "P", "v2-june", "no terminals"),
        "what one shows is text",
        (f"{_JUNE}8_2_15_a_terminal_is_text",),
    ),
    Row(
        *("8.2.16", "P", "v2-june", "no forms, no states, no notices"),
        "neither sent nor read in the draft; an unknown update is passed on",
        (
            f"{_JUNE}8_2_16_an_update_that_nobody_knows_is_passed_on_whole",
            f"{_JUNE}8_2_16_an_unknown_update_under_a_known_name_is_not_said",
            f"{_JUNE}8_2_16_what_the_draft_does_not_have_is_not_said",
            f"{_JUNE}8_2_16_what_the_draft_does_not_have_is_not_heard",
        ),
    ),
    Row(
        *("8.2.17", "T", "always", "no status for what was cancelled"),
        "statuses are open: any is kept",
        (
            f"{_T}8_2_17_a_word_that_nobody_knows_is_kept",
            f"{_JUNE}8_2_17_kinds_statuses_and_priorities_are_said_as_they_are",
            f"{_JUNE}8_2_17_a_plan_is_heard_in_the_words_it_was_told_in",
        ),
    ),
    Row(
        *("8.2.18", "T", "always", "costs without `_meta`, links without icons"),
        "what is not there is not missed",
        (f"{_D}test_round_trips.py::test_updates_survive_in_their_own_version",),
    ),
    Row(
        *("8.2.19", "-", "always", "other names of types"),
        "they are on no wire",
        (f"{_JUNE}what_the_agent_says_the_client_hears",),
    ),
    # -- 3: elephant.ai ----------------------------------------------------------------------------------------------
    Row(
        *("8.3.1", "T", "always", "lines, or `Content-Length`; answered as the first message came"),
        "seen in the first bytes, and kept",
        (
            f"{_CLI}8_3_1_elephant_is_answered_in_its_own_framing_and_asks",
            "tests/wire/test_framing.py::test_the_first_bytes_that_are_not_blank_decide_the_style",
        ),
    ),
    Row(
        *("8.3.2", "A", "elephant", "two HTTP paths with a client's own id"),
        "served by the gateway where it is told to",
        (
            f"{_GATE}8_3_2_everything_comes_on_the_stream_and_a_post_has_a_status_and_nothing_else",
            f"{_GATE}8_3_2_statuses",
            f"{_GATE}8_3_2_a_body_over_4_mib_is_413_said_or_not_and_one_of_4_mib_is_read",
            f"{_GATE}a_second_stream_of_one_client_ends_the_first_and_goes_on_in_its_place",
            "tests/gateway/test_elephant_guard.py::test_without_a_token_it_works_here_and_only_on_these_paths",
            "tests/gateway/test_elephant_guard.py::test_elsewhere_a_token_is_needed",
        ),
    ),
    Row(
        *("8.3.3", "A", "elephant", "one stream for all sessions of a client"),
        "the paths of the row before have no other",
        (f"{_GATE}8_3_3_all_sessions_of_a_client_are_on_its_one_stream",),
    ),
    Row(
        *("8.3.4", "-", "elephant", "the version is always 1"),
        "1, whatever is asked for",
        (f"{_ELEPHANT}8_3_4_the_version_is_always_1",),
    ),
    Row(
        *("8.3.5", "T", "elephant", "a login is taken although none is offered"),
        "taken, and means nothing",
        (f"{_ELEPHANT}8_3_5_a_login_is_taken_and_means_nothing",),
    ),
    Row(
        *("8.3.6", "T", "always", "a server that is started must say so"),
        "agent: with or without; client: says it in the dialect",
        (
            f"{_T}8_3_6_a_stdio_server_may_have_a_type",
            f"{_ELEPHANT}8_3_6_a_client_says_the_type_of_its_servers",
        ),
    ),
    Row(
        *("8.3.7", "-", "elephant", "servers that are reached are refused"),
        "a bad parameter",
        (f"{_ELEPHANT}8_3_7_only_servers_that_are_started_are_taken",),
    ),
    Row(
        *("8.3.8", "T", "always", "links without names, media without types"),
        "the end of the address; the type that the bytes begin like",
        (f"{_T}8_3_8_a_link_may_lack_its_name_and_media_their_type",),
    ),
    Row(
        *("8.3.9", "-", "elephant", "embedded text becomes an attachment"),
        "it stays the resource it is",
        (f"{_ELEPHANT}8_3_9_embedded_text_stays_an_attachment",),
    ),
    Row(
        *("8.3.10", "-", "always", "a second prompt is an invalid request"),
        "-32600 in the dialect and in version 1",
        (
            f"{_ELEPHANT}8_3_10_a_second_prompt_is_refused_with_a_text",
            f"{_V1}a_second_prompt_is_refused_while_the_first_one_runs",
        ),
    ),
    Row(
        *("8.3.11", "P", "elephant", "four modes: full, read-only, safe, sandbox"),
        "its names for ours; full offers every tool and asks",
        (
            f"{_ELEPHANT}8_3_11_the_modes_are_the_document_s",
            f"{_ELEPHANT}8_3_11_a_mode_of_ours_is_told_as_the_nearest",
            f"{_CLI}8_3_1_elephant_is_answered_in_its_own_framing_and_asks",
        ),
    ),
    Row(
        *("8.3.12", "-", "elephant", "a load need not tell the story"),
        "ours does",
        (f"{_ELEPHANT}8_3_16_a_turn_repeats_the_prompt_and_has_no_thoughts",),
    ),
    Row(
        *("8.3.13", "-", "elephant", "no session capabilities"),
        "an empty object",
        (f"{_ELEPHANT}8_3_13_initialize_claims_what_the_document_claims",),
    ),
    Row(
        *("8.3.14", "P", "elephant", "two permission options"),
        "those two; any other answer is a no",
        (
            f"{_ELEPHANT}8_3_14_two_options_are_offered",
            f"{_ELEPHANT}8_3_14_an_answer_is_one_of_them_or_a_no",
        ),
    ),
    Row(
        *("8.3.15", "T", "always", "a call is in progress from the beginning"),
        "read; said so in the dialect",
        (
            f"{_T}8_3_15_a_call_may_begin_in_progress",
            f"{_ELEPHANT}8_3_15_a_call_is_in_progress_from_its_first_word",
            f"{_ELEPHANT}8_3_15_a_call_that_shows_something_at_once_begins_in_progress_all_the_same",
        ),
    ),
    Row(
        *("8.3.16", "P", "elephant", "no thoughts and no commands; the prompt is repeated"),
        "not sent, but kept; repeated",
        (
            f"{_ELEPHANT}8_3_16_a_turn_repeats_the_prompt_and_has_no_thoughts",
            f"{_ELEPHANT}8_3_16_other_updates_are_not_sent",
        ),
    ),
    Row(
        *("8.3.17", "P", "elephant", "the data of an error is a text"),
        "a text in the dialect",
        (f"{_ELEPHANT}8_3_17_error_data_is_a_text",),
    ),
    Row(
        *("8.3.18", "-", "elephant", "`acp serve` on its command line"),
        "the same as our own `serve --elephant`",
        ("tests/gateway/test_elephant_command.py::test_8_3_18_its_command_serves_and_a_refusal_stays_one",),
    ),
    # -- 4: Agentao --------------------------------------------------------------------------------------------------
    Row(
        *("8.4.1", "P", "agentao", "`clientCapabilities` must be there"),
        "required in the dialect, none elsewhere",
        (f"{_AGENTAO}8_4_1_initialize_is_strict",),
    ),
    Row(
        *("8.4.2", "P", "agentao", "files are offered as `readFile` and `writeFile`"),
        "read in the dialect only: an unknown name is no capability",
        (f"{_AGENTAO}8_4_2_files_may_be_offered_under_other_names",),
    ),
    Row(
        *("8.4.3", "P", "agentao", "any version is answered; a bool is none"),
        "1, whatever is asked for",
        (f"{_AGENTAO}8_4_3_any_version_is_answered_with_1", f"{_AGENTAO}8_4_1_initialize_is_strict"),
    ),
    Row(
        *("8.4.4", "T", "always", "extensions are listed in `_meta` of the answer"),
        "said so in the dialect; a client looks in both places",
        (
            f"{_AGENTAO}8_4_4_capabilities_and_extensions_are_the_appendix_s",
            f"{_T}8_4_4_extensions_are_found_in_both_places",
        ),
    ),
    Row(
        *("8.4.5", "-", "agentao", "prompts are text"),
        "nothing more is advertised; links are taken",
        (f"{_AGENTAO}8_4_4_capabilities_and_extensions_are_the_appendix_s",),
    ),
    Row(
        *("8.4.6", "P", "agentao", "-32002 is what comes before `initialize`"),
        "-32002 in the dialect, an invalid request elsewhere",
        (
            f"{_AGENTAO}8_4_6_before_initialize_the_code_is_its_own",
            f"{_AGENTAO}8_4_6_everywhere_else_it_is_an_invalid_request",
        ),
    ),
    Row(
        *("8.4.7", "P", "agentao", "`--resume`: the first new session is a stored one"),
        "its story follows the answer; a miss is a new session",
        (
            f"{_AGENTAO}8_4_7_the_first_new_session_goes_on_with_a_stored_one",
            f"{_CLI}8_4_7_agentao_resumes_the_newest_session_of_its_folder",
        ),
    ),
    Row(
        *("8.4.8", "T", "always", "a stop reason may be any word"),
        "a client takes any",
        (f"{_T}8_4_8_any_stop_reason_ends_a_turn",),
    ),
    Row(
        *("8.4.9", "P", "agentao", "errors are thoughts"),
        "told as thoughts in the dialect; the prompt is answered with the error as well",
        (f"{_AGENTAO}8_4_9_an_error_is_a_thought",),
    ),
    Row(
        *("8.4.10", "P", "agentao", "content of a call is appended"),
        "agent: content is sent once, at the end, all of it; client: added, unless it repeats what was there",
        (
            f"{_AGENTAO}8_4_10_a_call_that_ends_shows_everything_it_has_shown",
            f"{_AGENTAO}a_call_begins_pending_and_shows_its_content_once",
            f"{_AGENTAO}8_4_10_content_is_added_unless_it_repeats_what_was_there",
        ),
    ),
    Row(
        *("8.4.11", "-", "agentao", "a permission is called a notification"),
        "it is a request, since it is answered",
        (f"{_AGENTAO}8_4_12_three_options_are_offered",),
    ),
    Row(
        *("8.4.12", "P", "agentao", "the options `allow`, `allow_always`, `reject`"),
        "those three; any other answer is a no",
        (
            f"{_AGENTAO}8_4_12_three_options_are_offered",
            f"{_AGENTAO}8_4_12_an_answer_is_one_of_them_or_a_no",
            f"{_THEIRS}its_user_says_yes_and_no",
        ),
    ),
    Row(
        *("8.4.13", "-", "always", "a cancel ends open questions"),
        "agent and client both do that",
        (
            f"{_ASKED}c6_a_cancel_while_the_user_is_asked_withdraws_the_question_and_ends_the_turn",
            "tests/client/test_questions.py::test_a_cancelled_turn_answers_its_open_questions_as_cancelled",
        ),
    ),
    Row(
        *("8.4.14", "T", "always", "a cancel is a request"),
        "answered with an empty object; our client sends the notification",
        (
            f"{_AGENTAO}8_4_14_a_cancel_is_a_request_and_ends_a_question",
            f"{_V1}session_cancel_may_be_sent_as_a_request",
            f"{_THEIRS}a_turn_is_cancelled_in_both_ways_and_another_process_loads_the_session",
        ),
    ),
    Row(
        *("8.4.15", "P", "agentao", "a load must name the same folder and servers"),
        "a bad parameter if not, and so are servers that are no list or have no name; elsewhere servers may change",
        (
            f"{_AGENTAO}8_4_15_servers_that_are_no_list_or_have_no_name_are_refused",
            f"{_AGENTAO}8_4_15_a_session_is_loaded_with_the_servers_it_was_begun_with",
            f"{_AGENTAO}everywhere_else_the_servers_may_change",
        ),
    ),
    Row(
        *("8.4.16", "P", "agentao", "only the model is an option, and any model may be named"),
        "split at the first slash; a provider that is not that of the environment cannot be resolved",
        (
            f"{_AGENTAO}8_4_16_a_model_is_split_at_the_first_slash",
            f"{_AGENTAO}8_4_16_a_provider_that_cannot_be_resolved_changes_nothing",
            f"{_CLI}8_4_16_agentao_knows_the_provider_of_its_environment",
        ),
    ),
    Row(
        *("8.4.17", "P", "agentao", "any other field is refused, `_meta` too"),
        "refused in the dialect; elsewhere `_meta` is taken",
        (
            f"{_AGENTAO}8_4_17_an_option_takes_three_fields_and_is_the_model",
            f"{_T}8_4_17_meta_is_taken_everywhere_else",
        ),
    ),
    Row(
        *("8.4.18", "T", "always", "an option may lack its value, a choice its name"),
        "the first choice; its value",
        (
            f"{_T}8_4_18_an_option_may_lack_its_value_and_its_names",
            f"{_AGENTAO}8_4_18_without_a_catalogue_there_are_no_options",
        ),
    ),
    Row(
        *("8.4.19", "A", "always", "`_agentao.cn/set_model`"),
        "a bare name is one of the provider in use; everywhere from the listed ones, in the dialect any",
        (
            f"{_T}8_4_19_a_model_may_be_set_by_its_bare_name_everywhere",
            f"{_AGENTAO}8_4_19_a_model_may_be_set_by_its_bare_name",
        ),
    ),
    Row(
        *("8.4.20", "P", "agentao", "any mode is kept and echoed, four have a meaning"),
        "so they are; a preset needs a session with modes; elsewhere an unknown mode is refused",
        (
            f"{_AGENTAO}8_4_20_a_preset_is_applied_and_any_other_mode_is_kept_and_echoed",
            f"{_AGENTAO}8_4_20_a_preset_needs_a_session_with_modes",
            f"{_AGENTAO}8_4_20_everywhere_else_an_unknown_mode_is_refused",
            f"{_T}8_4_20_what_stands_beside_an_answer_is_no_harm",
        ),
    ),
    Row(
        *("8.4.21", "A", "always", "`_agentao.cn/ask_user`"),
        "agent: asks so in the dialect; client: answers in every known form",
        (
            f"{_CLI}8_4_21_agentao_asks_the_user_by_its_own_method",
            f"{_AGENTAO}8_4_21_the_user_can_always_be_asked",
            "tests/client/test_ask_user.py::test_a_person_is_asked",
            f"{_THEIRS}its_user_answers_a_question",
        ),
    ),
    Row(
        *("8.4.22", "-", "always", "the folder of a session must be one"),
        "a bad parameter if not",
        (f"{_AGENTAO}8_4_22_a_cwd_that_is_no_folder_is_refused",),
    ),
    Row(
        *("8.4.23", "-", "always", "each session has permissions of its own"),
        "a mode, and the answers that were given, hold for one session",
        (f"{_AGENTAO}8_4_20_a_preset_is_applied_and_any_other_mode_is_kept_and_echoed",),
    ),
    # -- 5: simse ----------------------------------------------------------------------------------------------------
    Row(
        *("8.5.1", "T", "always", "`mcpServers` may be left out; a folder is any path"),
        "left out: no servers; a relative folder is refused",
        (f"{_T}8_5_1_mcp_servers_may_be_missing_or_odd", f"{_T}8_5_1_a_relative_folder_is_refused"),
    ),
    Row(
        *("8.5.2", "T", "always", "a prompt is a text"),
        "agent: read everywhere; client: sent so in the dialect",
        (f"{_T}8_5_2_a_prompt_may_be_a_string", f"{_SIMSE}8_5_2_a_client_sends_its_prompt_as_a_text"),
    ),
    Row(
        *("8.5.3", "P", "simse", "a prompt has no answer but its updates"),
        "agent: answered; client: a turn that is silent for too long is over",
        (
            f"{_SIMSE}8_5_4_an_update_stands_beside_its_session_and_where_it_belongs",
            f"{_PATIENCE}a_turn_that_goes_on_is_not_disturbed_and_one_that_does_not_is_cancelled",
        ),
    ),
    Row(
        *("8.5.4", "T", "always", "an update stands beside its session"),
        "client: read; agent: said both ways in the dialect",
        (
            f"{_T}8_5_4_an_update_may_stand_beside_its_session",
            f"{_SIMSE}8_5_4_an_update_stands_beside_its_session_and_where_it_belongs",
        ),
    ),
    Row(
        *("8.5.5", "P", "simse", "three updates"),
        "plans and errors are told in words, the rest is not sent",
        (f"{_SIMSE}8_5_5_what_is_no_message_and_no_call_is_words_or_nothing",),
    ),
    Row(
        *("8.5.6", "T", "always", "a `type` beside the name of an update"),
        "it says nothing new",
        (f"{_T}8_5_6_a_type_beside_the_name_says_nothing_new",),
    ),
    Row(
        *("8.5.7", "P", "simse", "a permission is an update"),
        "asked and answered by notifications in the dialect; elsewhere an unknown update, and never a yes",
        (
            f"{_T}8_5_7_a_permission_inside_an_update_is_no_permission",
            f"{_SIMSE}8_5_7_a_permission_is_asked_and_answered_by_notifications",
            f"{_SIMSE}8_5_7_a_client_answers_with_one_of_four_words",
        ),
    ),
    Row(
        *("8.5.8", "P", "simse", "the client runs the tools"),
        "never by default: a call that arrives is shown; in the dialect a client runs what it was given a handler for",
        (
            f"{_T}8_5_8_a_tool_is_never_run_because_a_call_arrived",
            f"{_SIMSE}8_5_8_a_client_runs_only_what_somebody_answers_for",
            f"{_SIMSE}8_5_8_our_own_calls_are_nothing_to_be_run",
        ),
    ),
    Row(
        *("8.5.9", "T", "always", "`toolName`, `input`, `output`, `error`"),
        "read as title, input, output and failure; in the dialect the output of a call is what it has shown, and its "
        "error a text",
        (
            f"{_T}8_5_9_a_call_may_call_its_fields_otherwise",
            f"{_SIMSE}8_5_9_the_output_of_a_call_is_everything_it_has_shown",
            f"{_SIMSE}8_5_9_what_a_call_shows_goes_before_what_it_returned",
            f"{_SIMSE}8_5_9_an_error_is_a_text",
        ),
    ),
    Row(
        *("8.5.10", "T", "always", "no pending and no failed calls"),
        "both are read as they come",
        (f"{_T}8_5_9_a_call_may_call_its_fields_otherwise",),
    ),
    Row(
        *("8.5.11", "-", "always", "every request has a minute"),
        "a turn is no request: it ends when it is silent for too long",
        (
            f"{_PATIENCE}a_login_and_a_turn_are_no_requests",
            f"{_PATIENCE}a_turn_that_goes_on_is_not_disturbed_and_one_that_does_not_is_cancelled",
        ),
    ),
    Row(
        *("8.5.12", "-", "always", "there is no `initialize`"),
        "required all the same; in the dialect the first request is as good as one",
        (
            "tests/agent/test_rows_c.py::test_c1_before_initialize_everything_is_refused_and_nothing_is_done",
            f"{_SIMSE}8_5_12_nobody_has_to_say_hello",
        ),
    ),
)
