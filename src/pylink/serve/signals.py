"""The signals of a server: which end it, and which its command has to hear of."""

from __future__ import annotations

import os
import signal

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# Bytes of sigset_t, of struct signalfd_siginfo, and SI_KERNEL.
SIGNALS, SIGNAL_INFO, BY_KERNEL = 128, 128, 0x80


class Signals:
    """The signals that this process is sent, of which `taken` are for it or its command."""

    def __init__(self, *, with_command: bool) -> None:
        wake, waken = os.pipe()
        os.set_blocking(waken, False)
        signal.set_wakeup_fd(waken)
        self.numbers: list[int] = []
        self._heard = [number for number in STOPS if signal.getsignal(number) != signal.SIG_IGN]
        for number in self._heard:
            signal.signal(number, lambda number, _: self.numbers.append(number))
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._interrupts = None
        self.sources = [wake]  # what can be read when there are some
        if with_command and signal.SIGINT in self._heard:
            self._interrupts = Interrupts()
            self.sources.append(self._interrupts.descriptor)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self, command: list[str], environment: dict[str, str]) -> int:
        """Start the command with the signals that this process was started with; OSError."""
        # What nohup or a shell has ignored stays so; the interpreter ignores two more.
        defaults = [*self._heard, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawnp(
            command[0], command, environment, setsigdef=defaults, setsigmask=self._mask
        )

    def take(self, source: int) -> None:
        """Take those that one of `sources` has."""
        if self._interrupts is not None and source == self._interrupts.descriptor:
            self.numbers += [signal.SIGINT] * self._interrupts.take()
        else:
            os.read(source, 4096)


class Interrupts:
    """The interrupts of this process that its command does not get by itself.

    That of a terminal comes to both. Handlers of the interpreter do not learn the sender, so
    interrupts are blocked and read from a descriptor.
    """

    def __init__(self) -> None:
        """Block interrupts from now on; OSError where the system has no such descriptor."""
        import ctypes  # not in the processes of links without a command

        library = ctypes.CDLL(None, use_errno=True)
        mask = ctypes.create_string_buffer(SIGNALS)
        library.sigemptyset(mask)
        library.sigaddset(mask, signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        self.descriptor: int = library.signalfd(-1, mask, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def take(self) -> int:
        """How many came since, without those of a terminal."""
        try:
            data = os.read(self.descriptor, 16 * SIGNAL_INFO)
        except BlockingIOError:
            return 0
        # ssi_code of struct signalfd_siginfo.
        codes = [data[at + 8 : at + 12] for at in range(0, len(data), SIGNAL_INFO)]
        return sum(int.from_bytes(code, "little") != BY_KERNEL for code in codes)
