"""Examples in memory implement the same interface as examples on disk and in a store."""

from pathlib import Path

from redraft.storage.disk import spool_examples
from redraft.storage.examples import (
    LINES,
    MAX_MASKS,
    InMemoryExamples,
    collected,
    examples_of,
    is_on_disk,
)
from redraft.types import Example

EXAMPLES = [Example({"text": f"x{i}"}, f"y{i % 2}", {"row": i}) for i in range(4)]


def test_a_list_is_wrapped_and_other_examples_are_not(tmp_path: Path) -> None:
    in_memory = examples_of(EXAMPLES)
    assert list(in_memory) == EXAMPLES
    assert examples_of(in_memory) is in_memory
    on_disk = spool_examples([EXAMPLES], tmp_path / "examples")
    assert examples_of(on_disk) is on_disk
    assert is_on_disk(on_disk)
    assert not is_on_disk(in_memory)
    assert collected(on_disk) is on_disk
    assert collected(iter(EXAMPLES)) == EXAMPLES


def test_memory_and_disk_give_the_same_results(tmp_path: Path) -> None:
    in_memory = examples_of([*EXAMPLES, EXAMPLES[1]])
    on_disk = spool_examples([in_memory], tmp_path / "examples")
    identity = EXAMPLES[1].identity
    assert in_memory.with_identity(identity) == on_disk.with_identity(identity) == [1, 4]
    assert in_memory.with_identity("none") == on_disk.with_identity("none") == []
    assert list(in_memory.identities) == list(on_disk.identities)
    assert list(in_memory.take([3, 0])) == list(on_disk.take([3, 0])) == [EXAMPLES[3], EXAMPLES[0]]
    masks = [e.allowed({"row": 1}, {}).tolist() for e in (in_memory, on_disk)]
    assert masks == [[False, True, False, False, True]] * 2
    for folder, examples in (("memory", in_memory), ("disk", on_disk)):
        (tmp_path / folder).mkdir()
        examples.save(tmp_path / folder)
    assert (tmp_path / "memory" / LINES).read_bytes() == (tmp_path / "disk" / LINES).read_bytes()


def test_masks_are_kept_for_few_filters_and_differ_between_them() -> None:
    examples = InMemoryExamples(EXAMPLES)
    assert examples.allowed({"row": 1}, {}) is examples.allowed({"row": "1"}, {})
    for _ in range(2):
        for row in range(2 * MAX_MASKS):
            assert examples.allowed({"row": row}, {}).tolist() == [i == row for i in range(4)]
            assert examples.allowed({}, {"row": row}).tolist() == [i != row for i in range(4)]


def test_examples_outside_of_a_store_have_nothing_to_write_or_refresh() -> None:
    in_memory = examples_of(EXAMPLES)
    assert in_memory.store_name is None
    assert in_memory.vector_index is None
    assert list(in_memory.added) == []
    assert in_memory.refreshed() is in_memory
    in_memory.write(None)
    in_memory.wait(0)
