"""Golden values for acklab-control, by an implementation that shares nothing with it.

Writes zoh.txt, loop.txt, exact.txt, step.txt and margin.txt beside itself; the tests read them.
Made with Python 3.11.7, numpy 2.4.6, scipy 1.17.1, control 0.10.2:

    pip install numpy scipy control && python oracle.py
"""

from pathlib import Path

import control
import numpy as np
from scipy.linalg import expm
from scipy.signal import cont2discrete, tf2ss

HERE = Path(__file__).parent
H = 0.014
NUM, DEN = [36.3], [1.0, 36.17, 0.0]
KP, KI = 11.86, 47.45
FORMS = ["forward-euler", "backward-euler", "tustin"]

PLANTS = {
    "motor": (NUM, DEN, H),
    "motor-slow": (NUM, DEN, 1.7),
    "lag": ([2.0, 3.0], [1.0, 4.0], 0.1),
    "oscillator": ([1.0, 0.2], [1.0, 0.1, 25.0], 0.25),
    "unstable": ([1.0], [1.0, 0.5, -2.0, 0.25], 0.5),
    "stiff": ([5.0, 1.0, 2.0], [0.5, 60.0, 700.0, 30.0], 0.2),
}


def write(name, lines):
    (HERE / name).write_text("\n".join(lines) + "\n")


def numbers(values):
    return " ".join(repr(float(v)) for v in np.ravel(values))


def write_zoh():
    """name, period, fraction of an input delay | phi | gamma | gamma_older | gamma_newer, row by row."""
    lines = []
    for name, (num, den, h) in PLANTS.items():
        a, b, c, d = tf2ss(num, den)
        phi, gamma, *_ = cont2discrete((a, b, c, d), h, method="zoh")
        eps = 0.375 * h
        n = a.shape[0]

        def pair(t):
            m = np.zeros((n + 1, n + 1))
            m[:n, :n], m[:n, n:] = a * t, b * t
            e = expm(m)
            return e[:n, :n], e[:n, n:]

        (_, older), (rest, newer) = pair(eps), pair(h - eps)
        groups = [phi, gamma, rest @ older, newer]
        lines.append(f"{name} {h!r} {eps!r} | " + " | ".join(numbers(g) for g in groups))
    write("zoh.txt", lines)


def reference(k):
    return 1.0 if (14 * k // 1000) % 2 == 0 else 2.0


def loop(ticks, form, to_controller, limit=np.inf, seconds=30):
    """The loop with `ticks` periods of delay; returns S, ITAE, IAE, ISE and the positions."""
    a, b, _, _ = tf2ss(NUM, DEN)
    phi, gamma, *_ = cont2discrete((a, b, np.eye(2), np.zeros((2, 1))), H, method="zoh")
    gain = NUM[0]
    x = np.zeros(2)
    integral = last = 0.0
    positions, commands = [], []
    s = iae = ise = 0.0
    for k in range(int(np.ceil(seconds / H)) + 1):
        y = gain * x[1]
        positions.append(y)
        error = reference(k) - y
        s += k * H * abs(error)
        iae += H * abs(error)
        ise += H * error * error
        seen = positions[k - to_controller] if k >= to_controller else 0.0
        e = reference(k) - seen
        if form == "forward-euler":
            u = KP * e + integral
            integral += KI * H * e
        elif form == "backward-euler":
            integral += KI * H * e
            u = KP * e + integral
        else:
            integral += KI * H * (e + last) / 2
            last = e
            u = KP * e + integral
        commands.append(min(max(u, -limit), limit))
        back = ticks - to_controller
        acting = commands[k - back] if k >= back else 0.0
        x = phi @ x + gamma[:, 0] * acting
    return s, H * s, iae, ise, positions


def write_loop():
    """ticks of delay, integration, of them to the controller, limit | S ITAE IAE ISE."""
    lines = []
    for ticks in range(7):
        for form in FORMS:
            for to_controller in sorted({ticks // 2, 0, ticks}):
                costs = loop(ticks, form, to_controller)[:4]
                lines.append(f"{ticks} {form} {to_controller} inf | {numbers(costs)}")
    for limit in (24.0, 12.0):
        costs = loop(6, "forward-euler", 3, limit)[:4]
        lines.append(f"6 forward-euler 3 {limit} | {numbers(costs)}")
    write("loop.txt", lines)


def exact_loop(delay_us, to_controller_us, form):
    """Driven by events: the command of sample k acts from kh + delay; S."""
    a, b, _, _ = tf2ss(NUM, DEN)
    h_us = 14_000
    whole, eps = divmod(delay_us, h_us)

    def pair(t):
        m = np.zeros((3, 3))
        m[:2, :2], m[:2, 2:] = a * t, b * t
        e = expm(m)
        return e[:2, :2], e[:2, 2]

    (_, g_older), (rest, newer) = pair(eps / 1e6), pair((h_us - eps) / 1e6)
    phi, older = pair(H)[0], rest @ g_older
    x, integral, last, s, commands = np.zeros(2), 0.0, 0.0, 0.0, []
    for k in range(int(np.ceil(30 / H)) + 1):
        y = NUM[0] * x[1]
        s += k * H * abs(reference(k) - y)
        computed_us = k * h_us + to_controller_us
        e = (1.0 if (computed_us // 1_000_000) % 2 == 0 else 2.0) - y
        if form == "forward-euler":
            u = KP * e + integral
            integral += KI * H * e
        elif form == "backward-euler":
            integral += KI * H * e
            u = KP * e + integral
        else:
            integral += KI * H * (e + last) / 2
            last = e
            u = KP * e + integral
        commands.append(u)

        def at(i):
            return commands[i] if i >= 0 else 0.0

        x = phi @ x + newer * at(k - whole) + older * at(k - whole - 1)
    return s


def write_exact():
    """delay in us, integration, us of it to the controller | S."""
    lines = []
    for delay_us in (1, 3_300, 14_000, 20_000, 28_500, 41_999, 50_000, 60_250, 71_000):
        for form in FORMS:
            for to_controller_us in (0, delay_us // 2):
                s = exact_loop(delay_us, to_controller_us, form)
                lines.append(f"{delay_us} {form} {to_controller_us} | {numbers([s])}")
    write("exact.txt", lines)


def write_step():
    """Closed-loop step responses by python-control: ticks of delay | y(0) y(1) ... y(70)."""
    lines = []
    plant = control.c2d(control.tf(NUM, DEN), H, method="zoh")
    z = control.tf([1, 0], [1], H)
    one = control.tf([1], [1], H)
    for ticks in range(4):
        for form in FORMS:
            integral = {
                "forward-euler": KI * H / (z - one),
                "backward-euler": KI * H * z / (z - one),
                "tustin": KI * H / 2 * (z + one) / (z - one),
            }[form]
            opened = (KP * one + integral) * plant
            for _ in range(ticks):
                opened = opened / z
            closed = control.feedback(opened, 1)
            time = np.arange(71) * H
            _, y = control.forced_response(closed, time, np.ones(71))
            mine = loop(ticks, form, 0, seconds=0.98)[4]
            assert np.allclose(y, mine[:71], rtol=0, atol=1e-9), (ticks, form)
            lines.append(f"{ticks} {form} | {numbers(mine[:71])}")
    write("step.txt", lines)


def closed_loop(delay, form):
    """One tick of plant, PI and delay line as a matrix: x, integral, last error, past commands."""
    a, b, c, _ = tf2ss(NUM, DEN)
    whole, eps = int(delay // H), delay % H
    if H - eps < 1e-12:
        whole, eps = whole + 1, 0.0

    def pair(t):
        m = np.zeros((3, 3))
        m[:2, :2], m[:2, 2:] = a * t, b * t
        e = expm(m)
        return e[:2, :2], e[:2, 2]

    (_, g_older), (rest, newer) = pair(eps), pair(H - eps)
    phi, older = pair(H)[0], rest @ g_older
    # States: x (2), integral, last error, u(k-1) ... u(k-whole-1).
    n = 4 + whole + 1
    u = np.zeros(n)
    u[:2] = -KP * c[0]
    u[2] = 1.0
    error = np.zeros(n)
    error[:2] = -c[0]
    if form == "backward-euler":
        u += KI * H * error
    if form == "tustin":
        u += KI * H / 2 * error
        u[3] += KI * H / 2
    past = [u] + [np.eye(n)[4 + i] for i in range(whole + 1)]
    m = np.zeros((n, n))
    m[:2, :2] = phi
    m[:2] += np.outer(newer, past[whole]) + np.outer(older, past[whole + 1])
    m[2, 2] = 1.0
    m[2] += KI * H * error
    if form == "tustin":
        m[2] = np.eye(n)[2] + KI * H / 2 * error
        m[2, 3] += KI * H / 2
    m[3] = error
    for i in range(whole + 1):
        m[4 + i] = past[i]
    return m


def radius(delay, form):
    return max(abs(np.linalg.eigvals(closed_loop(delay, form))))


def write_margin():
    """radius: integration, delay | spectral radius; margin: integration | seconds."""
    lines = []
    for form in FORMS:
        for ms in (0, 14, 28, 42, 56, 70, 84, 3, 50, 77):
            lines.append(f"radius {form} {ms} | {numbers([radius(ms / 1e3, form)])}")
        low, high = 0.0, 0.2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if radius(middle, form) < 1 else (low, middle)
        lines.append(f"margin {form} | {numbers([low])}")
    loop_tf = control.tf([KP, KI], [1, 0]) * control.tf(NUM, DEN)
    _, phase, _, crossover = control.margin(loop_tf)
    margin = np.deg2rad(phase) / crossover
    lines.append(f"continuous | {numbers([crossover, phase, margin])}")
    write("margin.txt", lines)


if __name__ == "__main__":
    write_zoh()
    write_loop()
    write_exact()
    write_step()
    write_margin()
