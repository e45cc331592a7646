"""What nobody may read of what a store, or its client, says: credentials, wherever they stand in it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

HIDDEN = "***"

_NAMES = re.compile(r"(?i)key|secret|token|password|_sas")
_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# What S3 repeats of a request that it refuses; the canonical request has the token among its headers.
_ELEMENT = re.compile(
    r"<([\w-]*(?:Token|AccessKeyId|Sign|Canonical|Credential)[\w-]*)>.*?(</\1>|$)", re.DOTALL
)
_USER = re.compile(r"(https?://|://(?=[^/\s@]*:))[^/\s@'\"<>]*@")
_SIGNED = re.compile(
    r"(?i)\b(x-amz-(?:signature|credential|security-token)|signature|sig)(=)[^&\s'\"<>]+"
)


def hide(text: str, options: Mapping[str, str]) -> str:
    """Return a text without the credentials of a store's options, of the environment, and of requests.

    Examples
    --------
    >>> hide("<Token-0>abc</Token-0> is old, says http://me:S@h/x?sig=S", {})
    '<Token-0>***</Token-0> is old, says http://***@h/x?sig=***'
    >>> hide("no key me-and-you here", {"AWS_ACCESS_KEY_ID": "me-and-you"})
    'no key *** here'
    """
    text = _ELEMENT.sub(rf"<\1>{HIDDEN}\2", text)
    text = _SIGNED.sub(rf"\1\2{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))
    for value in sorted(_values(options), key=len, reverse=True):
        for form in (value, quote(value, safe="")):
            # A short one may be a part of a word.
            bound = r"\b" if len(form) < 8 and form.isalnum() else ""
            text = re.sub(f"{bound}{re.escape(form)}{bound}", HIDDEN, text)
    return text


def cleanse(error: BaseException, options: Mapping[str, str]) -> None:
    """Hide the credentials in an error, and in those that led to it: a traceback shows them all."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.args = tuple(hide(a, options) if isinstance(a, str) else a for a in each.args)
        if isinstance(each, OSError) and isinstance(each.strerror, str):
            each.strerror = hide(each.strerror, options)  # str() takes it from here
        todo += [each.__cause__, each.__context__]


def _values(options: Mapping[str, str]) -> set[str]:
    found = {value for name, value in options.items() if _NAMES.search(name)}
    found |= {os.environ.get(name, "") for name in _ENVIRONMENT}
    for value in options.values():
        if password := re.search("//[^/:@]*:(.*)@", value):  # of a proxy
            found |= {password[1], unquote(password[1])}
    return found - {""}
