"""Train a small neural network on generated data, in plain Python: nothing to install.

One hidden layer learns to tell two interleaved half-circles apart. Prints the loss of each epoch, and a progress bar
that is redrawn in place by carriage returns. With --sweep-to it is one run of a sweep: JOB_COMPLETION_INDEX picks its
learning rate between --learning-rate and --sweep-to, evenly on a logarithmic scale.
"""

import argparse
import math
import os
import random
import signal
import sys
import time

HIDDEN = 16
POINTS = 480
BATCHES = 20
BAR = 30
BOLD, DIM, GREEN, YELLOW, CYAN, RESET = (f"\033[{code}m" for code in ("1", "2", "32", "33", "36", "0"))


def half_circles(chance: random.Random) -> list[tuple[float, float, int]]:
    """Points (x, y, class) of two interleaved half-circles with a little noise."""
    points = []
    for index in range(POINTS):
        kind, angle = index % 2, math.pi * chance.random()
        x, y = (math.cos(angle), math.sin(angle)) if kind == 0 else (1 - math.cos(angle), 0.5 - math.sin(angle))
        points.append((x + chance.gauss(0, 0.15), y + chance.gauss(0, 0.15), kind))
    chance.shuffle(points)
    return points


class Network:
    """Two inputs, one hidden layer (tanh), one output (sigmoid); trained by plain gradient descent."""

    def __init__(self, chance: random.Random) -> None:
        self.hidden = [[chance.gauss(0, 0.8) for _ in range(3)] for _ in range(HIDDEN)]
        self.output = [chance.gauss(0, 0.4) for _ in range(HIDDEN + 1)]

    def forward(self, x: float, y: float) -> tuple[list[float], float]:
        layer = [math.tanh(a * x + b * y + c) for a, b, c in self.hidden]
        total = self.output[-1] + sum(weight * value for weight, value in zip(self.output, layer, strict=False))
        return layer, 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def learn(self, batch: list[tuple[float, float, int]], rate: float) -> float:
        """One pass over a batch; answers the mean loss (cross entropy)."""
        loss = 0.0
        for x, y, kind in batch:
            layer, guess = self.forward(x, y)
            loss -= math.log(max(1e-12, guess if kind else 1 - guess))
            error = guess - kind
            for index, value in enumerate(layer):
                slope = error * self.output[index] * (1 - value * value)
                self.output[index] -= rate * error * value
                weights = self.hidden[index]
                weights[0] -= rate * slope * x
                weights[1] -= rate * slope * y
                weights[2] -= rate * slope
            self.output[-1] -= rate * error
        return loss / len(batch)

    def accuracy(self, points: list[tuple[float, float, int]]) -> float:
        right = sum((self.forward(x, y)[1] > 0.5) == bool(kind) for x, y, kind in points)
        return right / len(points)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small neural network on generated data.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--sweep-to", type=float)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds-per-epoch", type=float, default=2.5)
    return parser.parse_args()


def learning_rate(options: argparse.Namespace) -> float:
    """This run's learning rate; one of a sweep says which."""
    first: float = options.learning_rate
    if options.sweep_to is None:
        return first
    index = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
    share = index / (options.runs - 1) if options.runs > 1 else 0.0
    rate: float = first * (options.sweep_to / first) ** share
    print(f"Run {index}, one of {options.runs}: learning rate {CYAN}{rate:.4g}{RESET}", flush=True)
    return rate


def epoch(network: Network, points: list[tuple[float, float, int]], rate: float, seconds: float, title: str) -> float:
    """One pass over all points, stretched to the given time, with a bar that is redrawn in place. Answers the loss."""
    started, size, loss = time.monotonic(), len(points) // BATCHES, 0.0
    for batch in range(BATCHES):
        loss += network.learn(points[batch * size : (batch + 1) * size], rate) / BATCHES
        done = batch + 1
        filled = BAR * done // BATCHES
        bar = "━" * filled + DIM + "─" * (BAR - filled) + RESET
        print(f"\r{title} {bar} {100 * done // BATCHES:3d} %", end="", flush=True)
        time.sleep(max(0.0, started + seconds * done / BATCHES - time.monotonic()))
    return loss


def main() -> None:
    options = arguments()
    # Cancelling sends SIGTERM: end at once, with the code that says so.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chance = random.Random(options.seed)
    points = half_circles(chance)
    held_out, points = points[:80], points[80:]
    network, rate = Network(chance), learning_rate(options)
    weights = HIDDEN * 4 + 1
    print(
        f"{BOLD}Training{RESET}: {len(points)} points, {weights} weights, learning rate {rate:.4g}, seed {options.seed}"
    )
    pretended = os.environ.get("BEAMTIME_PRETENDED_GPUS")
    devices = os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ.get("NVIDIA_VISIBLE_DEVICES") or "none"
    print(
        f"GPUs: {pretended} (pretended)" if pretended else f"GPUs: {devices}; this model is tiny and uses none",
        flush=True,
    )
    best, started = math.inf, time.monotonic()
    for number in range(1, options.epochs + 1):
        chance.shuffle(points)
        title = f"epoch {number:>{len(str(options.epochs))}}/{options.epochs}"
        loss = epoch(network, points, rate, options.seconds_per_epoch, title)
        colour = GREEN if loss < best else YELLOW
        best = min(best, loss)
        words = f"{title}  loss {colour}{loss:.4f}{RESET}  accuracy {100 * network.accuracy(held_out):.1f} %"
        # "erase to the end of the line" removes what the bar left behind.
        print(f"\r{words}\033[K", flush=True)
    took, accuracy = time.monotonic() - started, 100 * network.accuracy(held_out)
    print(f"{GREEN}{BOLD}Done{RESET} in {took:.1f} s: best loss {best:.4f}, accuracy {accuracy:.1f} %")


if __name__ == "__main__":
    main()
