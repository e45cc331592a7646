"""The configuration of a job: a YAML file that says what a command line says.

Keys are the long names of the options, ``sources`` are the arguments. The file is put into the words of a
command line and read by the same parser, so that both mean the same, and mistakes are told alike.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError, did_you_mean

_SCALARS = (str, int, float)
_MOST_VALUES = 100_000
_HIDDEN = "--storage-option"
"""An option whose values are in no message."""


class _Once(argparse._StoreAction):
    """An option with one value; a second one is a mistake, of which argparse would keep the last."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if hasattr(namespace, self.dest):
            parser.error(f"argument {option_string} is given twice; it takes one value")
        super().__call__(parser, namespace, values, option_string)


_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.]*=")
_NO_NUMBER = re.compile(r"argument (\S+): invalid (int|float) value: (.*)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one line, and whose namespace has only what was given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation that is clear today is not when another option is added.
        kwargs |= {"argument_default": argparse.SUPPRESS, "allow_abbrev": False}
        super().__init__(*args, **kwargs)
        self.register("action", None, _Once)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """Return what a command line says; of words that nobody knows the error has the names alone."""
        found, left = self.parse_known_args(args, namespace)
        table = getattr(found, "uri", None)
        if table is not None and _ASSIGNMENT.match(table):  # the word after an option is missing
            left.append(table)
        if left:
            # What follows a name may be a secret, and so may be the word after an option.
            names = [word.partition("=")[0] for word in left]
            names = [name for name in names if name.startswith("-")] or names
            known = [o for a in self._actions for o in a.option_strings if o.startswith("--")]
            self.error(f"unrecognized arguments: {' '.join(names)}{did_you_mean(names[0], known)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise InvalidOptionError instead of printing the usage and ending the process."""
        message = re.sub("(?s)(ignored explicit argument) .*", r"\1", message)
        message = _NO_NUMBER.sub(
            lambda m: f"{m[1]}={m[3]} is not a {'whole ' if m[2] == 'int' else ''}number", message
        )
        raise InvalidOptionError(f"{message}; --help lists all options")


def parse(
    parser: Parser, arguments: Sequence[str] | None, defaults: Mapping[str, Any]
) -> argparse.Namespace:
    """Return what a command line and the file of its ``--config`` say; the command line wins.

    Parameters
    ----------
    parser : Parser
        Of the command line, with an option ``--config``; arguments, if any, are ``sources``.
    arguments : sequence of str, or None
        The command line; None for that of the process.
    defaults : mapping
        What holds where neither says something.

    Raises
    ------
    InvalidOptionError
        If one of them makes no sense; names the file and the key.
    """
    given = vars(parser.parse_args(arguments))
    written: dict[str, Any] = {}
    if "config" in given:
        written = read_config(parser, given["config"])
        for names in _exclusive(parser):
            if names & given.keys():
                written = {k: v for k, v in written.items() if k not in names}
    return argparse.Namespace(**{**defaults, **written, **given})


def read_config(parser: Parser, path: str) -> dict[str, Any]:
    """Return what a file says, under the names that the parser gives its options."""
    has_sources = any(action.dest == "sources" for action in parser._actions)
    actions = {
        name[2:]: action
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and name not in ("--help", "--config", "--debug")
    }
    words: list[str] = []
    sources: list[str] = []
    found, written = _load(path)
    for (key, value), text in zip(found.items(), written, strict=True):
        place = f"{path}: {key}"
        if not _is_json(actions.get(key), value):
            value = _as_written(value, text)
        if key == "sources" and has_sources:
            sources = _texts(value, place)
        elif key not in actions:
            known = (*actions, "sources") if has_sources else tuple(actions)
            also = ", and sources" if has_sources else ""
            name = key.partition("=")[0] if isinstance(key, str) else key
            raise InvalidOptionError(
                f"{path}: unknown key {name!r}{did_you_mean(str(key), known)}; keys are the long options of the "
                f"command line without --{also}"
            )
        else:
            words += _words(f"--{key}", actions[key], value, place)
    try:
        # After "--" a source may begin with a hyphen, as on the command line.
        return vars(parser.parse_args([*words, "--", *sources] if sources else words))
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{path}: {error}") from None


def _exclusive(parser: Parser) -> Iterator[set[str]]:
    """Yield the names of options of which a command line may have one."""
    for group in parser._mutually_exclusive_groups:
        yield {action.dest for action in group._group_actions}


def _is_json(action: argparse.Action | None, value: Any) -> bool:
    """Whether a value is one of JSON, in which numbers are numbers."""
    return isinstance(value, Mapping) and not isinstance(action, argparse._AppendAction)


def _as_written(found: Any, text: Any) -> Any:
    """Return what YAML takes for numbers as the text that stands there.

    A command line has no numbers: 1.10 is an id that ends with a zero, and 0123 no octal number.
    """
    if isinstance(found, Mapping) and isinstance(text, Mapping) and len(found) == len(text):
        pairs = zip(found.items(), text.values(), strict=True)
        return {key: _as_written(value, written) for (key, value), written in pairs}
    if isinstance(found, list) and isinstance(text, list):
        return [_as_written(*pair) for pair in zip(found, text, strict=True)]
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return text if is_number else found


def _words(name: str, action: argparse.Action, value: Any, place: str) -> list[str]:
    """Return an option as a command line has it."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise InvalidOptionError(f"{place} is {value!r}; it is an option that is true or false")
        return [name] if value else []
    if isinstance(action, argparse._AppendAction):
        shown = name != _HIDDEN
        if isinstance(value, Mapping):
            names = value.items()
            return [f"{name}={_text(k, place, shown)}={_text(v, place, shown)}" for k, v in names]
        return [f"{name}={text}" for text in _texts(value, place, shown)]
    if _is_json(action, value):
        try:
            return [f"{name}={json.dumps(value)}"]
        except (TypeError, ValueError) as error:
            raise InvalidOptionError(f"{place} cannot be made JSON: {error}") from None
    if isinstance(value, list):
        return [f"{name}={','.join(_texts(value, place))}"]
    return [f"{name}={_text(value, place)}"]


def _texts(value: Any, place: str, shown: bool = True) -> list[str]:
    """Return the values of an option, as they stand on a command line."""
    if isinstance(value, list) and not value:
        # On a command line there is no such thing. Without ids a job works on all tensors.
        raise InvalidOptionError(
            f"{place} is an empty list; give a value, or leave the key out for the default"
        )
    return [_text(v, place, shown) for v in (value if isinstance(value, list) else [value])]


def _text(value: Any, place: str, shown: bool = True) -> str:
    """Return a value as it stands on a command line; an error repeats it only if it may be shown."""
    if isinstance(value, bool) or not isinstance(value, _SCALARS):
        kind = type(value).__name__
        if not shown:
            raise InvalidOptionError(
                f"{place} has what YAML takes as {kind}; write lines such as NAME: 'text' below it"
            )
        said = "empty" if value is None else f"{value!r}, which YAML takes as {kind}"
        raise InvalidOptionError(f"{place} is {said}; put it into quotes to have it as text")
    return str(value)


def _load(path: str) -> tuple[dict[str, Any], list[Any]]:
    """Return what a file says as YAML takes it, and its values with every scalar as it is written."""
    try:
        import yaml
    except ImportError as error:
        raise MissingDependencyError(
            "--config needs PyYAML: pip install 'tensorlake-spark[spark]'"
        ) from error
    try:
        text = Path(path).read_text("utf-8")
        node = yaml.compose(text, yaml.SafeLoader)
        _check_aliases(path, node)
        repeated = _repeated(node)
        found = yaml.safe_load(text)
        written = yaml.load(text, _as_texts(yaml))  # nosec B506 # strings, lists and mappings alone
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidOptionError(f"--config {path} cannot be read: {said}") from None
    except RecursionError:
        raise InvalidOptionError(f"{path} is not a configuration: it goes too deep") from None
    except InvalidOptionError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise InvalidOptionError(f"{path} is not YAML: {_problem(error)}") from None
    if repeated is not None:
        name = repeated[0].partition("=")[0]
        raise InvalidOptionError(f"{path}, line {repeated[1]}: {name} is given twice")
    if not isinstance(found, dict):
        raise InvalidOptionError(
            f"{path} holds no options; it should have lines such as 'table: /data/lake'"
        )
    if len(found) != len(written):  # 1 and 01 are one key
        raise InvalidOptionError(f"{path} has keys that are numbers; keys are names of options")
    return found, [*written.values()]


def _as_texts(yaml: Any) -> Any:
    """Return a loader that takes every scalar as it is written, and else does as YAML's safe one.

    Its mappings have the same keys in the same order, also where ``<<`` takes some from an anchor.
    """

    class Texts(yaml.SafeLoader):  # type: ignore[misc]
        yaml_constructors = MappingProxyType(
            {
                "tag:yaml.org,2002:map": yaml.SafeLoader.construct_yaml_map,
                "tag:yaml.org,2002:seq": yaml.SafeLoader.construct_yaml_seq,
                None: yaml.SafeLoader.construct_scalar,
            }
        )

    return Texts


def _problem(error: Exception) -> str:
    """Return where YAML stumbled and why, and nothing that stands there: it may be a secret."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    said = getattr(error, "problem", None) or getattr(error, "reason", None)
    # These are what the text is taken for where it begins with *, & or !.
    why = re.sub(
        r"\b(alias|anchor|tag)\b.*", r"\1", str(said or "a value is not what it seems to be")
    )
    return where + " ".join(why.split())


def _check_aliases(path: str, node: Any) -> None:
    if _expanded(node, {}) > _MOST_VALUES:
        raise InvalidOptionError(
            f"{path} is not a configuration: it has more than {_MOST_VALUES} values, or its aliases stand for as many; "
            "sources may stand in a file that sources-from names"
        )


def _expanded(node: Any, known: dict[int, int]) -> int:
    """Return how many values a node has where each alias is written out; a few lines can have millions."""
    if id(node) not in known:
        known[id(node)] = 1  # also where it is a part of itself
        parts = () if isinstance(getattr(node, "value", None), str) or node is None else node.value
        flat = (one for part in parts for one in (part if isinstance(part, tuple) else (part,)))
        known[id(node)] = 1 + sum(_expanded(one, known) for one in flat)
    return known[id(node)]


def _repeated(node: Any) -> tuple[str, int] | None:
    """Return a key that is there twice and the line of the second one; YAML would take the last."""
    if type(node).__name__ == "SequenceNode":
        return next(filter(None, map(_repeated, node.value)), None)
    if type(node).__name__ != "MappingNode":
        return None
    seen = set()
    for key, value in node.value:
        if key.value in seen:
            return str(key.value), key.start_mark.line + 1
        if type(key).__name__ == "ScalarNode":
            seen.add(key.value)
        inner = _repeated(value)
        if inner is not None:
            return inner
    return None
