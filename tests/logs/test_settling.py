"""Whatever is killed, held up or read beside it: each record has its place, and nothing is taken for missing."""

import random
from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from portal.logs.policy.collected import Book, Seen
from portal.logs.policy.settling import FRESH_NS, Reading, Settling

SECOND = 1_000_000_000
# All lines of one length: they end at the same places in every file.
SIZE = 50


class Node:
    """A container that writes, a runtime that rotates, and a collector that reads all files side by side."""

    def __init__(self, chance: random.Random, *, rotate_at: int) -> None:
        self._chance, self._rotate_at = chance, rotate_at
        self.now = 1_000 * SECOND
        self.files: list[list[Seen]] = [[]]
        self._rotated_at = self.now
        self.written: list[bytes] = []
        # What is sent next, each with the moment when it was read.
        self.queue: deque[tuple[list[Seen], int]] = deque()
        self.starts = 0
        self._read: list[int] = [0]
        self._saved: list[int] = [0]

    def write(self, lines: int) -> None:
        for _ in range(lines):
            if len(self.files[-1]) * SIZE >= self._rotate_at and self.now - self._rotated_at >= 3 * SECOND:
                self._rotated_at = self.now
                self.files.append([])
                self._read.append(0)
                self._saved.append(0)
            text = b"%06d" % len(self.written)
            offset = len(self.files[-1]) * SIZE
            self.files[-1].append(Seen(self.now, offset, offset + SIZE, "stdout", True, text))
            self.written.append(text)
            self.now += self._chance.choice((30_000_000, 30_000_000, 100_000_000))

    def read(self, *, saved: bool) -> None:
        """Up to the ends of all files, whose records come mixed."""
        while waiting := [at for at, file in enumerate(self.files) if self._read[at] < len(file)]:
            at = self._chance.choice(waiting)
            start = self._read[at]
            self._read[at] = min(len(self.files[at]), start + self._chance.randint(1, 6))
            self.queue.append((self.files[at][start : self._read[at]], self.now))
            self.now += 1_000
        if saved:
            self._saved = list(self._read)

    def kill(self, under_way: int) -> None:
        self.now += self._chance.randint(1, 2) * SECOND
        for _ in range(min(under_way, len(self.queue))):
            self.queue.rotate(-1)
        self._read = list(self._saved)
        self.starts += 1


class Door:
    """What the portal does with deliveries, without its tables."""

    def __init__(self) -> None:
        self.book = Book()
        self.text: list[bytes] = []
        self.holes = 0
        # Records, when they were read, when they came, and who sent them.
        self._waiting: list[tuple[list[Seen], int, int, int]] = []
        self._sender, self._begun_ns = -1, 0
        self._grown_ns = 0

    def deliver(self, records: list[Seen], *, read_ns: int, now: int, sender: int) -> None:
        if sender != self._sender:
            first = self._sender < 0 and now - records[0].time_ns <= FRESH_NS
            self._sender, self._begun_ns = sender, 0 if first else now
        self._waiting.append((records, read_ns, now, sender))

    def number(self, now: int, *, hurry: bool = False) -> None:
        if not self._waiting:
            return
        readings: dict[tuple[int, int], Reading] = {}
        arrivals = []
        for records, read_ns, came_ns, _ in self._waiting:
            arrivals += records
            for record in records:
                readings.setdefault((record.time_ns, record.offset), Reading(came_ns, read_ns))
        settling = Settling(
            readings=readings,
            begun_ns=self._begun_ns,
            sure_ns=max((read_ns for _, read_ns, _, sender in self._waiting if sender == self._sender), default=0),
            heard_ns=max(came_ns for _, _, came_ns, _ in self._waiting),
            grown_ns=self._grown_ns,
            now_ns=now,
            blank=not self.book.spans,
            hurry=hurry,
        )
        taken = self.book.take(arrivals, waited=settling.waited, took=settling.took, joins=settling.joins)
        self._grown_ns = settling.grown_ns
        self.text += [record.text for record in taken.records]
        self.holes += len(taken.holes)
        rest = set(taken.rest)
        kept = []
        for records, read_ns, came_ns, sender in self._waiting:
            left = [each for each in records if each in rest]
            if left:
                kept.append((left, read_ns, came_ns, sender))
        self._waiting = kept


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32), rotate_at=st.sampled_from((200, 500, 2_000)))
def test_kills_of_either_side_and_rotations_leave_each_record_its_place(seed: int, rotate_at: int) -> None:
    chance = random.Random(seed)
    node, door = Node(chance, rotate_at=rotate_at), Door()

    def send() -> None:
        node.now += chance.choice((1_000_000, 50_000_000))
        records, read_ns = node.queue.popleft()
        door.deliver(records, read_ns=read_ns, now=node.now, sender=node.starts)
        # Killed before it knew that this had come: it comes again.
        if chance.random() < 0.1:
            node.queue.appendleft((records, read_ns))
            node.kill(chance.randint(1, 3))

    for _ in range(chance.randint(5, 60)):
        event = chance.random()
        if event < 0.45:
            node.write(chance.randint(1, 12))
            node.read(saved=chance.random() < 0.8)
        elif event < 0.55:
            node.now += chance.choice((1, 4, 20, 90)) * SECOND
        elif event < 0.65:
            node.kill(chance.randint(0, 3))
        else:
            for _ in range(chance.randint(1, 8)):
                if node.queue:
                    send()
            door.number(node.now)
    node.read(saved=True)
    while node.queue:
        send()
        door.number(node.now)
    door.number(node.now, hurry=True)
    assert [*door.text] == [text + b"\n" for text in node.written]
    assert door.holes == 0
