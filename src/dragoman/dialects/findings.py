"""What the programs behind two dialects do that their documents do not say, as seen when we ran them.

Both ways are taken, and the document's way is said. `proofs` are tests, most of them with the program itself; the page
`docs/compatibility.md` is made from this table as well.
"""

from typing import Final, NamedTuple


class VendorFinding(NamedTuple):
    """One difference between a program and its document."""

    id: str
    program: str
    does: str
    ours: str
    proofs: tuple[str, ...]


_DRIVEN: Final = "tests/interop/test_documented_agents.py::test_"
_DRIVES: Final = "tests/interop/test_agentao_client.py::test_"
_IAC: Final = "tests/dialects/test_iac_code.py::test_"
_AGENTAO: Final = "tests/dialects/test_agentao.py::test_"

FINDINGS: Final = (
    # -- iac-code 0.16.0 ---------------------------------------------------------------------------------------------
    VendorFinding(
        *("iac-code-1", "iac-code", "a call is run although its user has chosen an option that refuses it"),
        "a no is said by calling the question off, in the dialect and to every agent of that name; what was chosen is "
        "in `_meta`",
        (
            f"{_DRIVEN}a_call_is_run_after_a_yes_and_after_no_no",
            f"{_DRIVEN}a_no_is_a_no_to_iac_code_without_its_dialect",
            f"{_IAC}8_1_19_a_client_says_no_so_that_nobody_hears_a_yes",
        ),
    ),
    VendorFinding(
        *("iac-code-2", "iac-code", "the tokens of a turn are in `_meta`, in snake case"),
        "read there, unless the answer has `usage`",
        (
            f"{_DRIVEN}iac_code_counts_tokens_forks_and_resumes_without_the_story",
            f"{_IAC}8_1_10_a_client_finds_the_tokens_in_both_places",
        ),
    ),
    VendorFinding(
        *("iac-code-3", "iac-code", "fork and resume are advertised; a fork tells its story"),
        "used as advertised",
        (f"{_DRIVEN}iac_code_counts_tokens_forks_and_resumes_without_the_story",),
    ),
    VendorFinding(
        *("iac-code-4", "iac-code", "a load is answered while its story is still being told"),
        "told as it comes; who prompts at once hears the rest of the story inside that turn",
        (f"{_DRIVEN}another_process_tells_the_story_and_goes_on",),
    ),
    VendorFinding(
        *("iac-code-5", "iac-code", "sessions are listed by `session/list`; updates are named as the protocol has it"),
        "the protocol's names are tried first and always read",
        (
            f"{_DRIVEN}another_process_tells_the_story_and_goes_on",
            f"{_IAC}8_1_12_a_client_falls_back_to_the_other_name_of_the_list",
        ),
    ),
    VendorFinding(
        *("iac-code-6", "iac-code", "it keeps its sessions in files of its own"),
        "they are neither read nor changed: its sessions stay with it",
        (f"{_DRIVEN}the_sessions_of_the_program_stay_with_it",),
    ),
    VendorFinding(
        *("iac-code-7", "iac-code", "after a cancel its next model request has the cancelled call without a result"),
        "nothing: providers that check refuse that request, and a new session is the way out",
        (f"{_DRIVEN}after_a_cancelled_call_iac_code_sends_a_history_that_providers_refuse",),
    ),
    # -- Agentao 0.5.17 ----------------------------------------------------------------------------------------------
    VendorFinding(
        *("agentao-1", "agentao", "each update repeats the whole content of a call, longer than before"),
        "shown once; what does not repeat is added, as the document has it",
        (
            f"{_DRIVEN}agentao_repeats_what_a_command_printed_and_it_is_shown_once",
            f"{_AGENTAO}8_4_10_content_is_added_unless_it_repeats_what_was_there",
        ),
    ),
    VendorFinding(
        *("agentao-2", "agentao", "a new session tells its modes; permissions have the protocol's four options"),
        "modes are an option like any other; an option is chosen by its kind, never by its id",
        (
            f"{_DRIVEN}agentao_has_modes_and_models",
            f"{_DRIVEN}a_call_is_run_after_a_yes_and_after_no_no",
        ),
    ),
    VendorFinding(
        *("agentao-3", "agentao", "a cancel does not end a question that is open"),
        "our client answers its open questions when it cancels",
        (f"{_DRIVEN}a_cancel_while_the_user_is_asked_ends_the_turn_and_runs_nothing",),
    ),
    VendorFinding(
        *("agentao-4", "agentao", "a cancel is seen when the model says its next word"),
        "the turn ends when the program ends it",
        (f"{_DRIVEN}a_turn_is_cancelled_and_the_session_goes_on",),
    ),
    VendorFinding(
        *("agentao-5", "agentao", "its client cancels by a notification"),
        "notification and request are both a cancel, and the request is answered",
        (f"{_DRIVES}a_turn_is_cancelled_in_both_ways_and_another_process_loads_the_session",),
    ),
    VendorFinding(
        *("agentao-6", "agentao", "its client answers `_agentao.cn/ask_user` with `outcome` and `text`"),
        "read as well as `answer`; an error counts as no answer",
        (f"{_DRIVES}its_user_answers_a_question",),
    ),
    VendorFinding(
        *("agentao-7", "agentao", "it keeps its sessions in files of its own, in the folder it works in"),
        "they are neither read nor changed: its sessions stay with it",
        (f"{_DRIVEN}the_sessions_of_the_program_stay_with_it",),
    ),
)
