"""The scheduler: from a fleet to a decision, by the rules of placement and nothing else.

Read in this order: `schedule` (one pass), `retain`, `scale_down`, `fill`, `replace`; below them `search`
(engines to pools), `fit` (an engine on a pool), `resolve` (a member's requests on a pool's devices) and
`ledger` (who holds which nodes). Every rejection is recorded as data where it happens (`reason`).

Laws of this room:
- a pure function of its arguments: no clock, no randomness, no I/O;
- doubt never removes a running replica;
- a budget is counted in steps, never in seconds.
"""
