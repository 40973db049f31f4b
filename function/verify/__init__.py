"""An independent checker of decisions. It shares no code with the scheduler, on purpose.

It reads the same objects (`function.api`) and asks the same selectors (`function.cel`), but it decides
nothing: it takes a decision and looks for a rule that it breaks. Every check is the rule as it is written in
docs/how-it-schedules.md, tried out on all possibilities where that is what the rule says.
"""

from function.verify.adapters import AdapterState, check_adapter_state, check_adapters, read_host, read_place
from function.verify.rules import check
from function.verify.state import Decided, State, Violation, check_state

__all__ = [
    "AdapterState",
    "Decided",
    "State",
    "Violation",
    "check",
    "check_adapter_state",
    "check_adapters",
    "check_state",
    "read_host",
    "read_place",
]
