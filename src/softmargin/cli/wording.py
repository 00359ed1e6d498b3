"""Messages of the library in the words of the command line: options instead of Python's arguments."""

import re
from functools import cache

# Parameters whose option is not simply "--" and the parameter's name.
OPTIONS = {
    "C": "-C",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "no_qid": "--no-qid",
    "fit_intercept": "--no-intercept",
    "intercept": "--penalised-intercept",
    "shrinking": "--no-shrinking",
}
# Phrases of the library that need other words on the command line, not only another name for a parameter.
PHRASES = {
    r"zero_based=True": "--index-base 0",
    r"zero_based=False": "--index-base 1",
    r"query_id=False": "--no-qid",
    r"fit_intercept=False": "--no-intercept",
    r"intercept='penalised'": "--penalised-intercept",
    r"shrinking=False": "--no-shrinking",
    r"overwrite=True": "--force",
    r"fit with warm_start=False": "train it without --resume",
    r"read the file without queries": "rank all rows together with --no-qid",
    r"softmargin\.Linear\w+ minimises": "without --kernel a linear model is trained, which minimises",
    r"use softmargin\.OneClassSVM with a kernel such as 'rbf'": "train with --kernel rbf",
    r"classes=\['low', 'middle', 'high'\]": "--classes low,middle,high",
    r"use None for one, -1 for all, or a positive integer": "use -1 for all, or a positive integer",
    r" or None \((.*?)\)": r", or be left out (\1)",
    r", a numpy RandomState or None": "",
    r"\bPass\b": "Give",
    r"leave it None": "leave it out",
    r"the rows that X and y have in their places": "the rows that DATA has in their places",
    r"^y holds ": "DATA holds ",
    r"^y has the classes ": "DATA has the classes ",
    r"^all y are ": "all targets are ",
    r"\bX has (\d+) features\b": r"DATA has \1 features",
    r"with different y in any query": "with different targets in any query",
    r"the variance of X": "the variance of the features",
    r"1 / \(n_features \* X\.var\(\)\)": "1 / (features * variance)",
}
_VALUE = r"""(?:'([^']*)'|"([^"]*)"|(\[[^\]]*\]|\{[^}]*\}|[^\s,;:()]*[^\s,;:().]))"""
# Messages also name these arguments of the readers of files, which are no parameters of estimators.
_OF_READERS = ("label", "n_features", "dtype")


def option(name: str) -> str:
    """What an argument is called on the command line."""
    return OPTIONS.get(name, "--" + name.replace("_", "-"))


@cache
def _patterns() -> tuple[re.Pattern, re.Pattern]:
    """Arguments with a value, and arguments alone.

    Names with an underscore are Python's wherever they stand; words such as "label" or "solver" are also English.
    """
    from softmargin.cli.options import OPTIONS as OF_TRAIN

    names = (*OPTIONS, *_OF_READERS, *(each.name for each in OF_TRAIN))
    bare = "|".join(name for name in names if "_" in name)
    return (
        re.compile(rf"(?<![\w./-])({'|'.join(names)})={_VALUE}?"),
        re.compile(rf"(?<![\w./-])({bare})(?![\w/=]|\.\w)"),
    )


def in_options(text: str) -> str:
    """The same message for someone who does not see Python."""
    assigned, bare = _patterns()
    for phrase, words in PHRASES.items():
        text = re.sub(phrase, words, text)
    text = assigned.sub(
        lambda found: " ".join(filter(None, (option(found[1]), found[2] or found[3] or found[4]))), text
    )
    return bare.sub(lambda found: option(found[1]), text)
