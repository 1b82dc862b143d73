"""Commands for records from outside: packing one's own, and checking those of others."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakboard.bench.cli.app import PUBLISHED, Data, Device, app, console
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
        Path | None, typer.Option("--to", help="The file to write; METHOD.zip without it.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="What is submitted; the suite without it.")
    ] = None,
    link: Annotated[str, typer.Option(help="Where more is said about it: https://…")] = "",
    note: Annotated[str, typer.Option(help="A line about it.")] = "",
) -> None:
    """Pack the records of suites into one file that others can verify.

    It is checked as `verify` does it, but for running cells again. Example: leakboard submit
    my-suite --method "My noise" --link https://example.org/paper
    """
    from leakboard.bench.submissions import Report, examine, gather, pack
    from leakboard.leaderboards.results import folder_of, name_of

    folders = {name_of(source): folder_of(source) for source in sources}
    if len(folders) < len(sources):
        raise LeakboardError("two of the sources have the same name; submit each by itself")
    submission = gather(folders, method, link, note)
    file = to or Path(f"{submission.manifest.slug}.zip")
    packed = pack(submission)
    with console.status("checking"):
        report = examine(Report(file, submission))
    if not report.sound:
        for part in report.parts():
            console.print(part)
        raise LeakboardError(f"{file} was not written: the records would be refused as above")
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
            help="What `submit` wrote, or a folder into which one was accepted.",
        ),
    ],
    rerun: Annotated[
        str, typer.Option(metavar="N|none", help="How many cells are run again.")
    ] = "1",
    seed: Annotated[
        int | None,
        typer.Option(
            help="Draws these cells, together with the records; other ones each time without it.",
            min=0,
        ),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(help="For each cell that is run again; then it counts as not run.", min=0),
    ] = 60.0,
    accept: Annotated[
        bool, typer.Option("--accept", help="Then put its records into results/published/METHOD.")
    ] = False,
    without_rerun: Annotated[
        bool,
        typer.Option(
            "--accept-without-rerun",
            help="Take it for accepted though no defended cell was run again; what --accept writes "
            "says so.",
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Where the model of these cells lies, if not embedded.")
    ] = None,
    data: Data = None,
    device: Device = "auto",
) -> None:
    """Check a submission: the file, each record, its scores from the raw guesses, a cell run again.

    Ends with code 0 where it is accepted, and 1 where it is not: something was wrong, or no defended
    cell could be run again. Nothing in it is trusted, followed or written, unless it is accepted.
    Example: leakboard verify my-noise.zip --data DIR
    """
    from leakboard.bench.backbones import device_of
    from leakboard.bench.running import Live
    from leakboard.bench.submissions import LocalResources, Reruns, Verified
    from leakboard.bench.submissions import verify as verified

    if rerun != "none" and not (rerun.isascii() and rerun.isdigit() and len(rerun) < 10):
        raise LeakboardError(f"--rerun: expected a number of cells or none, got '{rerun}'")
    count = 0 if rerun == "none" else int(rerun)
    drawn = secrets.randbelow(2**63) if seed is None else seed
    here = LocalResources(data, model, device_of(device))
    with Live(console, count) as live:
        report = verified(file, Reruns(count, drawn, live, here, minutes) if count else None, here)
    verdict = _verdict(report, without_rerun)
    for part in report.parts(verdict):
        console.print(part)
    if not verdict.startswith("accepted") or report.submission is None:
        raise typer.Exit(1)
    if accept:
        place = unpack(report.submission, report.verified or Verified(), PUBLISHED)
        console.print(f"its records are in {place}", highlight=False)


def _verdict(report: Report, without_rerun: bool) -> str:
    if not report.sound:
        return "refused"
    if report.repeated:
        return "accepted"
    if without_rerun:
        return "accepted, though no defended cell was run again"
    return (
        "not accepted: nothing wrong was found, but no defended cell was run again. "
        "--accept-without-rerun takes it all the same, and says so in the manifest"
    )


def unpack(submission: Submission, verified: Verified, root: Path) -> Path:
    """Writes an accepted submission into a new folder, whole or not at all, and returns it.

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
