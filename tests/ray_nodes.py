"""How do tests start a ray cluster of several nodes on this machine?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ray_nodes() -> Iterator[Any]:
    """Start a cluster of a head without CPUs and two nodes with one each."""
    from ray import cluster_utils

    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()
