"""The exceptions of neardup.

::

    NeardupError
    ├── SettingError      a parameter is outside its range, or two parameters conflict
    ├── InputError        an input is missing, unreadable or of another format
    │   ├── ColumnError   a column is missing or has the wrong type
    │   └── UnknownImportError   no import of an index is open under a name
    ├── OutputError       the output exists, cannot be written, or is inside the input
    ├── ResumeError       the scratch files do not belong to this run
    ├── SchemeError       fingerprints of different schemes are compared
    ├── StoreError        the store of an index is in use, damaged, full or cannot be reached
    ├── ClusterError      Spark cannot start, or a run failed on its cluster
    └── MissingExtraError an optional package is not installed

    UserWarning
    └── IncompleteWarning some files could not be read completely; the result contains the rest

The command line prints each as one line and returns exit code 2. Every message names the problem,
the received value, the accepted values, the location, and the next step. A parameter is followed by
its option in brackets, as in "pass overwrite=True (--overwrite)": Python shows the parameter only,
the command line the option only.
"""

import re


class NeardupError(Exception):
    """Base of all errors of neardup."""

    def __str__(self) -> str:
        """Return the message without the options of the command line."""
        return (
            re.sub(r" \(--[^()]*\)|(?<=\(\w)(\w*), --[^()]*", r"\1", self.args[0])
            if self.args
            else ""
        )


class SettingError(NeardupError, ValueError):
    """A parameter is outside its range, or two parameters conflict."""


class InputError(NeardupError, ValueError):
    """An input is missing, cannot be read, or has another format than declared."""


class ColumnError(InputError):
    """A column is missing, ambiguous, or has the wrong type."""


class UnknownImportError(InputError):
    """No import of an index is open under a name."""


class OutputError(NeardupError, OSError):
    """The output already exists, cannot be written, or is inside the input."""


class ResumeError(NeardupError):
    """The scratch files of an interrupted run do not belong to the requested run."""


class SchemeError(NeardupError, ValueError):
    """Fingerprints of different schemes were compared."""


class StoreError(NeardupError, OSError):
    """The store of an index is in use, damaged, full, of another version, or cannot be reached."""


class ClusterError(NeardupError, RuntimeError):
    """Spark cannot start: no Java, no cluster, no neardup on its workers; or a run failed there."""


class MissingExtraError(NeardupError, ImportError):
    """A required optional package is not installed."""


class IncompleteWarning(UserWarning):
    """Some files could not be read completely; the result contains the documents that could be
    read.
    """
