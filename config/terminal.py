# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts show people: how far long work has come and how much time is left, and tables of text."""
import contextlib
import sys
import threading
import time

LOG_SECONDS = 30  # between lines where they stay, as in the log of a CI job; on a terminal one line is written again each second


def clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}" if minutes >= 60 else f"{minutes}:{seconds:02d}"


class Progress:
    """A line on stderr about the work inside a with statement: TITLE: 3 of 10 files, 1:20, about 3:06 left; DETAIL.

    The time left comes from what is done, attributes done and total or done_of(), which gives the two. Without them it
    comes from usual, the seconds that the same work took where it was measured, and is left out once they have passed.
    """

    def __init__(self, title, unit="", total=0, done_of=None, usual=0):
        self.title, self.unit, self.done, self.total, self.done_of, self.usual, self.detail = title, unit, 0, total, done_of, usual, ""
        self.stream, self.start, self.lock, self.ended = sys.stderr, time.monotonic(), threading.RLock(), threading.Event()
        self.terminal = self.stream.isatty()

    def text(self):
        if self.done_of:
            with contextlib.suppress(OSError):
                self.done, self.total = self.done_of()
        seconds = time.monotonic() - self.start
        left = seconds * (self.total - self.done) / self.done if 0 < self.done < self.total else self.usual - seconds if not self.done else 0
        return (f"gallop: {self.title}: " + (f"{self.done} of {self.total} {self.unit}, " if self.total and self.unit else "") + clock(seconds)
                + (f", about {clock(left)} left" if left >= 1 else "") + (f"; {self.detail}" if self.detail else ""))

    def say(self, text, file=None):
        """Print lines that stay, to stdout unless file is given."""
        with self.lock:
            self.clear()
            print(text, file=sys.stdout if file is None else file, flush=True)
            if self.terminal and not self.ended.is_set():
                self.draw()

    def draw(self):
        print(f"\r\033[K{self.text()}" if self.terminal else self.text(), end="" if self.terminal else "\n", file=self.stream, flush=True)

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", file=self.stream, flush=True)

    def watch(self):
        while not self.ended.wait(1 if self.terminal else LOG_SECONDS):
            with self.lock:
                self.draw()

    def __enter__(self):
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.watcher.join()
        self.clear()


def table(rows, left=1):
    """The lines of a table of text whose first row is its head; so many columns are set to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]

    def line(row):
        return "  ".join(cell.ljust(width) if place < left else cell.rjust(width) for place, (cell, width) in enumerate(zip(row, widths))).rstrip()

    return [line(rows[0]), "  ".join("-" * width for width in widths)] + [line(row) for row in rows[1:]]
