"""A table from page ids to rows that stores no Python object per page.

Of a million URLs of 56 letters each takes 154 bytes, of as many numbers 62. A dictionary and a list
take 198 for a URL. To find a thousand takes 2.1 us each, with the dictionary 2.7; to find a single
one 21 us, with the dictionary 4 (one run).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import IntArray

LEAST_ROOM = 64
LONGEST_TEXT = 2**16
"""Most bytes of an id or host in UTF-8."""
EMPTY, DELETED = -1, -2
Bytes = NDArray[np.uint8]


@inlined(forceinline=True)
def mixed(word: Any) -> Any:
    """Return Steele, Lea and Flood's hash of a 64-bit word (splitmix64)."""
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


plain_mixed = cast(Any, mixed).py_func  # of an array, without a compilation


@compiled()
def hashes_of(text: Bytes, ends: IntArray) -> IntArray:
    """Hash strings to 64 bits; string k is ``text[ends[k]:ends[k + 1]]``."""
    hashes = np.empty(ends.size - 1, np.int64)
    for k in range(hashes.size):
        word = np.uint64(0xCBF29CE484222325)
        for place in range(ends[k], ends[k + 1]):
            word = (word ^ np.uint64(text[place])) * np.uint64(0x100000001B3)
        hashes[k] = np.int64(mixed(word))
    return hashes


@inlined(forceinline=True)
def same(first: Bytes, start: int, end: int, second: Bytes, begin: int, last: int) -> bool:
    """Return whether bytes ``start:end`` of one text equal bytes ``begin:last`` of another."""
    offset = 0
    while start + offset < end and begin + offset < last:
        if first[start + offset] != second[begin + offset]:
            return False
        offset += 1
    return end - start == last - begin


@compiled()
def find(
    slots: IntArray,
    keys: IntArray,
    spans: IntArray,
    text: Bytes,
    wanted: IntArray,
    ends: IntArray,
    letters: Bytes,
) -> IntArray:
    """Return the row of each wanted id in a hash table, -1 if it has none.

    ``slots`` has rows at places given by the hash of their keys, with open addressing. ``keys``
    and ``spans`` have the key of each row, and the place of its string in ``text``. The wanted
    strings are in ``letters`` and end at ``ends``, which is empty if ids are whole numbers.
    """
    rows, mask = np.full(wanted.size, -1), slots.size - 1
    for k in range(wanted.size):
        place = np.int64(mixed(wanted[k])) & mask
        while slots[place] != EMPTY:
            row = slots[place]
            if row >= 0 and keys[row] == wanted[k]:
                begin, end = spans[row]
                if ends.size == 0 or same(text, begin, end, letters, ends[k], ends[k + 1]):
                    rows[k] = row
                    break
            place = (place + 1) & mask
    return rows


@compiled()
def insert(slots: IntArray, keys: IntArray, rows: IntArray) -> None:
    """Add rows to the slots of a hash table, which must not have their keys yet."""
    mask = slots.size - 1
    for row in rows:
        place = np.int64(mixed(keys[row])) & mask
        while slots[place] >= 0:
            place = (place + 1) & mask
        slots[place] = row


@compiled()
def discard(slots: IntArray, keys: IntArray, rows: IntArray) -> None:
    """Remove rows from the slots of a hash table."""
    mask = slots.size - 1
    for row in rows:
        place = np.int64(mixed(keys[row])) & mask
        while slots[place] != row:
            place = (place + 1) & mask
        slots[place] = DELETED


def shards_of(labels: ArrayLike, shards: int) -> IntArray:
    """Return the shard of each label, (n,): the same for a label on any machine, at any time."""
    keys = _encoded(as_array("labels", labels))[0].astype(np.int64).view(np.uint64)
    return np.asarray(plain_mixed(keys) % np.uint64(shards), np.int64)


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Convert a value to an array as NumPy does, except that strings become objects.

    Raises:
        ValueError: it has a mask, values that NumPy would change, such as numbers among strings, or
            objects other than strings; a string is longer than ``LONGEST_TEXT``.
    """
    first = value[0] if isinstance(value, list | tuple) and value else value
    array: NDArray[Any] = np.asarray(value, object if isinstance(first, str) else None)
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be masked")
    if array.dtype.kind in "iufb":
        return array
    changed = array.dtype.kind == "U" and not hasattr(value, "dtype")
    if array.dtype.kind in "UT":
        array = array.astype(object)
    strings: list[Any] = array.ravel().tolist() if array.dtype.kind == "O" else []
    if changed or array.dtype.kind == "S" or not all(isinstance(x, str) for x in strings):
        raise ValueError(
            f"{name} must be all strings, or all numbers of 64 bits, got {value!r:.80}"
        )
    if max(map(len, strings), default=0) > LONGEST_TEXT // 4:
        sizes = [len(text.encode()) for text in strings]
        if (size := max(sizes)) > LONGEST_TEXT:
            raise ValueError(
                f"{name} must have at most {LONGEST_TEXT} bytes each, got {size} at position "
                f"{sizes.index(size)}: {strings[sizes.index(size)]!r:.40}"
            )
    return array


class PageIds:
    """A hash table from the ids of pages to rows; ids are all integers or all strings.

    Rows of removed ids are used again, the row freed last first.

    Attributes:
        capacity: number of rows for which there is room.
    """

    def __init__(self) -> None:
        self.capacity = LEAST_ROOM
        self._keys, self._free = np.zeros((2, LEAST_ROOM), np.int64)
        self._spans, self._num_free = np.zeros((LEAST_ROOM, 2), np.int64), 0
        self._slots = np.full(4 * LEAST_ROOM, EMPTY)
        self._used = self._size = self._deleted = 0
        self._text, self._written, self._kind = np.zeros(0, np.uint8), 0, ""

    def __len__(self) -> int:
        """Return the number of ids."""
        return self._size

    def add(self, ids: ArrayLike) -> IntArray:
        """Add n ids, and return their rows, (n,).

        Raises:
            ValueError: an id is there already or twice in the call, is an empty string, is neither
                an integer nor a string, or is not of the kind of the others. Nothing is added
                then.
        """
        labels = self._read(ids)
        keys, ends, letters = self._new(labels)
        self._kind = self._kind or labels.dtype.kind
        self._make_room(labels.size, letters.size)
        reused = min(labels.size, self._num_free)
        self._num_free -= reused
        freed = self._free[self._num_free : self._num_free + reused][::-1]
        rows = np.concatenate([freed, self._used + np.arange(labels.size - reused)])
        self._used += labels.size - reused
        self._size += labels.size
        self._write(rows, keys, ends, letters)
        return rows

    def _new(self, labels: NDArray[Any]) -> tuple[IntArray, IntArray, Bytes]:
        """Encode new ids as keys, ends and bytes; ValueError if one is known or comes twice."""
        keys, ends, letters = _encoded(labels)
        there = np.flatnonzero(self._find(keys, ends, letters) >= 0)
        if there.size:
            raise ValueError(f"ids must be new, got {labels.item(there[0])!r:.80} again")
        if np.unique(keys).size < keys.size:  # or different ids of the same hash
            repeated = np.flatnonzero(~first_of_each(labels))
            if repeated.size:
                raise ValueError(f"ids must differ, got {labels.item(repeated[0])!r:.80} twice")
        return keys, ends, letters

    def _write(self, rows: IntArray, keys: IntArray, ends: IntArray, letters: Bytes) -> None:
        """Store encoded ids in rows, and add the rows to the hash table."""
        self._keys[rows] = keys
        if ends.size:
            self._spans[rows, 0] = self._written + ends[:-1]
            self._spans[rows, 1] = self._written + ends[1:]
            self._text[self._written : self._written + letters.size] = letters
            self._written += letters.size
        insert(self._slots, self._keys, rows)

    def move(self, ids: ArrayLike, new_ids: ArrayLike) -> None:
        """Give n pages n new ids; ValueError as for :meth:`rows` and :meth:`add`.

        After an error nothing has changed.
        """
        rows, labels = self.rows(ids), self._read(new_ids)
        if labels.size != rows.size or np.unique(rows).size != rows.size:
            raise ValueError(f"new ids must be one for each of {rows.size} different ids")
        keys, ends, letters = self._new(labels)
        self._make_room(0, letters.size)
        discard(self._slots, self._keys, rows)
        self._deleted += rows.size
        self._write(rows, keys, ends, letters)

    def rows(self, ids: ArrayLike, missing: Literal["raise", "skip"] = "raise") -> IntArray:
        """Return the rows of n ids, (n,); with ``skip``, -1 where an id is unknown.

        Raises:
            ValueError: an id is unknown, unless skipped, or of another kind.
        """
        labels = self._read(ids)
        rows = self._find(*_encoded(labels))
        unknown = np.flatnonzero(rows < 0)
        if missing == "raise" and unknown.size:
            more = f" and {unknown.size - 1} others" * (unknown.size > 1)
            raise ValueError(f"ids must be known, got {labels.item(unknown[0])!r:.80}{more}")
        return rows

    def remove(self, ids: ArrayLike) -> IntArray:
        """Remove n ids, and return their rows, (n,).

        Raises:
            ValueError: an id is unknown or given twice. Nothing is removed then.
        """
        rows = self.rows(ids)
        if np.unique(rows).size != rows.size:
            raise ValueError("ids must differ, got one of them twice")
        discard(self._slots, self._keys, rows)
        self._free[self._num_free : self._num_free + rows.size] = rows
        self._num_free += rows.size
        self._deleted += rows.size
        self._size -= rows.size
        return rows

    def ids(self, rows: IntArray) -> NDArray[Any]:
        """Return the ids of rows, (n,), as integers or as strings, which are objects."""
        if self._kind != "O":
            return self._keys[rows]
        text, spans = self._text.data, self._spans[rows].tolist()
        return np.array([text[first:last].tobytes().decode() for first, last in spans], object)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table as arrays by name, from which :meth:`from_arrays` builds it again."""
        used = slice(self._used)
        return {
            "keys": self._keys[used],
            "spans": self._spans[used],
            "text": self._text[: self._written],
            "free": self._free[: self._num_free],
            "strings": np.array([self._kind == "O"]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PageIds:
        """Return a table from the arrays that :meth:`arrays` of another table returned."""
        table, used = cls(), arrays["keys"].size
        table._make_room(used, arrays["text"].size)
        table._keys[:used], table._spans[:used] = arrays["keys"], arrays["spans"]
        table._written, table._num_free = arrays["text"].size, arrays["free"].size
        table._text[: table._written] = arrays["text"]
        table._free[: table._num_free] = arrays["free"]
        table._used, table._size = used, used - table._num_free
        table._kind = "" if used == 0 else "O" if arrays["strings"][0] else "i"
        insert(table._slots, table._keys, np.setdiff1d(np.arange(used), arrays["free"]))
        return table

    def _read(self, ids: ArrayLike) -> NDArray[Any]:
        """Return ids as an array of int64, or of strings as objects."""
        array = np.atleast_1d(as_array("ids", ids))
        if array.size == 0:
            return np.zeros(0, object if self._kind == "O" else np.int64)
        kind = "i" if array.dtype.kind == "u" else array.dtype.kind
        if array.ndim != 1 or kind not in ("i", "O") or kind != (self._kind or kind):
            expected = {"": "integers or strings", "i": "integers", "O": "strings"}[self._kind]
            raise ValueError(f"ids must be an array of {expected}, got {array.tolist()[0]!r:.80}")
        if kind == "O":
            if "" in array.tolist():
                raise ValueError("ids must not be empty, got ''")
            return array
        if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"ids must be below 2**63, got {array.max()}")
        return array.astype(np.int64)

    def _find(self, keys: IntArray, ends: IntArray, letters: Bytes) -> IntArray:
        return find(self._slots, self._keys, self._spans, self._text, keys, ends, letters)

    def _make_room(self, ids: int, letters: int) -> None:
        """Enlarge the arrays for ``ids`` more ids that have ``letters`` bytes in all."""
        need = self._used + max(ids - self._num_free, 0)
        while self.capacity < need:
            self.capacity *= 2
        room = self.capacity
        if self._keys.size < room:
            self._keys, self._free = grown(self._keys, room), grown(self._free, room)
            self._spans = grown(self._spans, room)
        if self._slots.size < 2 * room or self._deleted > room // 2:
            present = self.present()
            self._slots, self._deleted = np.full(4 * room, EMPTY), 0
            insert(self._slots, self._keys, present)
        if self._written + letters > self._text.size:
            self._gather_text(letters)

    def present(self) -> IntArray:
        """Return the rows of all ids."""
        absent = np.zeros(self._used, np.bool_)
        absent[self._free[: self._num_free]] = True
        return np.flatnonzero(~absent)

    def _gather_text(self, letters: int) -> None:
        """Enlarge the text for ``letters`` more bytes, and delete the strings of removed ids."""
        rows = self.present()
        rows = rows[np.argsort(self._spans[rows, 0])]
        borders = np.zeros(self._written + 1, np.int8)
        borders[self._spans[rows, 0]] += 1
        borders[self._spans[rows, 1]] -= 1
        text = self._text[: self._written][borders[:-1].cumsum(dtype=np.int8) > 0]
        ends = np.concatenate([[0], np.cumsum(self._spans[rows, 1] - self._spans[rows, 0])])
        self._spans[rows, 0], self._spans[rows, 1] = ends[:-1], ends[1:]
        self._text = grown(text, max(2 * (text.size + letters), 1024))
        self._written = text.size


def first_of_each(entries: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask, (n,), of the entries that have no equal entry before them."""
    places = dict(zip(entries[::-1].tolist(), range(entries.size - 1, -1, -1), strict=True))
    first = np.zeros(entries.size, np.bool_)
    first[np.fromiter(places.values(), np.int64, len(places))] = True
    return first


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a copy of an array that is extended by zeros to a length along its first axis."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _encoded(ids: NDArray[Any]) -> tuple[IntArray, IntArray, Bytes]:
    """Encode ids: their keys (numbers or hashes), where each string ends, and all bytes."""
    if ids.dtype.kind != "O":
        return ids, np.zeros(0, np.int64), np.zeros(0, np.uint8)
    texts: list[Any] = ids.tolist()
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if lengths.sum() < letters.size:  # not only ASCII
        lengths = np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts))
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return hashes_of(letters, ends), ends, letters
