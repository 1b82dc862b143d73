"""Commands that pack records for submission, and verify submissions of others."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakboard.bench.cli.app import PUBLISHED, Data, Device, app, console
from leakboard.bench.cli.output import (
    Format,
    Quiet,
    lines_console,
    print_json,
    progress_console,
    waiting,
)
from leakboard.bench.contracts import LeakboardError

if TYPE_CHECKING:
    from leakboard.bench.submissions import Report, Submission, Verified


@app.command()
def submit(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SUITE|DIR...", help="Suites that were run, or folders of records."),
    ],
    to: Annotated[
        Path | None, typer.Option("--to", "--out", help="The file to write (default: METHOD.zip).")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Name of the submitted method (default: the suite).")
    ] = None,
    link: Annotated[str, typer.Option(help="Link to a description of the method: https://…")] = "",
    note: Annotated[str, typer.Option(help="One line about the method.")] = "",
    quiet: Quiet = False,
) -> None:
    """Pack the records of suites into one file, which others can verify.

    Runs all checks of `verify` except for running cells again.

    Example: leakboard submit my-suite --method "My noise" --link https://example.org/paper
    """
    from leakboard.bench.submissions import Report, examine, gather, pack
    from leakboard.leaderboards.results import folder_of, name_of

    folders = {name_of(source): folder_of(source) for source in sources}
    if len(folders) < len(sources):
        raise LeakboardError("two of the sources have the same name; submit them separately")
    submission = gather(folders, method, link, note)
    file = to or Path(f"{submission.manifest.slug}.zip")
    packed = pack(submission)
    with waiting("checking", quiet=quiet):
        report = examine(Report(file, submission))
    if not report.sound:
        for part in report.parts():
            console.print(part)
        raise LeakboardError(
            f"{file} was not written: verification would refuse the records, for the reasons above"
        )
    try:
        file.write_bytes(packed)
    except OSError as error:
        raise LeakboardError(f"{file}: cannot be written ({error.strerror})") from error
    console.print(
        f"{len(submission.records)} records, {len(packed) / 1e6:.1f} MB in {file}", highlight=False
    )


@app.command()
def verify(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="A file written by `submit`, or the folder of an accepted submission.",
        ),
    ],
    rerun: Annotated[
        str, typer.Option(metavar="N|none", help="Number of cells to run again per defense.")
    ] = "1",
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed that, with the records, decides which cells are run again (default: a new one each time).",
            min=0,
        ),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(
            help="Time limit of each cell; a cell that exceeds it counts as not run.", min=0
        ),
    ] = 60.0,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="If the submission passes, copy its records to results/published/METHOD.",
        ),
    ] = False,
    without_rerun: Annotated[
        bool,
        typer.Option(
            "--accept-without-rerun",
            help="Accept the submission even if a defense was not reproduced; the records that --accept writes, and all "
            "pages that show them, say so.",
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="Folder of the model that the cells use, if `leakboard model list` does not name it."
        ),
    ] = None,
    data: Data = None,
    device: Device = "auto",
    form: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Verify a submission: check the file and each record, recompute scores, and run cells again.

    Exits with code 0 if the submission is accepted.
    Exits with code 1 if a check failed, or if no cell of some defense could be run again.
    Nothing in the file is trusted or executed, and nothing is written unless it is accepted.

    Example: leakboard verify my-noise.zip --data DIR
    """
    from leakboard.bench.backbones import device_of
    from leakboard.bench.running import reporter_on
    from leakboard.bench.submissions import LocalResources, Reruns, Verified, accepted_records
    from leakboard.bench.submissions import verify as verified

    if rerun != "none" and not (rerun.isascii() and rerun.isdigit() and len(rerun) < 10):
        raise LeakboardError(f"--rerun: expected a number of cells or none, got '{rerun}'")
    count = 0 if rerun == "none" else int(rerun)
    drawn = secrets.randbelow(2**63) if seed is None else seed
    resources = LocalResources(data, model, device_of(device))
    with reporter_on(progress_console(form, quiet), count) as live:
        report = verified(
            file, Reruns(count, drawn, live, resources, minutes) if count else None, resources
        )
    verdict = _verdict(report, without_rerun)
    if form == "json":
        print_json(_content(report, verdict))
    else:
        for part in report.parts(verdict):
            console.print(part)
    if not verdict.startswith("accepted") or report.submission is None:
        raise typer.Exit(1)
    if accept:
        verified_by = report.verified or Verified(methods=report.unreproduced)
        marked = accepted_records(report.submission, verified_by)
        place = unpack(marked, verified_by, PUBLISHED)
        lines_console(form).print(f"its records are in {place}", highlight=False)


def _content(report: Report, verdict: str) -> dict[str, object]:
    checks = [{"check": a, "outcome": b, "detail": c} for a, b, c in report.lines]
    return {
        "file": report.file,
        "verdict": verdict,
        "accepted": verdict.startswith("accepted"),
        "records": len(report.records),
        "not reproduced": report.unreproduced,
        "checks": checks,
    }


def _verdict(report: Report, without_rerun: bool) -> str:
    if not report.sound:
        return "refused"
    if report.repeated:
        return "accepted"
    names = ", ".join(report.unreproduced) or "any defense"
    if report.says_so or without_rerun:
        return f"accepted, not reproduced: {names}"
    return (
        f"not accepted: no check failed, but no cell of {names} was reproduced. "
        "--accept-without-rerun accepts the submission anyway, marked as not reproduced"
    )


def unpack(submission: Submission, verified: Verified, root: Path) -> Path:
    """Write an accepted submission to a new folder, completely or not at all, and return the folder.

    Raises:
        LeakboardError: the folder exists, or cannot be written.
    """
    from leakboard.bench.records import MANIFEST

    place = root / submission.manifest.slug
    if place.exists():
        raise LeakboardError(
            f"{place} exists and is not overwritten; submit under another --method"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".") as made:
            folder = Path(made) / "records"
            folder.mkdir()
            for key, raw in submission.records.items():
                (folder / f"{key}.json").write_bytes(raw)
            manifest = submission.manifest.model_copy(update={"verified": verified})
            content = manifest.model_dump_json(indent=1)
            (folder / MANIFEST).write_text(content + "\n", encoding="utf-8")
            os.replace(folder, place)
    except OSError as error:
        raise LeakboardError(f"{place}: cannot be written ({error.strerror or error})") from error
    return place
