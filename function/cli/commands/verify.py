"""`verify`: certify a decision, and the live state, with a checker that shares no code with the scheduler.

The checker is `function.verify`. This file reads the state and the decision for it: the plan made here, or
the desired resources in a file. What cannot be read is left out on both sides, and said.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click

from function import api, verify as checker
from function.api import replica as replica_api
from function.api.adapter import PLACEMENT_KIND, ModelAdapter
from function.api.deployment import PlacementPolicy
from function.api.names import NamespacedName
from function.api.ownership import Owner
from function.boundary import PlainDocument
from function.cli.bad_input import BadInput
from function.cli.options import OUTPUT, Command, end, reads_fleet
from function.cli.text import answered, console, counted, emit, escape, listed, note, reassure
from function.cli.worlds.inputs import FLEET, Inputs, Source, read, read_manifests
from function.cli.worlds.simulate import one_round
from function.cli.worlds.world import identity_of
from function.deployment.forecast import read_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.cli.worlds.manifest import Manifests

DesiredReplicas = dict[NamespacedName, list[dict[str, Any]]]
"""Desired ModelReplicas by deployment."""


def state_of(inputs: Inputs) -> checker.State:
    """Read the files as the checker sees them; what cannot be read was complained about already.

    With a config that cannot be read, nothing new may be placed: the state is closed.
    """
    settings = inputs.world.settings
    clusters: dict[str, api.InferenceCluster] = {}
    unreadable = set()
    for content in inputs.world.clusters:
        cluster = inputs.world.memo.parsed(PlainDocument(content), read_cluster)
        if isinstance(cluster, api.InferenceCluster):
            clusters[cluster.name] = cluster
        else:
            unreadable.add(str(content["metadata"]["name"]))
    caches = {}
    for content in inputs.world.caches:
        try:
            cache = api.ModelCache.parse(content)
            caches[cache.metadata.namespace, cache.metadata.name] = cache
        except api.Malformed:
            continue
    replicas = tuple(
        inputs.world.memo.parsed(PlainDocument(content), replica_api.parse)
        for content in inputs.world.replicas
    )
    return checker.State(
        clusters,
        replicas,
        caches,
        frozenset(unreadable),
        yields=settings is not None and settings.overcommit == "Yield",
        quotas=settings.quotas if settings is not None else (),
        preempts={
            listed.name: listed.value
            for listed in (settings.priority_classes if settings is not None else ())
            if listed.preempts
        },
        closed=settings is None,
    )


def with_defaults(deployment: api.ModelDeployment, settings: api.SchedulerConfig) -> api.ModelDeployment:
    """Return a deployment with the policy that applies: what it leaves out, the function's input says.

    The checker knows deployments alone; the handler looks defaults up while it schedules.
    """
    defaults = settings.defaults.placement
    if not defaults.model_fields_set:
        return deployment
    policy = (deployment.spec.placement or PlacementPolicy()).over(defaults)
    return deployment.model_copy(update={"spec": deployment.spec.model_copy(update={"placement": policy})})


def decisions(
    inputs: Inputs, state: checker.State, settings: api.SchedulerConfig, desired: DesiredReplicas
) -> list[checker.Decided]:
    """Pair every readable deployment with what is desired of it.

    A deployment that cannot be read gets no decision, so none is checked.
    """
    decided = []
    by_owner: dict[NamespacedName, list[api.ModelReplica]] = defaultdict(list)
    for replica in state.replicas:
        by_owner[replica.namespace, replica.deployment].append(replica)
    for manifest in inputs.world.deployments:
        try:
            deployment = with_defaults(api.ModelDeployment.parse(manifest.content), settings)
        except api.Malformed:
            continue
        name = deployment.namespace, deployment.name
        owner = Owner(*name, deployment.metadata.uid)
        own_replicas = tuple(
            replica for replica in by_owner[name] if owner.owns(replica) and not replica.deleting
        )
        wanted = tuple(replica_api.parse(PlainDocument(content)) for content in desired.get(name, ()))
        decided.append(checker.Decided(deployment, own_replicas, wanted))
    return decided


def by_deployment(resources: Iterable[dict[str, Any]]) -> DesiredReplicas:
    """Sort desired ModelReplicas by the deployment their labels name."""
    desired: DesiredReplicas = defaultdict(list)
    for resource in resources:
        if resource.get("kind") == "ModelReplica":
            replica = replica_api.parse(PlainDocument(resource))
            desired[replica.namespace, replica.deployment].append(resource)
    return desired


def _planned(inputs: Inputs) -> DesiredReplicas:
    """Plan here, and sort the desired replicas by their deployments."""
    planned = one_round(inputs.world)
    responses = (plan.response for plan in planned)
    return by_deployment(
        desired.resource for response in responses for _, desired in sorted(response.desired.items())
    )


def _from_file(path: str) -> Manifests:
    """Read a decision.

    Raises:
        BadInput: where an API server would refuse a part of it, for then nobody decided it.
    """
    manifests, errors = read_manifests([path])
    if errors:
        raise BadInput(f"{path}: what the API server would refuse is no decision")
    if not (manifests["ModelReplica"] or manifests[PLACEMENT_KIND]):
        note(f"{path} has no ModelReplica: it is taken for the decision to place nothing")
    return manifests


def _adapter_findings(
    inputs: Inputs, desired: DesiredReplicas, decision: Manifests | None, *, standing: bool
) -> tuple[list[checker.Violation], list[checker.Violation], int]:
    """Check the adapters: as they stand, as decided, and how many places were decided.

    `desired`: the replicas that they meet. `decision`: where their places are from; None plans them here.
    """
    manifests = inputs.manifests
    if not (manifests["ModelAdapter"] or manifests[PLACEMENT_KIND]):
        return [], [], 0
    from function.cli.worlds.adapters import in_turn, placed, standing_replicas  # noqa: PLC0415 - only then

    adapters = []
    for manifest in in_turn(manifests):
        try:
            adapters.append(ModelAdapter.parse(manifest.content))
        except api.Malformed:
            continue
    stored = {manifest.identity: manifest.content for manifest in manifests["ModelReplica"]}
    places = [checker.read_place(manifest.content) for manifest in manifests[PLACEMENT_KIND]]
    state = checker.AdapterState(
        adapters, [checker.read_host(content) for content in stored.values()], places
    )
    faulty = checker.check_adapter_state(state)
    if standing:
        return faulty, [], 0
    merged = (
        {**content, "status": stored.get(identity_of(content), {}).get("status") or {}}
        for listed in desired.values()
        for content in listed
    )
    titles = {f"{manifest.namespace}/{manifest.name}" for manifest in inputs.world.deployments}
    replicas = standing_replicas(manifests, titles, merged)
    if decision is None:
        answers = placed(manifests, replicas, inputs.world.endpoints)
        decided = [checker.read_place(item) for answer in answers for item in answer.placements]
    else:
        decided = [checker.read_place(manifest.content) for manifest in decision[PLACEMENT_KIND]]
    state = checker.AdapterState(adapters, [checker.read_host(content) for content in replicas], places)
    return faulty, checker.check_adapters(state, decided), len(decided)


def _about(findings: list[checker.Violation], inputs: Inputs) -> list[checker.Violation]:
    """Leave out what is about deployments of a namespace that was not asked about; pools belong to all."""
    inputs.titles(())  # A namespace that is not there is refused.
    only, pools = inputs.origin.only, {"Overcommit"}
    return [
        finding
        for finding in findings
        if not only or finding.rule in pools or finding.where.startswith(f"{only}/")
    ]


def _section(title: str, findings: list[checker.Violation], fine: str, faults: tuple[str, ...]) -> None:
    """Print one part of the verdict: a line for each fault, or that there is none."""
    out = console()
    out.print(title, style="bold")
    if not findings:
        reassure(out, fine, faults, indent="  ")
    for line in _folded(findings):
        out.say(f"  ✗ {escape(line)}", style="red")


def _folded(findings: list[checker.Violation]) -> Iterator[str]:
    """A line for each different fault: a pool that is not published is one, whoever is pinned to it."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for finding in findings:
        names[finding.rule, finding.message].append(finding.where)
    for (rule, message), where in names.items():
        yield f"{rule} {listed(where)}: {message}"


@click.command(cls=Command)
@reads_fleet
@click.option(
    "--decision",
    metavar="FILE",
    help="Certify the desired resources in FILE (as `plan -o yaml` prints them) instead of planning here.",
)
@click.option("--standing", is_flag=True, help="Only check the fleet as it stands.")
@OUTPUT
def verify(source: Source, decision: str | None, output: str, *, standing: bool) -> None:
    r"""Certify a decision: that nothing is overcommitted and every placement follows the rules.

    The checker shares no code with the scheduler. Where a rule says "every" or "none", it tries all
    possibilities. It checks the fleet as it stands (overcommitted pools and who holds them, replicas pinned
    to pools or clusters that are not there) and the decision: every new replica on an open cluster, on
    pools that match, with claims they can give; nothing overcommitted; no replica lost or moved without a
    reason; none left out while there is room; spread before packed. Adapters likewise: slots, ranks and
    capabilities of the replicas that they are on, and spread.

    Exit codes: 0 certified, 2 a rule is broken, 1 bad input.

    \b
    Examples:
      fleet-scheduler verify fleet.yaml
      fleet-scheduler verify fleet.yaml --standing
      fleet-scheduler plan fleet.yaml -o yaml > plan.yaml
      fleet-scheduler verify fleet.yaml --decision plan.yaml
    """
    if standing and decision:
        raise BadInput("--standing checks no decision: leave --decision out")
    inputs = read(source, FLEET)
    if not (standing or inputs.world.deployments):
        note(f"there is no ModelDeployment in {inputs.origin.where}: only the fleet as it stands is checked")
    settings = inputs.world.settings
    state = state_of(inputs)
    from_file = _from_file(decision) if decision else None
    desired: DesiredReplicas = {}
    if from_file is not None:
        desired = by_deployment(manifest.content for manifest in from_file["ModelReplica"])
    elif not standing:
        desired = _planned(inputs)
    decided = [] if standing else decisions(inputs, state, settings or api.SchedulerConfig(), desired)
    of_adapters, misplaced, places = _adapter_findings(inputs, desired, from_file, standing=standing)
    faulty = [*checker.check_state(state), *of_adapters]
    violations = _about([*checker.check(state, decided), *misplaced], inputs)
    if output == "table":
        charged, clusters = counted(len(state.replicas), "replica"), counted(len(state.clusters), "cluster")
        fine = f"{charged} on {clusters}: nothing is overcommitted"
        _section("The fleet as it stands", faulty, fine, inputs.faults)
        if not standing:
            replicas = counted(sum(len(deployment.desired) for deployment in decided), "replica")
            of = f"{replicas} of {counted(len(decided), 'deployment')}"
            if inputs.manifests["ModelAdapter"]:
                adapters = counted(len(inputs.manifests["ModelAdapter"]), "adapter")
                of = f"{of}, {counted(places, 'place')} of {adapters}"
            fine = f"{of}: every placement follows the rules"
            _section("The decision", violations, fine, inputs.faults)
    else:
        data = {
            part: [{"rule": row.rule, "where": row.where, "message": row.message} for row in rows]
            for part, rows in (("state", faulty), ("decision", violations))
        }
        emit(output, answered("Verification", data))
    end(inputs.faults, findings=bool(faulty or violations))
