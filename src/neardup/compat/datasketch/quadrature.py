"""The integral of a smooth function, to the last bit as QUADPACK gives it."""

from __future__ import annotations

from collections.abc import Callable

# The rules of Kronrod with 21 points and of Gauss with 10: nodes on both sides of the middle, their weights by each.
# In the order in which QUADPACK adds: floats depend on it.
_RULE = (
    (0.9739065285171717, 0.032558162307964725, 0.06667134430868814),
    (0.8650633666889845, 0.07503967481091996, 0.1494513491505806),
    (0.6794095682990244, 0.10938715880229764, 0.21908636251598204),
    (0.4333953941292472, 0.13470921731147334, 0.26926671930999635),
    (0.14887433898163122, 0.14773910490133849, 0.29552422471475287),
    (0.9956571630258081, 0.011694638867371874, 0.0),
    (0.9301574913557082, 0.054755896574351995, 0.0),
    (0.7808177265864169, 0.0931254545836976, 0.0),
    (0.5627571346686047, 0.12349197626206584, 0.0),
    (0.2943928627014602, 0.14277593857706009, 0.0),
)
_MIDDLE = 0.1494455540029169
_TOLERANCE = 1.49e-8  # absolute and relative; the default of scipy.integrate.quad
_MOST_PARTS = 50
_EPSILON = 2.220446049250313e-16


def integrate(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the integral of a function from low to high.

    Notes
    -----
    Piessens, de Doncker-Kapenga, Überhuber and Kahaner, QUADPACK (1983), routine QAGS without its extrapolation: the
    interval with the largest estimated error is halved until the sum of the errors is small. Extrapolation begins
    only after halvings that smooth functions do not need.
    """
    result, error, spread = _rule(function, low, high)
    if error == 0.0 or (error <= max(_TOLERANCE, _TOLERANCE * abs(result)) and error != spread):
        return result  # an error equal to the spread is no estimate
    parts = [(error, low, high, result)]
    while len(parts) == 1 or (error > max(_TOLERANCE, _TOLERANCE * abs(result)) and len(parts) < _MOST_PARTS):
        worst = max(range(len(parts)), key=lambda index: parts[index][0])
        worst_error, start, end, value = parts[worst]
        middle = 0.5 * (start + end)
        left, left_error, _ = _rule(function, start, middle)
        right, right_error, _ = _rule(function, middle, end)
        halves = [(left_error, start, middle, left), (right_error, middle, end, right)]
        if right_error > left_error:
            halves.reverse()
        parts[worst], error = halves[0], error + (left_error + right_error) - worst_error
        parts.append(halves[1])
        result += (left + right) - value
    total = 0.0
    for part in parts:  # since Python 3.12 `sum` compensates, which QUADPACK does not
        total += part[3]
    return total


def _rule(function: Callable[[float], float], low: float, high: float) -> tuple[float, float, float]:
    """Return the integral by the rule of Kronrod, an estimate of its error, and that of |function - its mean|."""
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    middle = function(centre)
    gauss, kronrod, total = 0.0, _MIDDLE * middle, abs(_MIDDLE * middle)
    sides: list[tuple[float, float, float]] = []
    for node, weight, gauss_weight in _RULE:
        left, right = function(centre - half * node), function(centre + half * node)
        gauss += gauss_weight * (left + right)
        kronrod += weight * (left + right)
        total += weight * (abs(left) + abs(right))
        sides.append((weight, left, right))
    mean = kronrod * 0.5
    spread = _MIDDLE * abs(middle - mean)
    deviations = 0.0
    for weight, left, right in sides:
        deviations += weight * (abs(left - mean) + abs(right - mean))
    spread += deviations
    error, spread = abs((kronrod - gauss) * half), spread * abs(half)
    if spread and error:
        error = spread * min(1.0, (200.0 * error / spread) ** 1.5)
    return kronrod * half, max(_EPSILON * 50.0 * total * abs(half), error), spread
