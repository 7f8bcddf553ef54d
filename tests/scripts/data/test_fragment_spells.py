from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from crawl_envs.instances import traces
from crawl_envs.worlds.fragments.shingling import as_fragments, shingles_of
from scripts.data.git.versions import FragmentBook, read_version
from scripts.data.trace_from_git import TraceOptions, app, make_trace
from tests.scripts.commands import done, run
from tests.scripts.data.repositories import Scratch

START = "2024-01-01"
SCHEMA = pa.schema(
    [("page_id", pa.int32()), ("fragment", pa.uint32()), ("birth", pa.float64()),
     ("death", pa.float64())]
)  # fmt: skip
Spell = tuple[int, float | None, float | None]


def recorded(scratch: Scratch, **options: Any) -> dict[int, list[Spell]]:
    """By page, fragment, birth and death of every spell in the repository's trace."""
    out = scratch.folder.parent / "trace"
    options = {"start": START, "force": True, "fragment_modulus": 1} | options
    make_trace(TraceOptions(path=scratch.folder, out=out, **options))
    trace = traces.load(out)
    assert trace.fragments is not None
    made = json.loads((out / "meta.json").read_text())
    assert made["fragment_modulus"] == options["fragment_modulus"]
    table = pq.read_table(out / "fragments.parquet")
    assert table.schema.equals(SCHEMA)
    spells: dict[int, list[Spell]] = {}
    for row in table.to_pylist():
        spell = row["fragment"], row["birth"], row["death"]
        spells.setdefault(row["page_id"], []).append(spell)
    assert list(spells) == sorted(spells)
    return spells


def spells_of(*rows: tuple[str, float | None, float | None]) -> list[Spell]:
    """Spells of texts, in order of birth and fragment."""
    spells = [
        (int(f), birth, death)
        for text, birth, death in rows
        for f in as_fragments(shingles_of(text))
    ]
    return sorted(spells, key=lambda spell: (-1.0 if spell[1] is None else spell[1], spell[0]))


def test_a_page_s_fragments_from_birth_to_death(scratch: Scratch) -> None:
    scratch.commit(0.5, {"a.md": "one two three four\n"})
    scratch.commit(1.0, {"a.md": "one two three five\n"})
    scratch.commit(2.0, {"a.md": "one   two three five\n"})
    scratch.commit(3.0, {"a.md": "one two three four\n"})
    scratch.commit(4.0, {"a.md": None})
    assert recorded(scratch) == {
        0: spells_of(
            ("one two three", 0.5, 4.0),
            ("two three four", 0.5, 1.0),
            ("two three five", 1.0, 3.0),
            ("two three four", 3.0, 4.0),
        )
    }


def test_pages_with_fewer_than_three_changes_are_left_out(scratch: Scratch) -> None:
    for name in ("few", "some"):
        scratch.write(f"{name}.md", f"{name} old words")
    scratch.commit(0.5)
    for day in (1.0, 2.0, 3.0):
        for name in ("few", "some")[day == 3.0 :]:
            scratch.write(f"{name}.md", f"{name} words {day:.0f}")
        scratch.commit(day)
    scratch.commit(4.0, {"few.md": None})
    assert recorded(scratch) == {
        1: spells_of(("some old words", 0.5, 1.0), ("some words 1", 1.0, 2.0),
                     ("some words 2", 2.0, 3.0), ("some words 3", 3.0, None))
    }  # fmt: skip


def test_what_was_there_before_the_window_has_no_birth(scratch: Scratch) -> None:
    scratch.commit(0.5, {"a.md": "a b c", "back.md": "x y z"})
    scratch.commit(8.0, {"a.md": "a b c d", "back.md": None})
    for day in range(3):
        scratch.commit(11.0 + day, {"a.md": f"b c d {day}", "back.md": f"x y z {day}"})
    scratch.commit(30.0, {"a.md": "beyond the window"})
    assert recorded(scratch, start="2024-01-11", days=10.0) == {
        0: spells_of(("a b c", None, 1.0), ("b c d", None, None), ("c d 0", 1.0, 2.0),
                     ("c d 1", 2.0, 3.0), ("c d 2", 3.0, None)),
        1: spells_of(("x y z", None, None), ("y z 0", 1.0, 2.0), ("y z 1", 2.0, 3.0),
                     ("y z 2", 3.0, None)),
    }  # fmt: skip


def test_renames_and_short_absences_end_no_spell(scratch: Scratch) -> None:
    scratch.commit(0.5, {"old/a.md": "a b c d"})
    scratch.move("old/a.md", "new/a.md")
    scratch.commit(1.0)
    scratch.commit(2.0, {"new/a.md": None})
    scratch.commit(3.0, {"new/a.md": "a b c d"})
    for day, text in ((4.0, "a b c e"), (5.0, "a b c d e"), (6.0, "")):
        scratch.commit(day, {"new/a.md": text})
    assert recorded(scratch) == {
        0: spells_of(("a b c", 0.5, 6.0), ("b c d", 0.5, 4.0), ("b c e", 4.0, 5.0),
                     ("b c d e", 5.0, 6.0))
    }  # fmt: skip


def random_texts(dice: random.Random, count: int) -> list[str]:
    """Return texts that each differ a little from the previous one."""
    words = [f"w{dice.randrange(9)}" for _ in range(12)]
    texts = []
    for _ in range(count):
        words[dice.randrange(len(words))] = f"w{dice.randrange(9)}"
        if dice.random() < 0.1:
            words.reverse()
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("modulus", [1, 3, 8])
@pytest.mark.parametrize("born", [True, False])
def test_a_random_history_agrees_with_whole_versions(modulus: int, born: bool) -> None:
    texts = random_texts(random.Random(modulus), 60)
    book = FragmentBook(modulus)
    kept = [read_version(text.encode()) for text in texts]
    if born:
        book.enter("page", None, kept[0], 0.0)
    for time in range(1, len(kept)):
        book.enter("page", kept[time - 1], kept[time], float(time))
    spells = book.spells("page", 60.0)
    assert np.all(spells.birth < spells.death)
    assert np.all(np.diff(spells.birth[np.isfinite(spells.birth)]) >= 0.0)
    first = as_fragments(kept[0].shingles, modulus)
    assert np.count_nonzero(np.isneginf(spells.birth)) == (0 if born else first.size)
    for time, text in enumerate(texts):
        there = (spells.birth <= time) & (time < spells.death)
        expected = [s >> 32 for s in shingles_of(text).tolist() if s % modulus == 0]
        assert sorted(spells.fragment[there].tolist()) == sorted(expected)
    order = np.lexsort((spells.birth, spells.fragment))
    again = spells.fragment[order][1:] == spells.fragment[order][:-1]
    assert again.any()
    gaps = spells.birth[order][1:] - spells.death[order][:-1]
    assert np.all(gaps[again] > 0.0), "spells of one fragment are apart"


def test_a_modulus_samples_fragments_whole(scratch: Scratch) -> None:
    for day, text in enumerate(random_texts(random.Random(3), 12)):
        scratch.commit(day + 0.5, {"a.md": text})
    whole, sample = recorded(scratch)[0], recorded(scratch, fragment_modulus=2)[0]
    chosen = {
        int(fragment)
        for text in random_texts(random.Random(3), 12)
        for fragment in as_fragments(shingles_of(text), 2)
    }
    assert sample == [spell for spell in whole if spell[0] in chosen]
    assert 0 < len(sample) < len(whole)


def test_the_command_takes_a_modulus(scratch: Scratch, tmp_path: Path) -> None:
    for day in range(4):
        scratch.commit(day + 0.5, {"a.md": f"one two three {day}"})
    arguments = [str(scratch.folder), "--out", str(tmp_path / "trace"), "--start", "2024-01-01"]
    result = done(run(app, *arguments, "--fragment-modulus", "1"))
    assert "5 fragments" in result.stdout
    bad = CliRunner().invoke(app, [*arguments, "--force", "--fragment-modulus", "-1"])
    assert bad.exit_code == 2
    assert (
        bad.stderr.strip()
        == "error: fragment_modulus must be an integer in [0, 4294967296], got -1"
    )
    other = TraceOptions(path=scratch.folder, out=tmp_path / "other", start=START)
    made = make_trace(other)
    assert made["fragment_modulus"] == 8
    assert made["rows"]["fragments"] <= 5
