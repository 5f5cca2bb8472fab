"""Make a small dataset of readings, clean it, and cut it into compressed shards, on the CPU alone.

Some readings are broken or doubled on purpose, so that there is something to clean. Each shard's SHA-256 is printed and
kept in manifest.json; the same seed gives the same bytes.
"""

import argparse
import gzip
import hashlib
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BOLD, GREEN, DIM, RESET = (f"\033[{code}m" for code in ("1", "32", "2", "0"))
STEP = 5_000


def readings(rows: int, seed: int) -> Iterator[tuple[int, float | None]]:
    """(sensor, value) pairs: 2 % without a value, 3 % sent twice."""
    chance = random.Random(seed)
    for _ in range(rows):
        value = None if chance.random() < 0.02 else round(chance.gauss(20.0, 4.0), 3)
        reading = (chance.randrange(1_000), value)
        yield reading
        if chance.random() < 0.03:
            yield reading


def cleaned(rows: int, seed: int) -> tuple[list[tuple[int, float]], int, int]:
    """The good readings, and how many were empty and doubled."""
    good: list[tuple[int, float]] = []
    empty = doubled = 0
    last: tuple[int, float | None] | None = None
    for number, reading in enumerate(readings(rows, seed), start=1):
        sensor, value = reading
        if reading == last:
            doubled += 1
        elif value is None:
            empty += 1
        else:
            good.append((sensor, value))
        last = reading
        if number % STEP == 0:
            print(f"\rreading {number:,}", end="", flush=True)
    print("\r\033[K", end="")
    return good, empty, doubled


def write_shard(path: Path, rows: list[tuple[int, float]]) -> dict[str, object]:
    """One compressed shard of JSON lines, the same bytes for the same rows."""
    text = "".join(json.dumps({"sensor": sensor, "value": value}) + "\n" for sensor, value in rows)
    packed = gzip.compress(text.encode(), mtime=0)
    path.write_bytes(packed)
    return {"file": path.name, "rows": len(rows), "bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}


def prepare(options: argparse.Namespace, folder: Path) -> None:
    """The whole work, into a folder that exists."""
    started = time.monotonic()
    print(f"{BOLD}Making{RESET} {options.rows:,} readings, seed {options.seed}", flush=True)
    good, empty, doubled = cleaned(options.rows, options.seed)
    print(f"Kept {len(good):,}; dropped {empty:,} without a value and {doubled:,} sent twice", flush=True)
    shards = []
    for index in range(options.shards):
        name = f"part-{index:05d}-of-{options.shards:05d}.jsonl.gz"
        shard = write_shard(folder / name, good[index :: options.shards])
        shards.append(shard)
        words = f"{name}  {shard['rows']:>8,} rows  {shard['bytes']:>10,} bytes"
        print(f"{words}  {DIM}{shard['sha256']}{RESET}", flush=True)
    mean = sum(value for _, value in good) / max(1, len(good))
    manifest = {"rows": len(good), "mean": mean, "shards": shards}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    took = time.monotonic() - started
    print(
        f"{GREEN}{BOLD}Done{RESET} in {took:.1f} s: {len(shards)} shards in {folder}, mean value {mean:.3f}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Make, clean and shard a small dataset.")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default="", help="where the shards go; empty: a folder that ends with the job")
    options = parser.parse_args()
    # Cancelling sends SIGTERM: leave by the front door, so that the folder of the job goes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.folder:
        folder = Path(options.folder)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(options, folder)
        return
    with tempfile.TemporaryDirectory(prefix="dataset-") as temporary:
        prepare(options, Path(temporary))
    print("The folder ended with the job. Fill in “Folder” to keep the shards.")


if __name__ == "__main__":
    main()
