"""Single questions to the real cluster, each with the verdict that is expected of both sides.

`placed` and `refused` are what is decided, which `test_scenarios` holds without any cluster. `binds` is what
the real scheduler makes of it: of what is placed, or of one replica more that is written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.referee.worlds import World, card, entry
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]

NUMA = f'device.attributes["{build.GPU}"].numa == 0'
GUARDED = f'"numa" in device.attributes["{build.GPU}"] && {NUMA}'
CARDS = 'device.driver == "dra.net"'
ZERO, ONE = {"numa": {"int": 0}}, {"numa": {"int": 1}}
KEY = "example.com/numa"
NEAR, FAR = {KEY: {"int": 0}}, {KEY: {"int": 1}}


@dataclass(frozen=True)
class Scenario:
    """One question."""

    reason: str
    entries: Sequence[Plain]
    requests: Sequence[Plain]
    placed: int = 1
    """Replicas that are placed, of those that are wanted."""
    refused: str = ""
    """The reason for which the others are not."""
    binds: bool = True
    """Whether what is placed binds; where nothing is, whether replicas written by hand would all bind."""
    wanted: int = 1
    nodes: int = 1
    accounting: str = "Node"
    across: bool = False
    """Whether the pool keeps the pods of an engine on different nodes."""
    turned: bool = False
    """Whether the drivers list the devices the other way round."""
    constraints: Sequence[Plain] = ()
    engine: Plain = field(default_factory=dict)
    """More of the engine."""

    def world(self, name: str) -> World:
        """The cluster."""
        world = World(name, {f"{name}a": (self.nodes, self.accounting, list(self.entries))})
        world.across = self.across
        return world

    def deployment(self, name: str) -> Plain:
        """What is to be placed there."""
        member = build.member(devices=list(self.requests))
        if self.constraints:
            member["nodeSelector"]["constraints"] = list(self.constraints)
        return build.deployment(name, self.wanted, [build.engine(members=[member]) | self.engine])


def ask(count: int, *selectors: str, name: str = "gpu") -> Plain:
    """A device request."""
    return build.request(name, count, *selectors)


HALVES = (entry("a", 4, **ZERO), entry("b", 4, **ONE))
ODD = (entry("a", 4, **ZERO), entry("b", 4))
WIDE = (entry("a", 8, **ZERO), entry("b", 8, **ONE))

SCENARIOS = {
    "error-first": Scenario(
        "a selector errs on the entry of its class that the driver lists first",
        ODD,
        [ask(1, NUMA)],
        placed=0,
        refused="DeviceSelectorError",
        binds=False,
        turned=True,
    ),
    "error-when-full": Scenario(
        "the first pod binds, the second finds the first entry taken and errs on the next",
        ODD,
        [ask(4, NUMA)],
        placed=0,
        refused="DeviceSelectorError",
        binds=False,
        wanted=2,
        nodes=2,
    ),
    "error-guarded": Scenario(
        "a guard keeps the allocator from the error", ODD, [ask(1, GUARDED)], turned=True
    ),
    "error-short-circuit": Scenario(
        "a selector before it does, too",
        ODD,
        [ask(1, f'device.attributes["{build.GPU}"].?numa.hasValue()', NUMA)],
        turned=True,
    ),
    "too-many-devices": Scenario(
        "a claim holds 32 devices",
        [entry("gpu", 48)],
        [ask(33)],
        placed=0,
        refused="ClaimTooLarge",
        binds=False,
    ),
    "too-many-together": Scenario(
        "of all its requests",
        [entry("gpu", 20), card(20)],
        [ask(20), ask(20, CARDS, name="nic")],
        placed=0,
        refused="ClaimTooLarge",
        binds=False,
    ),
    "as-many-as-it-holds": Scenario("32 of them", [entry("gpu", 32)], [ask(32)]),
    "synthetic-beside": Scenario(
        "what is Synthetic is in no claim",
        [
            entry("gpu", 32),
            {k: v for k, v in card(32).items() if k != "deviceClassName"} | {"claim": "Synthetic"},
        ],
        [ask(32), ask(32, CARDS, name="nic")],
    ),
    "overlap": Scenario(
        "any 8 and 8 of the first: in the order declared the allocator gives up after ten seconds",
        WIDE,
        [ask(8, name="any"), ask(8, GUARDED, name="first")],
    ),
    "cards-far-away": Scenario(
        "8 GPUs with a card, behind 16 without: never found in the order declared",
        [entry("a", 16, **NEAR), entry("b", 8, **FAR), card(8, **FAR)],
        [ask(8), ask(1, CARDS, name="nic")],
        constraints=[{"matchAttribute": KEY}],
    ),
    "halves": Scenario("one request over two entries of one class", HALVES, [ask(8)]),
    "halves-apart": Scenario(
        "not where they must share what differs",
        HALVES,
        [ask(8)],
        placed=0,
        refused="ConstraintUnsatisfied",
        binds=False,
        constraints=[{"matchAttribute": f"{build.GPU}/numa"}],
    ),
    "halves-shared": Scenario("two requests that share them", HALVES, [ask(3, name="x"), ask(5, name="y")]),
    "halves-device": Scenario(
        "accounted by devices",
        HALVES,
        [ask(8)],
        placed=2,
        wanted=3,
        refused="InsufficientDevices",
        nodes=2,
        accounting="Device",
    ),
    "across-nodes": Scenario(
        "two copies of one GPU that may not share a node, on one node",
        [entry("gpu", 8)],
        [ask(1)],
        placed=0,
        refused="InsufficientDevices",
        binds=False,
        accounting="Device",
        across=True,
        engine={"copies": 2},
    ),
    "across-two-nodes": Scenario(
        "on two nodes",
        [entry("gpu", 8)],
        [ask(1)],
        nodes=2,
        accounting="Device",
        across=True,
        engine={"copies": 2},
    ),
    "one-uuid": Scenario(
        "what only the claim asks for",
        [entry("gpu", 8)],
        [ask(1) | {"claimSelectors": [{"cel": f'device.attributes["{build.GPU}"].type == "gpu"'}]}],
    ),
}
