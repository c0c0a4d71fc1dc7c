"""A second implementation of docs/rudp.md section 3: handshakes, key schedule, sealed packets.

Prints the vectors that crates/acklab-net/src/rudp/{noise/vectors,seal/tests,keys/tests}.rs hold.
Its own are BLAKE3 (one chunk), ristretto255 (RFC 9496), CPace (draft-irtf-cfrg-cpace-21) and Noise
(revision 34); X25519, AES-GCM and ChaCha20-Poly1305 come from the package `cryptography`, whose
ciphers are OpenSSL's. It checks itself against the empty BLAKE3 and the draft's appendix B.3.

    python3 crates/acklab-net/tests/oracle/rudp_handshake.py
"""

import base64
import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

# --- BLAKE3 of at most 1024 bytes

B3_IV = [
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
]  # fmt: skip
B3_ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
B3_QUARTERS = [
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
]  # fmt: skip
CHUNK_START, CHUNK_END, ROOT, KEYED, CONTEXT, MATERIAL = 1, 2, 8, 16, 32, 64


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def compress(chaining: list[int], block: bytes, flags: int) -> list[int]:
    message = words(block.ljust(64, b"\0"))
    v = chaining + B3_IV[:4] + [0, 0, len(block), flags]

    def rotate(x: int, n: int) -> int:
        return ((x >> n) | (x << (32 - n))) & 0xFFFFFFFF

    for _ in range(7):
        for i, (a, b, c, d) in enumerate(B3_QUARTERS):
            for x, left, right in ((message[2 * i], 16, 12), (message[2 * i + 1], 8, 7)):
                v[a] = (v[a] + v[b] + x) & 0xFFFFFFFF
                v[d] = rotate(v[d] ^ v[a], left)
                v[c] = (v[c] + v[d]) & 0xFFFFFFFF
                v[b] = rotate(v[b] ^ v[c], right)
        message = [message[i] for i in B3_ORDER]
    return [v[i] ^ v[i + 8] for i in range(8)]


def blake3(data: bytes, key: list[int] = B3_IV, flags: int = 0) -> bytes:
    assert len(data) <= 1024
    blocks = [data[at : at + 64] for at in range(0, len(data), 64)] or [b""]
    chaining = key
    for i, block in enumerate(blocks):
        start = CHUNK_START if i == 0 else 0
        end = CHUNK_END | ROOT if i == len(blocks) - 1 else 0
        chaining = compress(chaining, block, flags | start | end)
    return b"".join(word.to_bytes(4, "little") for word in chaining)


def derive(context: str, material: bytes) -> bytes:
    return blake3(material, words(blake3(context.encode(), flags=CONTEXT)), MATERIAL)


assert blake3(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

# --- ristretto255, RFC 9496 section 4

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235
Point = tuple[int, int, int, int]


def sqrt_ratio(u: int, v: int) -> tuple[bool, int]:
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    if check in (-u % P, -u * SQRT_M1 % P):
        r = r * SQRT_M1 % P
    return check in (u % P, -u % P), min(r, P - r, key=lambda x: x & 1)


INVSQRT_A_MINUS_D = sqrt_ratio(1, -1 - D)[1]


def add(a: Point, b: Point) -> Point:
    low, high = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    c, d = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    e, f, g, h = high - low, d - c, d + c, high + low
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar: int, point: Point) -> Point:
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def element(half: bytes) -> Point:
    t = (int.from_bytes(half, "little") & ((1 << 255) - 1)) % P
    r = SQRT_M1 * t * t % P
    u, v = (r + 1) * (1 - D * D), (-1 - r * D) * (r + D)
    square, s = sqrt_ratio(u, v)
    c = -1
    if not square:
        s = s * t % P
        s = s if s & 1 else -s % P
        c = r
    n = c * (r - 1) * (D - 1) ** 2 - v
    w = (2 * s * v, n * SQRT_AD_MINUS_ONE, 1 - s * s, 1 + s * s)
    return w[0] * w[3] % P, w[2] * w[1] % P, w[1] * w[3] % P, w[0] * w[2] % P


def encode(point: Point) -> bytes:
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    inverse = sqrt_ratio(1, u1 * u2 * u2)[1]
    d1, d2 = inverse * u1 % P, inverse * u2 % P
    z_inverse = d1 * d2 * t % P
    last = d2
    if t * z_inverse % P & 1:
        x, y, last = y * SQRT_M1 % P, x * SQRT_M1 % P, d1 * INVSQRT_A_MINUS_D % P
    if x * z_inverse % P & 1:
        y = -y % P
    s = last * (z - y) % P
    return (s if not s & 1 else P - s).to_bytes(32, "little")


def decode(data: bytes) -> Point:
    s = int.from_bytes(data, "little")
    assert s < P and not s & 1
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, inverse = sqrt_ratio(1, v * u2 * u2)
    assert square
    x = 2 * s * inverse * u2 % P
    x = P - x if x & 1 else x
    y = u1 * inverse * inverse * u2 * v % P
    return x, y, 1, x * y % P


# --- CPace, sections 7.2, 8.1 and 8.3


def lv_cat(*parts: bytes) -> bytes:
    text = b""
    for part in parts:
        length = len(part)
        while length >= 128:
            text += bytes([length & 127 | 128])
            length >>= 7
        text += bytes([length]) + part
    return text


def generator(passphrase: bytes, channel: bytes, session: bytes) -> Point:
    dsi = b"CPaceRistretto255"
    padding = max(0, 128 - len(lv_cat(passphrase)) - len(lv_cat(dsi)) - 1)
    text = lv_cat(dsi, passphrase, bytes(padding), channel, session)
    digest = hashlib.sha512(text).digest()
    return add(element(digest[:32]), element(digest[32:]))


def session_key(session: bytes, shared: bytes, *transcript: bytes) -> bytes:
    text = lv_cat(b"CPaceRistretto255_ISK", session, shared) + lv_cat(*transcript)
    return hashlib.sha512(text).digest()


def little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def check_against_the_draft() -> None:
    read = bytes.fromhex
    session = read("7e4b4791d6a8ef019b936c79fb7f2c57")
    g = generator(b"Password", b"\x0bA_initiator\x0bB_responder", session)
    y_a = little(read("da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08"))
    share_a = encode(multiply(y_a, g))
    assert share_a.hex() == "d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157"
    share_b = read("3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258")
    shared = encode(multiply(y_a, decode(share_b)))
    key = session_key(session, shared, share_a, b"ADa", share_b, b"ADb")
    assert key.hex().startswith("b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dcae7b35cd")


# --- Noise with X25519, ChaChaPoly, BLAKE2s


class Noise:
    def __init__(self, name: bytes, prologue: bytes) -> None:
        self.hash = name.ljust(32, b"\0") if len(name) <= 32 else hashlib.blake2s(name).digest()
        self.chain, self.key, self.count = self.hash, b"", 0
        self.mix_hash(prologue)

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.blake2s(self.hash + data).digest()

    def expand(self, material: bytes, outputs: int) -> list[bytes]:
        secret = hmac.new(self.chain, material, hashlib.blake2s).digest()
        result = [b""]
        for i in range(1, outputs + 1):
            result.append(hmac.new(secret, result[-1] + bytes([i]), hashlib.blake2s).digest())
        return result[1:]

    def mix_key(self, material: bytes) -> None:
        (self.chain, self.key), self.count = self.expand(material, 2), 0

    def mix_psk(self, psk: bytes) -> None:
        (self.chain, extra, self.key), self.count = self.expand(psk, 3), 0
        self.mix_hash(extra)

    def encrypt(self, text: bytes) -> bytes:
        nonce = bytes(4) + self.count.to_bytes(8, "little")
        text = ChaCha20Poly1305(self.key).encrypt(nonce, text, self.hash)
        self.count += 1
        self.mix_hash(text)
        return text

    def split(self) -> list[bytes]:
        return self.expand(b"", 2)


def public(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: bytes, peer: bytes) -> bytes:
    own = X25519PrivateKey.from_private_bytes(private)
    return own.exchange(X25519PublicKey.from_public_bytes(peer))


# --- docs/rudp.md section 3

PROLOGUE = b"\x80AKL\x02" + bytes(8) + b"\0client_id\x01\x03"
PARAMETERS = b"what the client can take"
PAYLOAD = b"21 bytes of the headerwhat the server can take"
EPHEMERAL_A, EPHEMERAL_B = b"\x31" * 32, b"\x32" * 32


def sealed(
    secret: bytes, cipher: int, path: int, number: int, header: bytes, text: bytes
) -> bytes:
    key, iv = derive("acklab rudp 1 key", secret), derive("acklab rudp 1 iv", secret)[:12]
    place = path.to_bytes(4, "big") + number.to_bytes(8, "big")
    nonce = bytes(a ^ b for a, b in zip(iv, place, strict=True))
    aead = AESGCM(key[:16]) if cipher == 0 else ChaCha20Poly1305(key)
    return aead.encrypt(nonce, text, header)


def passphrase_handshake() -> tuple[bytes, bytes, list[bytes]]:
    session = b"\x05" * 16
    g = generator(b"bada-kilo-nuta-sida", b"acklab rudp 1", session)
    # The highest four bits are cleared: 252 are left.
    y_a, y_b = (little(bytes([byte]) * 31 + bytes([byte & 15])) for byte in (0x61, 0x62))
    share_a, share_b = encode(multiply(y_a, g)), encode(multiply(y_b, g))
    shared = encode(multiply(y_b, decode(share_a)))
    psk = derive("acklab rudp 1 psk", session_key(session, shared, share_a, b"", share_b, b""))
    e_a, e_b = public(EPHEMERAL_A), public(EPHEMERAL_B)
    noise = Noise(b"Noise_NNpsk2_25519_ChaChaPoly_BLAKE2s", PROLOGUE + session + share_a)
    noise.mix_hash(e_a)
    noise.mix_key(e_a)
    initial = session + share_a + e_a + noise.encrypt(PARAMETERS)
    noise.mix_hash(e_b)
    noise.mix_key(e_b)
    noise.mix_key(agree(EPHEMERAL_A, e_b))
    noise.mix_psk(psk)
    return initial, share_b + e_b + noise.encrypt(PAYLOAD), noise.split()


def keys_handshake() -> tuple[bytes, bytes, list[bytes]]:
    client, server = b"\x01" * 32, b"\x02" * 32
    e_a, e_b = public(EPHEMERAL_A), public(EPHEMERAL_B)
    noise = Noise(b"Noise_IK_25519_ChaChaPoly_BLAKE2s", PROLOGUE)
    noise.mix_hash(public(server))
    noise.mix_hash(e_a)
    noise.mix_key(agree(EPHEMERAL_A, public(server)))
    shown = noise.encrypt(public(client))
    noise.mix_key(agree(client, public(server)))
    initial = e_a + shown + noise.encrypt(PARAMETERS)
    mac_key = words(derive("acklab rudp 2 mac", public(server)))
    initial += blake3(PROLOGUE + initial, mac_key, KEYED)[:16]
    noise.mix_hash(e_b)
    noise.mix_key(agree(EPHEMERAL_B, e_a))
    noise.mix_key(agree(EPHEMERAL_B, public(client)))
    return initial, e_b + noise.encrypt(PAYLOAD), noise.split()


def main() -> None:
    check_against_the_draft()
    for name, handshake in (("PASS", passphrase_handshake), ("KEYS", keys_handshake)):
        initial, answer, (up, down) = handshake()
        print(f"{name}_INITIAL {initial.hex()}")
        print(f"{name}_ANSWER {answer.hex()}")
        print(f"{name}_UP {sealed(up, 1, 0, 0, b'header', b'up').hex()}")
        print(f"{name}_DOWN {sealed(down, 1, 0, 0, b'header', b'down').hex()}")

    secret = b"\x01" * 32
    print("key", derive("acklab rudp 1 key", secret).hex())
    print("iv", derive("acklab rudp 1 iv", secret)[:12].hex())
    header = b"\0connect0\x02\0\0\0\x07"
    for phase in range(2):
        for cipher in range(2):
            packet = sealed(secret, cipher, 2, 0x1_0000_0007, header, b"frames")
            print(f"phase {phase} cipher {cipher}", packet.hex())
        secret = derive("acklab rudp 1 update", secret)
        print("update", secret.hex())

    key = b"\x09" * 32
    text = base64.b32encode(key + blake3(key)[:3]).decode().lower()
    print("text", "acklab1" + text, "fingerprint", blake3(key)[:8].hex())


if __name__ == "__main__":
    main()
