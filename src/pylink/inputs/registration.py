"""Predicts which file registers each module at program start, and whose kernels are lost.

The code of a device link has a function `__cudaRegisterLinkedBinary<ID>` for each of its modules,
and a counter. Each module calls the function of its ID when its file is loaded. The image is
registered when the counter equals the number of its modules (crt/link.stub of the toolkit). The
function is an exported symbol: the loader takes the first definition in its search order, unless
the file was linked to bind its own. Hence an image

* is never registered if one of its modules calls the function of another image,
* is incomplete if a module calls twice: it is registered before another module has called,
* is not needed if all of its modules call elsewhere.

No error appears before the first launch. `find_losses` follows the calls of the files that a link
can see: its own output, then the shared libraries on its command line. A shared library may be
loaded after the libraries that it names, so for one both orders are checked.

The host linker takes a member of an archive only if it needs a symbol of it. Registration code
needs `__fatbinwrap<ID>`, so the member is taken unless a library in front of the archive exports
this symbol. Host linkers also omit a library that defines nothing new (--as-needed).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Library


class Module:
    """A module that the link takes from an object or, with `in_archive`, from an archive.

    `number` is the number of its source, `name` the file on the command line.
    """

    __slots__ = ("in_archive", "name", "number")

    def __init__(self, number: int, name: str, *, in_archive: bool) -> None:
        self.number = number
        self.name = name
        self.in_archive = in_archive


class Loss:
    """A module whose registration fails because of two files, in command-line order.

    `id` is the module. A file is a library, or None for the output of this link, which comes first.
    With `is_double`, both files call one image for the module. Otherwise the image of one file
    waits for a call that the image of the other file gets.
    """

    __slots__ = ("first", "id", "is_double", "second")

    def __init__(
        self, module: bytes, first: Library | None, second: Library | None, *, is_double: bool
    ) -> None:
        self.id = module
        self.first = first
        self.second = second
        self.is_double = is_double


class _File:
    """A file of the program.

    `calls` are the ids of the modules whose registration function it calls, and `answers` those
    whose function it defines. Calls for the ids in `self_answered` go to the file itself, in any
    load order. `rank` is its position among the files.
    """

    __slots__ = ("answers", "calls", "library", "rank", "self_answered")

    def __init__(
        self,
        rank: int,
        library: Library | None,
        calls: Iterable[bytes],
        answers: Iterable[bytes],
        self_answered: Iterable[bytes] = (),
    ) -> None:
        self.rank = rank
        self.library = library
        self.calls = set(calls)
        self.answers = set(answers)
        self.self_answered = set(self_answered)


def find_contained(static: dict[bytes, Module], libraries: Sequence[Library]) -> set[bytes]:
    """Return the ids of `static` whose host code the host linker will put into the output.

    `static` has the modules of objects and archives, by id.
    """
    return {
        wrapper
        for wrapper, module in static.items()
        if not module.in_archive
        or not any(
            wrapper in other.wrappers and other.sources_before <= module.number
            for other in libraries
        )
    }


def find_losses(
    static: dict[bytes, Module],
    chosen: Iterable[bytes],
    libraries: Sequence[Library],
    *,
    is_shared: bool,
    optional: Collection[bytes] = (),
) -> list[Loss]:
    """Find the losses of a program with this link's output, at most one for each pair of files.

    The link registers the modules of `static` (objects and archives), and those of libraries with
    the ids `chosen`. Libraries are in command-line order. `is_shared` is for an output that is a
    shared library; it registers the `optional` modules, by hidden functions, if it contains them.
    """
    registered = {*static, *chosen}
    contained = find_contained(static, libraries)
    hidden = contained.intersection(optional)
    output = _File(
        0, None, contained, registered.difference(optional), hidden if is_shared else registered
    )
    files: list[_File] = []
    for library in libraries:
        # The host linker omits some libraries. A program that loads this output, if it is a shared
        # library, may have loaded them before.
        if is_shared or not _is_omitted(library, static, contained):
            # A function that the library neither exports nor needs from others is hidden, so the
            # library's calls of it reach the library itself.
            self_answered = (library.contained | library.closed.keys()) - library.interposable
            self_answered -= library.open.keys()
            files.append(
                _File(len(files) + 1, library, library.contained, library.closed, self_answered)
            )
    # A message names one module, the first that is lost in this order.
    ids = list(static)
    for library in libraries:
        ids += [*library.open, *library.closed, *sorted(library.contained)]
    places = {identifier: place for place, identifier in reversed(list(enumerate(ids)))}
    losses: dict[tuple[int, int], Loss] = {}
    _follow_calls([output, *files], places, losses)
    if is_shared:
        _follow_calls([*files, output], places, losses)
    return [losses[pair] for pair in sorted(losses)]


def _is_omitted(library: Library, static: dict[bytes, Module], contained: set[bytes]) -> bool:
    """Return whether the host linker omits the library: earlier archives have all its modules."""
    return all(
        identifier in contained
        and static[identifier].in_archive
        and static[identifier].number < library.sources_before
        for identifier in {*library.open, *library.closed, *library.contained}
    )


def _follow_calls(
    order: Sequence[_File], places: dict[bytes, int], losses: dict[tuple[int, int], Loss]
) -> None:
    """Follow each call to the file that answers in this load order; add what is lost to `losses`.

    `places` gives each module's position in the order in which losses are found.
    """
    definers: dict[bytes, list[_File]] = {}
    callers_of: dict[bytes, list[_File]] = {}
    for file in order:
        for symbol in file.answers:
            definers.setdefault(symbol, []).append(file)
        for symbol in file.calls:
            callers_of.setdefault(symbol, []).append(file)
    # `reached` has, by rank of a file and by module, the files whose calls for the module come to
    # that file. `takers` has the file that gets the first call for each module.
    reached: dict[int, dict[bytes, list[_File]]] = {file.rank: {} for file in order}
    takers: dict[bytes, _File] = {}
    for symbol in definers.keys() | callers_of.keys():
        for caller in callers_of.get(symbol, ()):
            target = caller if symbol in caller.self_answered else definers.get(symbol, [None])[0]
            if target is not None:
                reached[target.rank].setdefault(symbol, []).append(caller)
                takers.setdefault(symbol, target)
        if symbol not in callers_of:
            # No file here calls for the module. A library that is not on the command line has it,
            # and its call reaches the first file that answers.
            takers[symbol] = definers[symbol][0]
            reached[takers[symbol].rank][symbol] = []
    for file in order:
        uncalled = file.answers - set(reached[file.rank])
        if uncalled != file.answers:
            for symbol in sorted(uncalled & takers.keys(), key=places.__getitem__):
                taker = takers[symbol]
                _add_loss(
                    losses, Loss(symbol, file.library, taker.library, is_double=False), file, taker
                )
        for symbol in sorted(reached[file.rank], key=places.__getitem__):
            callers = reached[file.rank][symbol]
            for other in callers[1:]:
                loss = Loss(symbol, callers[0].library, other.library, is_double=True)
                _add_loss(losses, loss, callers[0], other)


def _add_loss(losses: dict[tuple[int, int], Loss], loss: Loss, file: _File, other: _File) -> None:
    """Add a loss between two files, which have at most one.

    An earlier loss of these files stays, unless it is double and this one is not.
    """
    pair = (min(file.rank, other.rank), max(file.rank, other.rank))
    if file.rank > other.rank:
        loss.first, loss.second = loss.second, loss.first
    if pair not in losses or (losses[pair].is_double and not loss.is_double):
        losses[pair] = loss


def report_losses(
    losses: Sequence[Loss],
    static: dict[bytes, Module],
    libraries: Sequence[Library],
    sink: Sink,
    *,
    is_shared: bool,
) -> None:
    """Warn of each module whose registration fails; the kind of diagnostic names the remedy.

    `static` has the modules of objects and archives, by id.
    """
    contained = find_contained(static, libraries)
    for loss in losses:
        library = loss.second
        assert library is not None  # the output can only be the first file
        other = loss.first.file if loss.first is not None else static[loss.id].name
        file, module = library.file, os.fsdecode(loss.id)
        if loss.first is not None and loss.id in loss.first.closed.keys() & library.closed.keys():
            sink.report("library-twice", file=file, other=other, id=module)
        elif loss.is_double:
            sink.report("library-twin", file=file, other=other)
        elif is_shared:
            sink.report("library-local", file=file, other=other, id=module)
        elif loss.id not in library.contained:
            sink.report("library-unneeded", file=file, other=other, id=module)
        elif loss.id not in library.interposable:
            sink.report("library-archive", file=file, other=other, id=module)
        elif contained.issuperset(library.closed.keys() & static.keys()):
            sink.report("library-symbolic", file=file, id=module)
        else:
            sink.report("library-part", file=file, id=module)
