"""The claims by name, each with the theorems that hold for all sizes and lengths."""

from collections.abc import Callable

from k3.verify.refine import codec, drafts, ranks, restore, stream
from k3.verify.refine.check import Check, Claim, Outcome, Setting, theorems

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            name="stream",
            says="token by token is the whole sequence",
            run=stream.stream,
            theorems=(
                "scan.simulation",
                "streaming.streaming_equals_whole",
                "window.rolled_window_is_history",
                "mla.packed_equals_list",
                "absorbed.head_equals_expanded",
                "graph.decoder",
            ),
        ),
        Claim(
            name="chunk",
            says="a sequence in any pieces is the whole sequence",
            run=stream.chunk,
            theorems=(
                "streaming.chunks_equal_whole",
                "scan.append_carries_state",
                "chunk.chunk_equals_recurrence",
                "chunks.cut_anywhere",
            ),
        ),
        Claim(
            name="cache",
            says="what the prefix cache restores, a fork and a rewind go on as cold",
            run=restore.cache,
            theorems=(
                "scan.append_carries_state",
                "cache.found_is_restorable",
                "cache.found_is_longest",
                "cache.complete_blocks",
                "cache_search.two_stage_finds_longest",
            ),
        ),
        Claim(
            name="spec",
            says="speculative verification with rewind is plain decoding",
            run=drafts.spec,
            theorems=(
                "streaming.chunks_equal_whole",
                "verified.step_is_lossless",
                "block.block_is_lossless",
            ),
        ),
        Claim(
            name="context",
            says="context parallelism by affine summaries is the sequential pass",
            run=ranks.context,
            theorems=(
                "kda.update_is_affine",
                "context.affine_maps_compose",
                "context.segment_acts_as_fold",
                "context.ranks_compose",
            ),
        ),
        Claim(
            name="quant",
            says="packed MXFP4 weights are their decoded values bit for bit",
            run=codec.quant,
            theorems=(
                "mx.e2m1_is_nearest",
                "mx.block_error_at_most_scale",
                "mx_block.chosen_scale_covers_block",
                "mx_block.decoded_at_most_six_scales",
            ),
        ),
    )
}


def run(
    name: str, setting: Setting, progress: Callable[[Check], None] = lambda check: None
) -> Outcome:
    """Run every check of a claim; `progress` sees each as it is done.

    Raises: ProofError if a theorem that the claim names is not there or not proved.
    """
    claim = CLAIMS[name]
    outcome = Outcome(claim=claim, theorems=theorems(claim.theorems))
    for check in claim.run(setting):
        outcome.checks.append(check)
        progress(check)
    return outcome
