"""Runs one cell: fine-tunes once, attacks the transcript, and scores."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from leakboard.bench.backbones import Backbone, Ragged, Tokens, bottom_cost, by_length
from leakboard.bench.contracts import (
    ANSWERED,
    BottomCost,
    Channel,
    Cost,
    LeakboardError,
    MissingExtra,
    Record,
    Status,
    UtilityMetric,
    fingerprint,
)
from leakboard.bench.exchange import (
    Diverged,
    Session,
    Tuned,
    Wire,
    has_transcript,
    with_requests_as_rounds,
    write_transcript,
)
from leakboard.bench.methods import Defense
from leakboard.bench.records import peak_megabytes, provenance
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.cell_context import CellContext
from leakboard.bench.running.grants import with_derived_channels, with_recomputed_activations
from leakboard.bench.running.isolation import error_line, is_out_of_memory
from leakboard.bench.running.plan import PlannedCell
from leakboard.bench.scoring import (
    answer_fields,
    class_fields,
    label_fields,
    next_token_fields,
    number_fields,
    projections,
    swaps_noticed,
)
from leakboard.bench.tasks import Split, Task

ANSWER_BATCH = 32
"""Prompts that are answered in one batch."""


def run_cell(context: CellContext, transcripts: Path | None = None) -> Record:
    """Fine-tunes one cell, attacks what the vendor saw, and scores. A failure is a record, too.

    Args:
        transcripts: folder for the transcript, which is written to a subfolder named by the cell's key.
    """
    planned, device = context.planned, context.backbone.device
    if planned.skip_reason:
        return record_without_result(planned, "skipped", planned.skip_reason, device)
    try:
        return _run(context, transcripts)
    except MissingExtra:
        raise
    except Diverged as error:
        return record_without_result(planned, "diverged", str(error), device)
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        if not is_out_of_memory(error):
            return record_without_result(planned, "failed", error_line(error), device)
        reason = str(error) or "out of memory"
        return record_without_result(planned, "out-of-memory", reason, device)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error: Python 3.11 wraps what is raised while a class body is set up, as in a late import."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def record_without_result(planned: PlannedCell, status: Status, reason: str, device: str) -> Record:
    """The record of a cell that was skipped or failed."""
    return Record(
        **_common_fields(planned), status=status, reason=reason, provenance=provenance(device)
    )


def _common_fields(planned: PlannedCell) -> dict[str, Any]:
    """Fields of every record of the cell, whatever its status."""
    return {
        "key": planned.cell.key,
        "cell": planned.cell,
        "undefended": planned.defense.undefended,
        "claim": planned.defense.claim(),
    }


def _run(context: CellContext, transcripts: Path | None) -> Record:
    start = time.perf_counter()
    cell, task, backbone = context.cell, context.inputs.task, context.backbone
    defense = context.planned.defense
    recorded, asked = context.inputs.recorded, cell.evaluate + ANSWERED
    if cell.record.answers:
        recorded = recorded | {asked: recorded[cell.evaluate]}
    wire = Wire(defense.sends, recorded, cell.record.megabytes * 2**20)
    wire.swap(cell.record.swapped, context.seeds.mechanism % 2**63)
    session = context.session(wire)
    tuned = fine_tune(defense, session)
    context = replace(context, tuned=tuned)
    train_seconds = time.perf_counter() - start
    trained_up, trained_down = wire.bytes_up, wire.bytes_down
    utility_fields, answered = _utility_fields(tuned, context)
    seen = with_requests_as_rounds(wire.transcript(), asked)
    if cell.record.answers and answered is not None:
        context = replace(context, answered={asked: answered})
    if transcripts and not has_transcript(folder := transcripts / cell.key):
        about = context.classes, cell.train
        write_transcript(
            seen, folder, backbone, cell.cut, *about, objective=context.inputs.task.objective
        )
    attack_start = time.perf_counter()
    seen = with_recomputed_activations(context, seen)
    recompute_seconds = time.perf_counter() - attack_start
    seen = with_derived_channels(context, seen)
    claim, plant = session.claim, cell.plant
    if claim is not None and plant is not None and plant.per_author is not None:
        claim = claim.of_authors(plant.per_author)
    leaks = attack_all(context, seen, claim)
    end = time.perf_counter()
    common = _common_fields(context.planned)
    return Record(
        **common | {"claim": claim or common["claim"]},
        status="ok",
        **utility_fields,
        loss=session.loss,
        wire_check=swaps_noticed(session.steps),
        leaks=leaks,
        projections=projections(seen, task.splits["train"].labels),
        dropped_bytes=seen.dropped_bytes,
        cost=Cost(
            bytes_up=wire.bytes_up,
            bytes_down=wire.bytes_down,
            trained_parameters=session.trained_parameters,
            calls=session.calls or None,
            client_seconds=session.fit_seconds - session.server_seconds if session.calls else None,
            skipped_batches=session.skipped_batches,
            train_seconds=train_seconds,
            attack_seconds=end - attack_start,
            recompute_seconds=recompute_seconds if Channel.RECOMPUTED in seen.channels else None,
            total_seconds=end - start,
            peak_megabytes=peak_megabytes(backbone.device),
            epoch_bytes_up=trained_up / cell.train.epochs,
            epoch_bytes_down=trained_down / cell.train.epochs,
            bottom=_bottom_cost(context, session),
        ),
        provenance=provenance(
            backbone.device,
            context.workers,
            fingerprint(context.secret),
            context.planned.trials,
            context.planned.tuned_on,
            context.planned.code,
        ),
    )


def fine_tune(defense: Defense, session: Session) -> Tuned:
    """The model that a defense fine-tunes.

    Raises:
        LeakboardError: the defense returned something else.
    """
    tuned: object = defense.fine_tune(session)
    if not isinstance(tuned, Tuned):
        raise LeakboardError(
            f"fine_tune must return a lb.Predictor or another lb.Tuned, got {type(tuned).__name__}"
        )
    return tuned


def _bottom_cost(context: CellContext, session: Session) -> BottomCost | None:
    """Cost of the customer's part of the model: up to the cut, or the whole encoder if texts become one vector."""
    cell, emits, backbone = context.cell, context.planned.defense.sends, context.backbone
    if Channel.REPRESENTATIONS in emits:
        cut = cell.cut
    elif Channel.ACTIVATIONS in emits and Channel.TOKENS not in emits:
        cut = backbone.blocks
    else:
        return None
    return bottom_cost(backbone, cut, session.train.lengths, cell.train.batch_size)


def _utility_fields(tuned: Tuned, context: CellContext) -> tuple[dict[str, Any], Tokens | None]:
    """Fields of a record about the utility of the tuned model, on the evaluated split; prompts with its answers."""
    cell, inputs = context.cell, context.inputs
    split, tokens = inputs.task.splits[cell.evaluate], inputs.tokens[cell.evaluate]
    if inputs.task.objective == "language modelling":
        losses, hits = tuned.per_token(tokens, cell.evaluate)
        fields = next_token_fields(
            losses, hits, context.backbone, split, tokens, cell.train.max_length
        )
        if split.pairs is None:
            return fields, None
        generated, answered = generate_answers(tuned, tokens, cell.evaluate, context.backbone)
        return answer_fields(generated, split.pairs, fields), answered
    scores = _checked(tuned.predict(tokens, cell.evaluate), len(split), context.classes)
    if context.export:
        context.export(scores.tolist())
    return utility_of_scores(scores, split, inputs.task, cell.utility), None


def utility_of_scores(
    scores: torch.Tensor, split: Split, task: Task, metric: UtilityMetric | None
) -> dict[str, Any]:
    """Fields of a record about the utility of predictions.

    Args:
        scores: [n, C] of the examples of a split.
        task: the task of the split.
        metric: None for the usual one.
    """
    if task.objective == "regression":
        return number_fields(scores[:, 0].numpy(), split.truth, metric)
    if task.objective == "multilabel":
        return label_fields((scores > 0).numpy(), split.truth > 0, metric)
    # Papers report accuracy on the known tasks.
    metric = metric or (None if task.own else "accuracy")
    return class_fields(scores.argmax(1).numpy(), split.labels, metric)


def _checked(scores: torch.Tensor, n: int, classes: int) -> torch.Tensor:
    """Scores of n examples.

    Raises:
        LeakboardError: another shape than [n, classes], or scores that are not finite.
    """
    if tuple(scores.shape) != (n, classes):
        raise LeakboardError(
            f"predict must return a score of each output for each example, of shape ({n}, {classes}), "
            f"got {tuple(scores.shape)}"
        )
    if not bool(torch.isfinite(scores).all()):
        raise LeakboardError("predict must return finite scores")
    return scores


def generate_answers(
    tuned: Tuned, tokens: Tokens, split: str, backbone: Backbone
) -> tuple[list[str], Tokens]:
    """Greedy answers to prompts, up to the token that ends a text, at most as long as the longest correct one.

    The customer requests one token at a time and sends the whole text before it, so the wire counts that
    text each time. It is recorded where `Recording.answers` says so.

    Returns:
        The answers, and the prompts with all that was sent of the answers: all tokens but the last.

    Args:
        tokens: prompts with the correct answers, of which only the lengths are used.
        split: name of the split of the texts.
    """
    prompts, longest = [], 0
    for row in range(len(tokens)):
        example = tokens.take(torch.tensor([row]))
        in_prompt = example.types == 0
        longest = max(longest, int((~in_prompt).sum()))
        prompts.append(
            (example.ids.values[in_prompt].tolist(), example.special[in_prompt].tolist())
        )
    end, most = backbone.tokenizer.eos_token_id, backbone.family.positions(backbone.model)
    answers: list[list[int]] = [[] for _ in prompts]
    unfinished = list(range(len(prompts)))
    for _ in range(longest):
        lengths = torch.tensor([len(prompts[i][0]) for i in unfinished])
        for batch in by_length(lengths, ANSWER_BATCH) if unfinished else ():
            rows = [unfinished[i] for i in batch.tolist()]
            texts = _continued([prompts[i] for i in rows], [answers[i] for i in rows])
            words = tuned.next_words(texts, torch.tensor(rows), split + ANSWERED)
            for i, word in zip(rows, words.tolist(), strict=True):
                answers[i].append(word)
        unfinished = [
            i
            for i in unfinished
            if answers[i][-1] != end and len(prompts[i][0]) + len(answers[i]) != most
        ]
    written = [backbone.tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in answers]
    return written, _continued(prompts, [ids[:-1] for ids in answers])


def _continued(prompts: list[tuple[list[int], list[bool]]], answers: list[list[int]]) -> Tokens:
    """Prompts, each followed by its answer so far."""
    ids, types, special = [], list[int](), list[bool]()
    for (prompt, is_special), answer in zip(prompts, answers, strict=True):
        ids.append([*prompt, *answer])
        types += [0] * len(prompt) + [1] * len(answer)
        special += [*is_special, *(False for _ in answer)]
    return Tokens(Ragged.of(ids), torch.tensor(types), torch.tensor(special))
