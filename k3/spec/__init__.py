"""The equations of Kimi K3, one file per concept, each written once.

A function uses only operators, indexing, `@` and `spec.ops`, so the same text reads as
float64, exact fractions, balls, symbols, a finite field, or float64 torch with
gradients. Matrices are the checkpoint's `[out, in]`, applied as the paper writes them:
`W @ x`. The KDA memory is `[K V]`. `weights` maps the checkpoint's names, without the
prefix of the layer at hand, to arrays of the carrier.
"""
