"""Records when a real Linux kernel acknowledges: writes linux_acks.txt beside this file.

Run as root on Linux with tcpdump: python3 record.py. A client writes small messages over loopback
(TCP_NODELAY, MSS 1460) to a server that reads at once, never, or answers every n-th message.
Lines: D = data to the server (microseconds, bytes), A = its bare ACK (microseconds, bytes
acknowledged), R = its answer (microseconds, bytes, bytes acknowledged).

The gaps are long enough that the sender's tail-loss probe, which would be a duplicate that makes the
receiver quick again, does not fire (it did with 10 and 25 ms between unacknowledged messages).
"""

import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time

SCENARIOS = {
    "prompt": ("read", 0, [(100, 0.03)] * 40),
    "unread_100ms": ("leave", 0, [(100, 0.1)] * 40),
    "unread_55ms_400B": ("leave", 0, [(400, 0.055)] * 40),
    "unread_after_pause": (
        "leave",
        0,
        [(100, 0.055)] * 25 + [(100, 1.0)] + [(100, 0.055)] * 25,
    ),
    "answers_every_5th": ("read", 5, [(100, 0.055)] * 40),
    "answers_every_2nd": ("read", 2, [(100, 0.055)] * 40),
}


def serve(connection, answer_every):
    """Reads at once; answers the first of every `answer_every` messages."""
    count = 0
    try:
        while connection.recv(65536):
            count += 1
            if answer_every and count % answer_every == 1:
                connection.send(b"r" * 50)
    except OSError:
        pass


def exchange(port, reader, answer_every, writes):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
    listener.bind(("127.0.0.1", port))
    listener.listen(1)
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
    client.connect(("127.0.0.1", port))
    server, _ = listener.accept()
    if reader == "read":
        threading.Thread(target=serve, args=(server, answer_every), daemon=True).start()
    time.sleep(0.3)
    due = time.perf_counter()
    for size, gap in writes:
        due += gap
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left - 0.0002 if left > 0.0004 else 0)
        client.send(b"x" * size)
    time.sleep(1.0)
    return client, server, listener


def events(text, port):
    start = None
    for line in text.splitlines():
        match = re.match(
            r"(\d+)\.(\d+) IP \S+\.(\d+) > \S+?\.(\d+): Flags \[(\S+)\].*length (\d+)", line
        )
        if not match or set("SFR") & set(match[5]):
            continue
        at, length = int(match[1]) * 10**6 + int(match[2]) // 1000, int(match[6])
        start = start or at
        ack = int(re.search(r"ack (\d+)", line)[1]) - 1
        if int(match[4]) == port:
            if length:
                yield f"D {at - start} {length}"
        else:
            yield f"R {at - start} {length} {ack}" if length else f"A {at - start} {ack}"


def main():
    lines = []
    for port, (name, (reader, answer_every, writes)) in enumerate(SCENARIOS.items(), 47_001):
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            dump = ["tcpdump", "-i", "lo", "-n", "--time-stamp-precision=nano", "-U", "-w"]
            tcpdump = subprocess.Popen(
                [*dump, file.name, "tcp", "port", str(port)], stderr=subprocess.DEVNULL
            )
            time.sleep(0.7)
            sockets = exchange(port, reader, answer_every, writes)
            tcpdump.terminate()
            tcpdump.wait()
            for each in sockets:
                each.close()
            read = ["tcpdump", "-n", "-tt", "--time-stamp-precision=nano", "-r", file.name]
            text = subprocess.run(read, capture_output=True, text=True, check=True).stdout
        lines += [f"scenario {name} {reader}", *events(text, port)]
    path = pathlib.Path(__file__).with_name("linux_acks.txt")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
