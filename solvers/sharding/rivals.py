"""Megatron-LM's plans on the same mesh, where the cost model made the problem."""

from crossopt.instances.sharding.network import Network
from crossopt.solvers.answer import Rival
from crossopt.solvers.sharding.answer import Strategies
from crossopt.solvers.sharding.judge import weigh


def rivals_of(network: Network | None) -> tuple[Rival[Strategies], ...]:
    """Each as its strategies, the best first, and those whose memory does not fit last."""
    if network is None:
        return ()
    found = [(name, choice, weigh(network.problem, choice)) for name, choice in network.rules.items()]
    found.sort(key=lambda row: (bool(row[2].violations), 0 if row[2].violations else row[2].cost))
    return tuple(Rival(name, None, Strategies(tuple(choice))) for name, choice, _ in found)
