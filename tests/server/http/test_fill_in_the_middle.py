"""Prompts to fill in the middle: markers, names of files, and texts that only look like them."""

import pytest

from redraft.server import schema
from redraft.server.http.fill_in_the_middle import FORMATS, Gap, Limits, read_prompt

BEFORE, AFTER = "def f(a):\n    return ", "\n\nprint(f(1))\n"


def other(gap: Gap) -> list[tuple[str | None, str]]:
    return [(file.filename, file.text) for file in gap.extra]


@pytest.mark.parametrize("markers", FORMATS, ids=lambda markers: markers.prefix.strip())
def test_prefix_and_suffix_are_read_in_either_order(markers: object) -> None:
    assert isinstance(markers, type(FORMATS[0]))
    prefix, suffix, middle = markers.prefix, markers.suffix, markers.middle
    expected = Gap(BEFORE, AFTER)
    assert read_prompt(f"{prefix}{BEFORE}{suffix}{AFTER}{middle}", None) == expected
    assert read_prompt(f"{prefix}{BEFORE}{suffix}{AFTER}{middle}", "") == expected
    if prefix != "<PRE> ":
        assert read_prompt(f"{suffix}{AFTER}{prefix}{BEFORE}{middle}", None) == expected


def test_codestral_prompts_end_with_the_prefix() -> None:
    assert read_prompt(f"[SUFFIX]{AFTER}[PREFIX]{BEFORE}", None) == Gap(BEFORE, AFTER)


def test_qwen_names_the_repository_and_the_files() -> None:
    gap = read_prompt(
        "<|repo_name|>shop\n<|file_sep|>shop/a.py\nA = 1\n<|file_sep|>shop/b.py\n"
        f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>",
        None,
    )
    assert (gap.prefix, gap.suffix, gap.file) == (BEFORE, AFTER, "shop/b.py")
    assert other(gap) == [("shop/a.py", "A = 1\n")]


def test_starcoder_names_the_file_within_the_prefix() -> None:
    gap = read_prompt(
        f"<repo_name>shop<file_sep>shop/a.py\nA = 1\n<file_sep><fim_prefix>shop/b.py\n{BEFORE}"
        f"<fim_suffix>{AFTER}<fim_middle>",
        None,
    )
    assert (gap.prefix, gap.suffix, gap.file) == (BEFORE, AFTER, "shop/b.py")
    assert other(gap) == [("shop/a.py", "A = 1\n")]
    older = f"<reponame>shop<filename>shop/b.py\n<fim_prefix>{BEFORE}<fim_suffix><fim_middle>"
    assert read_prompt(older, None) == Gap(BEFORE, "", "shop/b.py")


def test_excerpts_without_a_name_keep_their_first_line() -> None:
    gap = read_prompt(
        f"<file_sep>A = 1\nB = 2<file_sep><fim_prefix>{BEFORE}<fim_suffix><fim_middle>", None
    )
    assert (gap.prefix, gap.file) == (BEFORE, None)
    assert other(gap) == [(None, "A = 1\nB = 2")]


def test_codestral_names_files_before_their_text() -> None:
    files = f"+++++ shop/a.py\nA = 1\n\n+++++ shop/b.py\n{BEFORE}"
    for prompt, suffix in [(f"[SUFFIX]{AFTER}[PREFIX]{files}", None), (files, AFTER)]:
        gap = read_prompt(prompt, suffix)
        assert (gap.prefix, gap.suffix, gap.file) == (BEFORE, AFTER, "shop/b.py")
        assert other(gap) == [("shop/a.py", "A = 1\n\n")]


@pytest.mark.parametrize(
    "text",
    [
        BEFORE,
        "",
        'MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")\nx = ',
        'a = "[SUFFIX]" + "[PREFIX]"\nb = ',
        "<fim_prefix>a<fim_middle>",
        "<|fim_middle|>",
        "<PRE> a <MID>",
    ],
)
def test_buffers_that_mention_markers_are_buffers(text: str) -> None:
    assert read_prompt(text, None) == Gap(text)


def test_a_field_of_its_own_is_the_suffix_whatever_the_prompt_mentions() -> None:
    prompt = "<fim_prefix>a<fim_suffix>b<fim_middle>"
    assert read_prompt(prompt, AFTER) == Gap(prompt, AFTER)


def test_of_too_many_files_the_last_ones_are_kept() -> None:
    files = [f"<file_sep>a{i}.py\nA = {i}\n" for i in range(schema.MAX_CONTEXT_FILES + 1)]
    prompt = "".join(files) + f"<file_sep><fim_prefix>{BEFORE}<fim_suffix><fim_middle>"
    request = read_prompt(prompt, None).to_request(1)
    assert [file.filename for file in request.extra[:1]] == ["a1.py"]
    assert len(request.extra) == schema.MAX_CONTEXT_FILES


def test_a_line_that_is_too_long_for_a_name_is_code() -> None:
    name = "a" * schema.MAX_PATH_LENGTH + ".py"
    end = f"<fim_prefix>{BEFORE}<fim_suffix><fim_middle>"
    for head in (f"<file_sep>{name}\nA = 1\n<file_sep>", f"<file_sep>{name}\n"):
        gap = read_prompt(head + end, None)
        assert (gap.prefix, gap.file) == (BEFORE, None)
        assert [(file.filename, file.text[:10]) for file in gap.extra] == [(None, name[:10])]
        assert gap.to_request(1).file is None
    files = read_prompt(f"+++++ {name}\n{BEFORE}", AFTER).to_request(1)
    assert (files.text, files.file) == (BEFORE + AFTER, None)


def test_the_first_limit_ends_a_text() -> None:
    text = "a = 1\n    b = 2\nc = 3\n"
    assert Limits().apply(text).text == text
    assert Limits(["3", "b"]).apply(text).word == "b"
    assert Limits(indentation=4).apply(text).text == "a = 1\n    b = 2"
    assert Limits(max_tokens=2).apply(text).reason == "length"
    assert Limits(max_tokens=0).apply(text).text == ""
