"""Time, and what comes in it, for what runs on a clock."""

import threading


class Script:
    """A clock, and a source to which lines come at given times; what waits from before is there at the start."""

    def __init__(self, start, arrivals, interrupt=None):
        self._now, self._arrivals, self._interrupt = start, sorted(arrivals, key=lambda x: x[0]), interrupt
        self._changed, self._lines, self._idle, self._over = threading.Condition(), [], False, False
        self._reader = None
        with self._changed:
            self._deliver(start)

    def _deliver(self, moment):
        while self._arrivals and self._arrivals[0][0] <= moment:
            self._lines.append(self._arrivals.pop(0)[1])
        self._changed.notify_all()

    def read(self, size):
        self._reader = threading.current_thread()
        with self._changed:
            self._idle = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._lines or self._over)
            self._idle = False
            return self._lines.pop(0) if self._lines else b""

    def end(self):
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def now(self):
        return self._now

    def sleep_until(self, moment):
        if self._interrupt is not None and moment >= self._interrupt:
            raise KeyboardInterrupt
        with self._changed:
            self._deliver(moment)
            while not self._settled():
                self._changed.wait(0.005)
        self._now = moment

    def _settled(self):
        """Whether the reader has done with all that came, and asks for more or has ended."""
        if self._reader is None:
            return False
        return not self._reader.is_alive() or (self._idle and not self._lines)
