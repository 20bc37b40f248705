"""The signals of a server: which of them end it, and which it passes to its command."""

from __future__ import annotations

import os
import signal

# Signals that end a server, or that it passes to its command.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# Bytes of sigset_t, bytes of struct signalfd_siginfo, and the value SI_KERNEL of its ssi_code,
# which marks signals from a terminal.
SIGNAL_SET_SIZE, SIGNAL_INFO_SIZE, BY_KERNEL = 128, 128, 0x80


class Signals:
    """Collects in `numbers` the signals sent to this process, for it or for its command."""

    def __init__(self, *, with_command: bool) -> None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        self.numbers: list[int] = []
        self._handled_signals = [
            number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN
        ]
        for number in self._handled_signals:
            signal.signal(number, lambda number, _: self.numbers.append(number))
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._interrupts = None
        self.sources = [reader]  # descriptors that become readable at a signal
        if with_command and signal.SIGINT in self._handled_signals:
            self._interrupts = Interrupts()
            self.sources.append(self._interrupts.descriptor)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self, command: list[str], environment: dict[str, str]) -> int:
        """Start the command, return its process number; OSError if that fails.

        The command ignores and blocks the signals that this process ignored and blocked at first.
        """
        # Signals that nohup or a shell ignored stay ignored. SIGPIPE and SIGXFSZ do not: this
        # interpreter itself ignores them.
        defaults = [*self._handled_signals, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawnp(
            command[0], command, environment, setsigdef=defaults, setsigmask=self._mask
        )

    def collect(self, source: int) -> None:
        """Collect the signals of one of `sources`, which is readable."""
        if self._interrupts is not None and source == self._interrupts.descriptor:
            self.numbers += [signal.SIGINT] * self._interrupts.count()
        else:
            os.read(source, 4096)


class Interrupts:
    """Interrupts that only this process gets, not its command.

    An interrupt from a terminal reaches both. Python's signal handlers do not learn the sender, so
    interrupts are blocked and read from a descriptor.
    """

    def __init__(self) -> None:
        """Block interrupts from now on; OSError if the system lacks signal descriptors."""
        import ctypes  # not in the processes of links without a command

        library = ctypes.CDLL(None, use_errno=True)
        mask = ctypes.create_string_buffer(SIGNAL_SET_SIZE)
        library.sigemptyset(mask)
        library.sigaddset(mask, signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        self.descriptor: int = library.signalfd(-1, mask, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def count(self) -> int:
        """Return the number of interrupts since the last call, without those from a terminal."""
        try:
            data = os.read(self.descriptor, 16 * SIGNAL_INFO_SIZE)
        except BlockingIOError:
            return 0
        # ssi_code of struct signalfd_siginfo.
        codes = [data[start + 8 : start + 12] for start in range(0, len(data), SIGNAL_INFO_SIZE)]
        return sum(int.from_bytes(code, "little") != BY_KERNEL for code in codes)
