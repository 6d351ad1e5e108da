"""The integral of a smooth function, to the last bit as QUADPACK gives it."""

from __future__ import annotations

from collections.abc import Callable

# The rule of Gauss with 10 points and that of Kronrod with 21, from the outside in; the odd places are of both.
_NODES = (
    0.995657163025808080735527280689003,
    0.973906528517171720077964012084452,
    0.930157491355708226001207180059508,
    0.865063366688984510732096688423493,
    0.780817726586416897063717578345042,
    0.679409568299024406234327365114874,
    0.562757134668604683339000099272694,
    0.433395394129247190799265943165784,
    0.294392862701460198131126603103866,
    0.148874338981631210884826001129720,
    0.0,
)
_KRONROD = (
    0.011694638867371874278064396062192,
    0.032558162307964727478818972459390,
    0.054755896574351996031381300244580,
    0.075039674810919952767043140916190,
    0.093125454583697605535065465083366,
    0.109387158802297641899210590325805,
    0.123491976262065851077958109585166,
    0.134709217311473325928054001771707,
    0.142775938577060080797094273138717,
    0.147739104901338491374841515972068,
    0.149445554002916905664936468389821,
)
_GAUSS = (
    0.066671344308688137593568809893332,
    0.149451349150580593145863396957658,
    0.219086362515982043995534934228163,
    0.269266719309996355091226921569469,
    0.295524224714752870173815619188769,
)
_TOLERANCE = 1.49e-8  # absolute and relative; the default of scipy.integrate.quad
_MOST_PARTS = 50
_EPSILON = 2.220446049250313e-16
_ORDER = (1, 3, 5, 7, 9, 0, 2, 4, 6, 8)  # in which QUADPACK adds: floats depend on it
_BOTH = tuple((_NODES[place], _KRONROD[place], _GAUSS[place // 2]) for place in _ORDER[:5])
_OWN = tuple((_NODES[place], _KRONROD[place]) for place in _ORDER[5:])


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
        worst = max(range(len(parts)), key=lambda place: parts[place][0])
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
    return sum(part[3] for part in parts)


def _rule(function: Callable[[float], float], low: float, high: float) -> tuple[float, float, float]:
    """Return the integral by the rule of Kronrod, an estimate of its error, and that of |function - its mean|."""
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    middle = function(centre)
    gauss, kronrod = 0.0, _KRONROD[10] * middle
    total = abs(kronrod)
    sides: list[tuple[float, float, float]] = []
    for node, weight, gauss_weight in _BOTH:
        left, right = function(centre - half * node), function(centre + half * node)
        gauss += gauss_weight * (left + right)
        kronrod += weight * (left + right)
        total += weight * (abs(left) + abs(right))
        sides.append((weight, left, right))
    for node, weight in _OWN:
        left, right = function(centre - half * node), function(centre + half * node)
        kronrod += weight * (left + right)
        total += weight * (abs(left) + abs(right))
        sides.append((weight, left, right))
    mean = kronrod * 0.5
    spread = _KRONROD[10] * abs(middle - mean)
    spread += sum(weight * (abs(left - mean) + abs(right - mean)) for weight, left, right in sides)
    error, spread = abs((kronrod - gauss) * half), spread * abs(half)
    if spread and error:
        error = spread * min(1.0, (200.0 * error / spread) ** 1.5)
    return kronrod * half, max(_EPSILON * 50.0 * total * abs(half), error), spread
