"""Every failure the product knows.

PrivateGptError
├── InvalidRequest                 the caller must change the request
│   ├── UnsupportedParameter
│   ├── ContextLengthExceeded
│   └── UnreadableFile             the upload cannot become documents
│       ├── EmptyFile              no bytes, or no letter, digit or picture
│       ├── NoTextFound            a scan: OCR is needed
│       ├── EncryptedFile          a password is needed
│       ├── CorruptFile            damaged or not what it says
│       └── FileExceedsBounds      parsing it would take too much memory or time
├── UnsupportedFileType
├── PayloadTooLarge
├── NotAuthenticated
├── PermissionDenied
├── NotFound
│   └── ModelNotFound
├── Conflict
├── TooManyRequests
│   └── QuotaExceeded              waiting does not help
├── Unavailable                    a part we depend on; the caller may retry
│   ├── EngineUnavailable          refused, crashed or not there
│   ├── EngineFailed               answered, but with a failure
│   └── EngineTimedOut
└── StartRefused                   the process must not start like this
    ├── FolderInUse
    ├── EmbeddingModelChanged
    └── InvalidSettings

`param` names the request field at fault, where there is one. Statuses are in `api/errors.py`.
"""

from __future__ import annotations


class PrivateGptError(Exception):
    """The root; `message` is written for the person who reads it, without paths or secrets."""

    def __init__(
        self, message: str, /, *, param: str | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s


class InvalidRequest(PrivateGptError):
    """The request makes no sense as it is."""


class UnsupportedParameter(InvalidRequest):
    """The request asks for something that this server or its engine cannot do."""


class ContextLengthExceeded(InvalidRequest):
    """The question alone does not fit the model's window."""


class UnreadableFile(InvalidRequest):
    """The upload cannot be turned into documents."""


class EmptyFile(UnreadableFile):
    """The file has no content at all."""


class NoTextFound(UnreadableFile):
    """The file is readable but has no text, as a scan has none."""


class EncryptedFile(UnreadableFile):
    """The file needs a password."""


class CorruptFile(UnreadableFile):
    """The file is damaged, cut short, or not of the type it claims."""


class FileExceedsBounds(UnreadableFile):
    """Reading the file would take more memory or time than is allowed."""


class UnsupportedFileType(PrivateGptError):
    """There is no parser for this kind of file."""


class PayloadTooLarge(PrivateGptError):
    """The request is larger than this server accepts."""


class NotAuthenticated(PrivateGptError):
    """No key, or one that is not known."""


class PermissionDenied(PrivateGptError):
    """The key does not carry the right to do this."""


class NotFound(PrivateGptError):
    """There is nothing of that name or id for this caller."""


class ModelNotFound(NotFound):
    """No such model id."""


class Conflict(PrivateGptError):
    """The request contradicts the present state."""


class TooManyRequests(PrivateGptError):
    """A limit is reached; `retry_after_s` says when to come back."""


class QuotaExceeded(TooManyRequests):
    """What the tenant may have is used up; only giving something back makes room."""


class Unavailable(PrivateGptError):
    """A part that this server depends on does not serve."""


class EngineUnavailable(Unavailable):
    """The engine cannot be reached, or died in the middle."""


class EngineFailed(Unavailable):
    """The engine answered with a failure or with nonsense."""


class EngineTimedOut(Unavailable):
    """The engine did not answer in time."""


class StartRefused(PrivateGptError):
    """The process must not start in this state."""


class FolderInUse(StartRefused):
    """Another process holds the data folder."""


class EmbeddingModelChanged(StartRefused):
    """The index was made by another embedding model than the one configured."""


class InvalidSettings(StartRefused):
    """The operator's settings cannot be used."""
