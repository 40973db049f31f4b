"""`lint`: what is wrong with the files, each with its line, before anybody applies them."""

from __future__ import annotations

import click

from function.cli.group import BAD_INPUT
from function.cli.options import FILES, FINDINGS, FINE, Command, output_option
from function.cli.render.problems import show_github, show_sarif, show_text
from function.cli.text import answered, complain, emit
from function.cli.worlds.problems import ERROR, Linted, lint
from function.cli.worlds.review import ignored_note

FORMS = "text for people; json for programs; sarif for code scanning; github for annotations of a workflow."


@click.command("lint", cls=Command)
@FILES
@output_option("text", "json", "sarif", "github", text=FORMS)
@click.pass_context
def lint_files(context: click.Context, files: tuple[str, ...], output: str) -> None:
    r"""Look at FILEs as the API server and the scheduler would, and say what is wrong, with file and line.

    Errors are what an API server would refuse or drop: unknown fields and kinds (with what was probably
    meant), wrong types, values and names, rules of the XRDs, selectors that do not compile, and what cannot
    be read. Warnings are what is allowed and will not work: selectors that no device, label or cluster in
    the files satisfies, names of objects that are not there, rules of the documentation. The schemas are
    the XRDs of this version; no cluster is asked.

    \b
    Exit codes: 0 nothing is wrong, 2 only warnings, 1 errors.

    \b
    Examples:
      fleet-scheduler lint fleet/ deployments/
      fleet-scheduler lint -o sarif . > lint.sarif
      kustomize build | fleet-scheduler lint -
    """
    linted = lint(files)
    if output == "text":
        show_text(linted)
    elif output == "github":
        show_github(linted.problems)
    elif output == "sarif":
        show_sarif(linted)
    else:
        emit(output, answered("Lint", _as_data(linted)))
    if linted.ignored:
        complain([ignored_note(linted.ignored)], "note")
    errors = linted.count(ERROR)
    context.exit(BAD_INPUT if errors else FINDINGS if linted.problems else FINE)


def _as_data(linted: Linted) -> dict[str, object]:
    problems = [problem.as_data for problem in linted.problems]
    return {"files": linted.files, "objects": linted.objects, "problems": problems}
