"""What was created by whom, on disk before it is created: so that nothing is left whatever happens to a run.

One file a process, in the user's state folder, named after its owner, whole and locked before it has that name; one
JSON object a line, appended in one call to the kernel. It is gone once all that its process made is; else it is locked
until that process ends.

``{"can": NAME, "kind", "options", "labels"}``   how to make the provider again, without its secrets
``{"making": NAME, "n"}``                         about to create so many; written before
``{"made": NAME, "id", "details"}``               one of those, by its id
``{"over": NAME, "n"}``                           so many of those came to nothing, or are gone again
``{"gone": NAME, "id"}``                          one with a ``made`` line is destroyed

The rule of life: whose file is locked lives, wherever that is; whose file is not locked is dead. Where there are no
locks, the pid and its start time decide. Two exceptions are on the careful side: an owner on another host that holds
no lock cannot be judged (its locks may not reach here), and a process of exactly this pid and start time lives.
What the dead left is for :mod:`pytest_sandboxbench.reaping`.
"""

from __future__ import annotations

from ..owners import standing, this_process
from .reading import Book, Made, books, taken
from .writing import Ledger, folder_of_user

__all__ = ["Book", "Ledger", "Made", "books", "folder_of_user", "standing", "taken", "this_process"]
