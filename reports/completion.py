"""Scripts that complete commands, options and names in bash and zsh, written from the parser itself; no Python runs at a press of TAB."""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

QUESTIONS = ("solve", "validate", "evaluate", "explain", "compare", "export")
"""Commands whose files may be questions that come along, by their names."""
SHELLS = ("bash", "zsh")


@dataclass(frozen=True, slots=True)
class Word:
    """What may stand at a place of the command line: names that are known, files, or something that nobody can guess."""

    names: tuple[str, ...]
    files: bool
    meaning: str
    """One word or two on what it is, for zsh."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option by all its names; it takes no value where there is no word."""

    names: tuple[str, ...]
    about: str
    word: Word | None
    again: bool
    """Whether it may be given several times."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and what may follow it; the last place stands for all that follow where `more` do."""

    name: str
    about: str
    options: tuple[Option, ...]
    places: tuple[Word, ...]
    more: bool


def completion_script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script of one of the SHELLS for this parser."""
    commands = commands_of(parser)
    top = tuple(_option(action, {}) for action in _optional(parser))
    return _bash(commands, top) if shell == "bash" else _zsh(commands, top)


def commands_of(parser: argparse.ArgumentParser) -> tuple[Command, ...]:
    """The commands of a parser, each with its options and places."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    about = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    known = _known_names()
    return tuple(_command(name, about[name], each, known) for name, each in commands.choices.items())


def _command(name: str, about: str, parser: argparse.ArgumentParser, known: dict[str, tuple[str, ...]]) -> Command:
    here = known if name in QUESTIONS else {**known, "file": (), "files": ()}
    places = [action for action in parser._actions if not action.option_strings]
    options = tuple(_option(action, here) for action in _optional(parser))
    return Command(name, about, options, tuple(_word(action, here) for action in places), any(action.nargs == "+" for action in places))


def _known_names() -> dict[str, tuple[str, ...]]:
    """Names that come along, by the argument that takes them; as they are when the script is written."""
    from crossopt.instances.catalogue.registry import names, shipped  # noqa: PLC0415 - help shall not wait for numpy
    from crossopt.solvers.codesign.family import ALIASES, ENGINES  # noqa: PLC0415
    from crossopt.solvers.grading.table import ASSIGNMENTS  # noqa: PLC0415

    questions, devices = tuple(shipped()), names("hardware")
    return {
        "file": questions,
        "files": questions,
        "gpu": devices,
        "show": (*devices, *names("technologies"), *names("workloads"), *questions),
        "engine": (*ENGINES, *ALIASES),
        "assignment": tuple(one.name for one in ASSIGNMENTS),
    }


def _optional(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in parser._actions if action.option_strings and action.help != argparse.SUPPRESS)


def _option(action: argparse.Action, known: dict[str, tuple[str, ...]]) -> Option:
    word = None if action.nargs == 0 else _word(action, known)
    return Option(tuple(action.option_strings), _first_words(action.help or ""), word, isinstance(action, argparse._AppendAction))


def _word(action: argparse.Action, known: dict[str, tuple[str, ...]]) -> Word:
    names = tuple(str(choice) for choice in action.choices) if action.choices is not None else known.get(action.dest, ())
    return Word(names, action.type is Path, str(action.metavar or action.dest).lower())


def _first_words(text: str) -> str:
    """What a help says first, which fits on a line of a menu."""
    text = text.replace("%%", "%").replace("`", "")
    first = re.split(r"[;:(]|, (?=such|for example)", text)[0].strip()
    return first if " " in first else text.partition(";")[0]


# --- bash ----------------------------------------------------------------------------------------------------------------------------

_BASH = r"""# completion of crossopt for bash: put `source <(crossopt completion bash)` into ~/.bashrc
_crossopt_names() { local IFS=$' \t\n'; COMPREPLY+=($(compgen -W "$1" -- "$2")); }
_crossopt_files() { local IFS=$'\n'; COMPREPLY+=($(compgen -f -- "$1")); compopt -o filenames 2>/dev/null; }

_crossopt() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} first=2 command=${COMP_WORDS[1]} place=0 options valued at
    COMPREPLY=()
    case ${COMP_WORDS[0]##*/} in solve) command=solve first=1 ;; esac
    if ((COMP_CWORD < first)); then
        _crossopt_names "@TOP@" "$word"
        return
    fi
    # the shell takes --option=value apart
    if [[ $word == = ]]; then word=''; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    case $command in
@COMMANDS@
        *) return ;;
    esac
    case "$command $before" in
@VALUES@
        *) [[ -n $before && " $valued " == *" $before "* ]] && return ;;
    esac
    if [[ $word == -* ]]; then
        _crossopt_names "$options" "$word"
        return
    fi
    for ((at = first; at < COMP_CWORD; at++)); do
        if [[ " $valued " == *" ${COMP_WORDS[at]} "* ]]; then
            ((at++))
            [[ ${COMP_WORDS[at]} == = ]] && ((at++))
        elif [[ ${COMP_WORDS[at]} != -?* ]]; then
            ((place++))
        fi
    done
    case "$command $place" in
@PLACES@
    esac
}
complete -F _crossopt crossopt solve
"""


def _bash(commands: Sequence[Command], top: Sequence[Option]) -> str:
    words = [*(command.name for command in commands), *(name for option in top for name in option.names)]
    parts = {
        "@TOP@": " ".join(words),
        "@COMMANDS@": "\n".join(_bash_options(one) for one in commands),
        "@VALUES@": "\n".join(line for one in commands for line in _bash_values(one)),
        "@PLACES@": "\n".join(line for one in commands for line in _bash_places(one)),
    }
    text = _BASH
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _bash_options(command: Command) -> str:
    every = " ".join(name for option in command.options for name in option.names)
    valued = " ".join(name for option in command.options if option.word is not None for name in option.names)
    return f"        {command.name}) options='{every}' valued='{valued}' ;;"


def _bash_values(command: Command) -> Iterator[str]:
    for option in command.options:
        if option.word is not None and (option.word.names or option.word.files):
            pattern = " | ".join(f'"{command.name} {name}"' for name in option.names)
            yield f"        {pattern}) {_bash_word(option.word)}return ;;"


def _bash_places(command: Command) -> Iterator[str]:
    for number, word in enumerate(command.places):
        last = command.more and number == len(command.places) - 1
        pattern = f'"{command.name} "*' if last else f'"{command.name} {number}"'
        yield f"        {pattern}) {_bash_word(word)};;"


def _bash_word(word: Word) -> str:
    names = f"_crossopt_names '{' '.join(word.names)}' \"$word\"; " if word.names else ""
    return names + ('_crossopt_files "$word"; ' if word.files else "")


# --- zsh -----------------------------------------------------------------------------------------------------------------------------

_ZSH = r"""#compdef crossopt solve
# completion of crossopt for zsh: put `source <(crossopt completion zsh)` into ~/.zshrc, behind compinit
_crossopt_either() { compadd -- "$@"; _files; }
@COMMANDS@
_crossopt() {
    if [[ ${words[1]:t} == solve ]]; then
        _crossopt_solve
        return
    fi
    local state line
    _arguments -C @TOP@ '1:command:->command' '*::argument:->argument'
    case $state in
        command)
            local -a known=(
@NAMES@
            )
            _describe command known ;;
        argument)
            (($+functions[_crossopt_$words[1]])) && _crossopt_$words[1] ;;
    esac
}
if [[ $funcstack[1] == _crossopt ]]; then _crossopt "$@"; else compdef _crossopt crossopt solve; fi
"""


def _zsh(commands: Sequence[Command], top: Sequence[Option]) -> str:
    parts = {
        "@TOP@": " ".join(_zsh_option(option) for option in top),
        "@NAMES@": "\n".join(f"                {_quoted(f'{one.name}:{one.about}')}" for one in commands),
        "@COMMANDS@": "\n".join(_zsh_command(one) for one in commands),
    }
    text = _ZSH
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _zsh_command(command: Command) -> str:
    lines = [_zsh_option(option) for option in command.options]
    for number, word in enumerate(command.places, start=1):
        place = "*" if command.more and number == len(command.places) else str(number)
        lines.append(_quoted(f"{place}{_zsh_word(word)}"))
    body = " \\\n        ".join(lines)
    return f"_crossopt_{command.name}() {{\n    _arguments {body}\n}}"


def _zsh_option(option: Option) -> str:
    about = re.sub(r"([\[\]:\\])", r"\\\1", option.about)
    word = _zsh_word(option.word) if option.word is not None else ""
    names = [f"{name}{'=' if word and name.startswith('--') else ''}" for name in option.names]
    return " ".join(_quoted(f"{'*' * option.again}{name}[{about}]{word}") for name in names)


def _zsh_word(word: Word) -> str:
    """What `_arguments` calls a message and an action."""
    about = re.sub(r"([:\\])", r"\\\1", word.meaning)
    names = " ".join(word.names)
    if word.names and word.files:
        return f":{about}: _crossopt_either {names}"  # with the space it gets these words alone
    return f":{about}:" + (f"({names})" if word.names else "_files" if word.files else " ")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
