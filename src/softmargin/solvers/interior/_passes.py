"""Compiled part of the interior point method; see `low_rank.py`. Each function works on the rows lo to hi."""

from softmargin.core.jit import compiled


@compiled
def weigh(x, t, z, s, residual, least, lo, hi, d_inv, g):
    """1 / D, and the right-hand side of the affine direction."""
    for i in range(lo, hi):
        d_inv[i] = 1.0 / max(z[i] / x[i] + s[i] / t[i], least)
        g[i] = residual[i] - z[i] + s[i]


@compiled
def predict(x, t, z, s, d_inv, g, y, lo, hi, dx):
    """The affine direction: writes dx; returns 1 / (the longest step), and the sum of dx dz + dt ds."""
    inverse = 0.0
    second = 0.0
    for i in range(lo, hi):
        d = d_inv[i] * (g[i] - y[i])
        rise = d / x[i]
        fall = d / t[i]
        # dz / z = -1 - dx / x and ds / s = -1 + dx / t
        inverse = max(inverse, max(max(-rise, fall), max(1.0 + rise, 1.0 - fall)))
        second += d * (s[i] * (1.0 - fall) - z[i] * (1.0 + rise))
        dx[i] = d
    return inverse, second


@compiled
def second_order(x, t, z, s, affine, target, lo, hi, to_x, to_t):
    """What the products should change by: to `target`, less what the affine direction leaves in second order."""
    for i in range(lo, hi):
        d = affine[i]
        to_x[i] = target - x[i] * z[i] + d * z[i] * (1.0 + d / x[i])
        to_t[i] = target - t[i] * s[i] - d * s[i] * (1.0 - d / t[i])


@compiled
def recentre(x, t, z, s, dx, dz, ds, step, least, most, lo, hi, to_x, to_t):
    """Add what brings products that a step this long would leave outside [least, most] back to there."""
    for i in range(lo, hi):
        product = (x[i] + step * dx[i]) * (z[i] + step * dz[i])
        to_x[i] += max(min(max(product, least), most) - product, -most)
        product = (t[i] - step * dx[i]) * (s[i] + step * ds[i])
        to_t[i] += max(min(max(product, least), most) - product, -most)


@compiled
def aim(x, t, residual, to_x, to_t, lo, hi, g):
    """The right-hand side for these changes of the products."""
    for i in range(lo, hi):
        g[i] = residual[i] + to_x[i] / x[i] - to_t[i] / t[i]


@compiled
def reach(x, t, z, s, d_inv, g, y, to_x, to_t, lo, hi, dx, dz, ds):
    """The direction; returns 1 / (the longest step)."""
    inverse = 0.0
    for i in range(lo, hi):
        d = d_inv[i] * (g[i] - y[i])
        rise = (to_x[i] - z[i] * d) / x[i]
        fall = (to_t[i] + s[i] * d) / t[i]
        inverse = max(inverse, max(max(-d / x[i], d / t[i]), max(-rise / z[i], -fall / s[i])))
        dx[i] = d
        dz[i] = rise
        ds[i] = fall
    return inverse


@compiled
def move(x, t, z, s, residual, dx, dz, ds, step, left, lo, hi, new):
    """The rows x, t, z, s, residual of `new`; `left` is the share of the residual that stays."""
    for i in range(lo, hi):
        new[0, i] = x[i] + step * dx[i]
        new[1, i] = t[i] - step * dx[i]
        new[2, i] = z[i] + step * dz[i]
        new[3, i] = s[i] + step * ds[i]
        new[4, i] = left * residual[i]
