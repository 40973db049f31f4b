"""Devices as their drivers publish them, and the shortest way to ask what a selector says about one."""

from __future__ import annotations

from typing import Any

from function.cel import CompileError, Outcome, Subject, bind_device, compile_device

Plain = dict[str, Any]

H200: Plain = {
    "driver": "gpu.nvidia.com",
    "attributes": {
        "type": {"string": "gpu"},
        "uuid": {"string": "GPU-7a1f"},
        "productName": {"string": "NVIDIA H200"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "570.86.15"},
        "cudaDriverVersion": {"version": "12.8.0"},
        "index": {"int": 3},
        "minor": {"int": 3},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:18"},
    },
    "capacity": {"memory": {"value": "143771Mi"}, "multiprocessors": {"value": "132"}},
}
H100: Plain = H200 | {
    "attributes": H200["attributes"] | {"productName": {"string": "NVIDIA H100 80GB HBM3"}},
    "capacity": {"memory": {"value": "81559Mi"}, "multiprocessors": {"value": "132"}},
}
L4: Plain = H200 | {
    "attributes": H200["attributes"]
    | {
        "productName": {"string": "NVIDIA L4"},
        "architecture": {"string": "Ada Lovelace"},
        "cudaComputeCapability": {"version": "8.9.0"},
    },
    "capacity": {"memory": {"value": "23034Mi"}, "multiprocessors": {"value": "58"}},
}
B200: Plain = H200 | {
    "attributes": H200["attributes"]
    | {
        "productName": {"string": "NVIDIA B200"},
        "architecture": {"string": "Blackwell"},
        "cudaComputeCapability": {"version": "10.0.0"},
    },
    "capacity": {"memory": {"value": "183359Mi"}, "multiprocessors": {"value": "148"}},
}
MIG: Plain = {
    "driver": "gpu.nvidia.com",
    "attributes": {
        "type": {"string": "mig"},
        "profile": {"string": "1g.5gb"},
        "parentUUID": {"string": "GPU-1"},
        "productName": {"string": "NVIDIA A100-SXM4-40GB"},
    },
    "capacity": {"memory": {"value": "4864Mi"}, "multiprocessors": {"value": "14"}},
}
MI300X: Plain = {
    "driver": "gpu.amd.com",
    "attributes": {
        "type": {"string": "amdgpu"},
        "productName": {"string": "AMD_Instinct_MI300X_OAM"},
        "family": {"string": "AI"},
        "driverVersion": {"version": "6.10.5"},
        "pciAddr": {"string": "0000:1b:00.0"},
    },
    "capacity": {
        "memory": {"value": "192Gi"},
        "computeUnits": {"value": "304"},
        "simdUnits": {"value": "1216"},
    },
}
TPU: Plain = {
    "driver": "tpu.google.com",
    "attributes": {"tpuGen": {"string": "v6e"}, "index": {"int": 0}, "uuid": {"string": "tpu-0"}},
    "capacity": {},
}
NETWORK: Plain = {
    "driver": "dra.net",
    "attributes": {
        "ifName": {"string": "eth1"},
        "rdma": {"bool": True},
        "numaNode": {"int": 1},
        "mtu": {"int": 9000},
        "state": {"string": "up"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:18:00.0"},
    },
    "capacity": {},
}
MIXED: Plain = {
    "driver": "d",
    "attributes": {
        "yes": {"bool": True},
        "no": {"bool": False},
        "i": {"int": 42},
        "neg": {"int": -7},
        "zero": {"int": 0},
        "max": {"int": 2**63 - 1},
        "min": {"int": -(2**63)},
        "s": {"string": "fish"},
        "empty": {"string": ""},
        "u": {"string": "Ünï☃😀"},
        "num": {"string": "17"},
        "v": {"version": "1.2.3"},
        "pre": {"version": "1.2.3-rc.1+build.5"},
        "other.org/i": {"int": 9},
        "a/b/c": {"int": 1},
        "ints": {"ints": [3, 1, 2]},
        "bools": {"bools": [False, True]},
        "strs": {"strings": ["a", "b", "c"]},
        "vers": {"list": {"version": ["1.0.0", "2.0.0"]}},
    },
    "capacity": {
        "q": {"value": "80Gi"},
        "half": {"value": "0.5"},
        "huge": {"value": "100E"},
        "none": {"value": "0"},
        "other.org/q": {"value": "3"},
    },
}


def bound(device: Plain) -> Subject:
    return bind_device(**device)


def outcome(expression: str, device: Plain = MIXED) -> Outcome:
    """Return what the selector says; a text that does not compile is the outcome "compile"."""
    try:
        selector = compile_device(expression)
    except CompileError as error:
        return Outcome("compile", str(error))
    return selector.evaluate(bound(device))


def says(expression: str, device: Plain = MIXED) -> str:
    return outcome(expression, device).kind
