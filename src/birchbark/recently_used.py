"""Which of many entries are kept in memory, within a bound on their total size?"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Entry = TypeVar("Entry")


class RecentlyUsed(Generic[Key, Entry]):
    """The most recently used entries. Threads may share it."""

    def __init__(self, capacity: int) -> None:
        """capacity: maximum total size of the entries; a larger single entry is kept alone."""
        self._entries: OrderedDict[Key, tuple[Entry, int]] = OrderedDict()
        self._capacity, self._size = capacity, 0
        self._lock = Lock()

    def get(self, key: Key) -> Entry | None:
        """Return the entry and keep it longer; None if there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def add(self, key: Key, entry: Entry, size: int) -> None:
        """Add or replace an entry, and drop the least recently used ones if necessary."""
        with self._lock:
            if key in self._entries:
                self._size -= self._entries.pop(key)[1]
            self._entries[key] = entry, size
            self._size += size
            while self._size > self._capacity and len(self._entries) > 1:
                self._size -= self._entries.popitem(last=False)[1][1]
