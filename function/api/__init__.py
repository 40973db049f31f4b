"""The objects of the API, parsed once and frozen.

Past these parsers there are only values that cannot be wrong. What cannot be read is a `Fault` that names
the field, and costs exactly the object it stands in.

Two kinds have several readers, each with a model of its own. One model for all would make a fault in a field
that a reader does not need that reader's doubt, and doubt stops everything new:

    InferenceCluster   cluster.InferenceCluster         the scheduler: spec and what is published, leniently;
                                                        one fault, and the cluster takes no new replica
                       declared_cluster.DeclaredCluster its handler: the declaration, strictly, and no status,
                                                        which is what it writes
                       declared_cluster.WorkloadCluster the replicas on it: how it is reached, what its nodes
                                                        ask of pods; a bad pool status stops no edit of them
    ModelReplica       replica.ModelReplica             the scheduler: never refuses, since it holds nodes
                                                        whatever can be read; `parse_charge` reads of others
                                                        only what charging takes, tens of thousands of times
                       workload.Workload                its handler: strictly, since its pods are made of it
                       adapter.BaseReplica              the adapters: their room, and where it is
                       operations.OwnedReplica          WatchOperations: whose it is and its uid, which a
                                                        charge does not tell

A new reader takes one of these where it can live with that reader's doubts, and only else adds a model.
"""

from function.api.cache import ModelCache
from function.api.cluster import InferenceCluster, Pool
from function.api.declared_cluster import InferenceClass
from function.api.deployment import DeviceRequest, Engine, Member, ModelDeployment
from function.api.devices import Device
from function.api.fault import Fault, Malformed
from function.api.inputs import SchedulerConfig
from function.api.replica import ModelReplica, StampedEngine, StampedMember, StampedRequest
from function.api.taints import Taint, Toleration

__all__ = [
    "Device",
    "DeviceRequest",
    "Engine",
    "Fault",
    "InferenceClass",
    "InferenceCluster",
    "Malformed",
    "Member",
    "ModelCache",
    "ModelDeployment",
    "ModelReplica",
    "Pool",
    "SchedulerConfig",
    "StampedEngine",
    "StampedMember",
    "StampedRequest",
    "Taint",
    "Toleration",
]
