"""The exceptions that neardup raises on purpose.

::

    NeardupError
    ├── SettingError      a parameter is out of its limits, or two of them contradict
    ├── InputError        an input is missing, unreadable or not what was said
    │   └── ColumnError   a column is missing or has the wrong type
    ├── OutputError       the output exists, cannot be written, or lies in the input
    ├── ResumeError       the scratch files do not belong to this run
    ├── SchemeError       fingerprints of two schemes meet
    └── MissingExtraError an optional package is not installed

    UserWarning
    └── IncompleteWarning some files could not be read to their end; what could be read is in the result

The command line turns any of them into one line and exit code 2. Every message says what was wrong, the value
received, what is accepted, where, and what to do next.
"""

from __future__ import annotations


class NeardupError(Exception):
    """Base of every error that neardup raises on purpose."""


class SettingError(NeardupError, ValueError):
    """A parameter is out of its limits, or two parameters contradict each other."""


class InputError(NeardupError, ValueError):
    """An input is missing, cannot be read, or is not what it was said to be."""


class ColumnError(InputError):
    """A column is missing, ambiguous, or has the wrong type."""


class OutputError(NeardupError, OSError):
    """The output already exists, cannot be written, or is inside the input."""


class ResumeError(NeardupError):
    """The scratch files of an interrupted run do not belong to the run asked for."""


class SchemeError(NeardupError, ValueError):
    """Fingerprints made by two different schemes were to be compared."""


class MissingExtraError(NeardupError, ImportError):
    """An optional package is needed and not installed."""


class IncompleteWarning(UserWarning):
    """Some files could not be read to their end; the result holds what could be read."""
