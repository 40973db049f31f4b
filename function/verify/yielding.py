"""Who may give way, written anew: in an overcommitted pool, a replica that those before it leave no room for.

`overcommit: Yield` allows it (Law 2, reason 6), to a replica that never was Ready and that can be read.
Those that may not give way hold their nodes whatever comes; the others keep theirs in the order of creation,
namespace and name, while there is room.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.verify.devices import strandings
from function.verify.state import beyond, held_by, pools

if TYPE_CHECKING:
    from function.api import ModelReplica
    from function.api.names import NamespacedName
    from function.verify.state import State


def may_give_way(state: State) -> frozenset[NamespacedName]:
    """Return the replicas of the fleet that may give way; none where the function's input asks for none.

    In a pool that is accounted by devices every one that never was Ready may: how pods are packed on its
    nodes is not known here, only that some packing strands one.
    """
    if not state.yields:
        return frozenset()
    living = [replica for replica in state.replicas if not replica.deleting]
    published = pools(state)
    over = {where for where, _ in beyond(state, living)}
    over |= {where for where, _ in strandings(state, living)}
    free = {where: published[where].nodes for where in over if published[where].accounting == "Node"}
    held: Counter[tuple[str, str]] = Counter()
    gives_way: set[NamespacedName] = set()
    for replica in sorted(living, key=_right):
        nodes = {where: count for where, count in held_by(replica).items() if where in over}
        crowded = any(
            where not in free or held[where] + count > free[where] for where, count in nodes.items()
        )
        if crowded and _never_ready(replica):
            gives_way.add((replica.namespace, replica.name))
        else:
            held.update(nodes)
    return frozenset(gives_way)


def _never_ready(replica: ModelReplica) -> bool:
    return replica.whole and replica.ready is not True and not replica.was_ready


def _right(replica: ModelReplica) -> tuple[bool, str, str, str]:
    """Who has the right to nodes: first who cannot give way, then by creation."""
    return (_never_ready(replica), replica.created, replica.namespace, replica.name)
