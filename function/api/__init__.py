"""The objects of the API, parsed once and frozen.

Past these parsers there are only values that cannot be wrong. What cannot be read is a `Fault` that names
the field, and costs exactly the object it stands in.
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
