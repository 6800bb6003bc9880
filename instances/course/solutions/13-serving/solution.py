"""Reference solution of assignment 13."""


def together(prefill: int, decode: int, batch: int, output: int) -> list[float]:
    """In the steps of an answer the prompts of a whole batch come."""
    token = decode + batch * prefill / output
    return [token, 1000.0 * batch / (output * token)]


def choose(table: list[list[int]], ttft: int, tpot: int, rate: int) -> list[int]:
    """All rows within the limits, with copies rounded up."""
    best: tuple[int, list[int]] | None = None
    for place, (size, first, token, each) in enumerate(table):
        if first <= ttft and token <= tpot:
            copies = -(-rate // each)
            if best is None or copies * size < best[0]:
                best = copies * size, [place, copies]
    return best[1] if best else []


def best_rates(kinds: list[list[int]], devices: int) -> list[int]:
    """The last worker is of some kind, or a device is idle."""
    best = [0]
    for count in range(1, devices + 1):
        reached = [best[count - size] + rate for size, rate in kinds if size <= count]
        best.append(max([best[count - 1], *reached]))
    return best


def apart(prefill: list[list[int]], decode: list[list[int]], devices: int) -> list[list[int]]:
    """All divisions of the devices; then the workers, from the table backwards."""
    first, second = best_rates(prefill, devices), best_rates(decode, devices)
    own = max(range(devices + 1), key=lambda count: min(first[count], second[devices - count]))
    return [workers(prefill, first, own), workers(decode, second, devices - own)]


def workers(kinds: list[list[int]], best: list[int], count: int) -> list[int]:
    """Workers that reach the best rate on so many devices."""
    found = [0] * len(kinds)
    while count:
        for place, (size, rate) in enumerate(kinds):
            if size <= count and best[count] == best[count - size] + rate:
                found[place] += 1
                count -= size
                break
        else:
            count -= 1
    return found


def bound(prefill: list[list[int]], decode: list[list[int]], devices: int) -> float:
    """x d_P rises and (devices - x) d_D falls with x: they are equal at the largest."""
    first, second = (max(rate / size for size, rate in kinds) for kinds in (prefill, decode))
    return devices * first * second / (first + second)
