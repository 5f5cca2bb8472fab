"""How many sockets one person may have open in this process."""

from collections import Counter

MOST = 50
_taken: Counter[int] = Counter()


def take(user_id: int) -> bool:
    """A seat, if one is left. Whoever gets one must give it back."""
    if _taken[user_id] >= MOST:
        return False
    _taken[user_id] += 1
    return True


def give_back(user_id: int) -> None:
    _taken[user_id] -= 1
    if not _taken[user_id]:
        del _taken[user_id]
