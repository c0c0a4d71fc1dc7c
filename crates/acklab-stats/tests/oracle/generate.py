"""Writes values.txt beside this file: values of scipy that tests/oracle.rs holds the crate to.

    pip install scipy mpmath && python generate.py

Where scipy's own digits end above 2e-13 relative, the value of mpmath at 50 digits stands instead;
that check is made for parameters up to 500, beyond which mpmath takes minutes.
"""

import pathlib

import mpmath
import scipy
from scipy import special, stats

mpmath.mp.dps = 50


def exact(value, reference):
    """`value`, after comparing it with the reference of many digits; the reference if it is better."""
    difference = abs(mpmath.mpf(value) - reference)
    assert difference <= 1e-9 * abs(reference) + mpmath.mpf(10) ** -300, (value, reference)
    return float(reference) if difference > 2e-13 * abs(reference) else value


def ln_gamma():
    for x in [1e-8, 0.1, 0.5, 1.5, 2.5, 3.0, 10.0, 14.9, 15.1, 171.5, 1e4, 1e8]:
        yield x, exact(special.gammaln(x), mpmath.loggamma(x))


def beta_cdf():
    for a, b in [(0.5, 0.5), (1, 1), (2, 5), (36, 1), (1, 36), (240, 103), (20, 152), (205, 198),
                 (3e3, 7e3), (1.5, 1e5), (5e5, 5e5)]:
        mean, spread = a / (a + b), stats.beta(a, b).std()
        for shift in [-4, -1, 0, 1, 4]:
            x = mean + shift * spread
            if 1e-12 < x < 1 - 1e-12:
                value = special.betainc(a, b, x)
                if a + b <= 500:
                    value = exact(value, mpmath.betainc(a, b, 0, mpmath.mpf(x), regularized=True))
                yield a, b, x, value


def beta_quantile():
    for a, b in [(0.5, 0.5), (1, 2), (2, 5), (36, 1), (37, 1), (240, 103), (19, 153), (205, 198),
                 (3e3, 7e3), (1.5, 1e5)]:
        for p in [1e-6, 0.005, 0.025, 0.5, 0.975, 0.995]:
            yield a, b, p, quantile(a, b, p)


def quantile(a, b, p):
    """scipy's value, polished at 50 digits."""
    if a + b > 500:
        return float(stats.beta.ppf(p, a, b))
    x = mpmath.mpf(float(stats.beta.ppf(p, a, b)))
    for _ in range(4):
        density = x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)
        x -= (mpmath.betainc(a, b, 0, x, regularized=True) - mpmath.mpf(p)) / density
    return exact(float(stats.beta.ppf(p, a, b)), x)


def normal_quantile():
    for p in [1e-300, 1e-15, 1e-6, 0.005, 0.025, 0.3, 0.5 - 1e-9, 0.7, 0.975, 0.995, 1 - 1e-9]:
        reference = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1) if p > 1e-20 else None
        value = special.ndtri(p)
        yield p, exact(value, reference) if reference is not None else value


def t_quantile():
    for degrees in [1, 2, 2.5, 3, 4, 9, 29, 35, 99, 999, 1004]:
        for p in [0.6, 0.9, 0.95, 0.975, 0.995, 0.9995]:
            yield p, degrees, stats.t.ppf(p, degrees)


OUTCOMES = [(0, 1), (1, 1), (0, 36), (36, 36), (239, 341), (204, 402), (19, 171), (1, 72), (3, 10),
            (500, 1000), (17, 100_000)]


def clopper_pearson():
    """By beta.ppf: binomtest.proportion_ci("exact") searches the root to 1e-12 only."""
    for successes, runs in OUTCOMES:
        for confidence in [0.9, 0.95, 0.99]:
            tail = (1 - confidence) / 2
            low = quantile(successes, runs - successes + 1, tail) if successes else 0
            high = quantile(successes + 1, runs - successes, 1 - tail) if successes < runs else 1
            yield successes, runs, confidence, low, high


def wilson():
    for successes, runs in OUTCOMES:
        for confidence in [0.9, 0.95, 0.99]:
            ends = stats.binomtest(successes, runs).proportion_ci(confidence, "wilson")
            yield successes, runs, confidence, ends.low, ends.high


def bayes():
    """Equal-tailed credible intervals under Beta(a, b)."""
    for a, b in [(1, 1), (0.5, 0.5), (2, 8)]:
        for successes, runs in [(0, 36), (3, 10), (239, 341)]:
            low = quantile(a + successes, b + runs - successes, 0.025)
            high = quantile(a + successes, b + runs - successes, 0.975)
            yield a, b, successes, runs, low, high


def main():
    lines = [f"Written by generate.py with scipy {scipy.__version__}; do not edit. "
             "Each line: what is computed, its arguments, its value or values."]
    for rows in [ln_gamma, beta_cdf, beta_quantile, normal_quantile, t_quantile, clopper_pearson, wilson, bayes]:
        lines += [" ".join([rows.__name__, *(repr(float(cell)) for cell in row)]) for row in rows()]
    target = pathlib.Path(__file__).with_name("values.txt")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
