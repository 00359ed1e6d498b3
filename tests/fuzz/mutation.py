"""Damage: bytes, lengths, words and lines, the structure of JSON, and arrays behind a checksum that is right again."""

import json
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from examples import COMPRESSORS, Example

INTEGERS = [0, 1, -1, 2, 7, 127, 128, 255, 256, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-300, 1e150, 1e308, -1e308, float("nan"), float("inf"), -float("inf")]
WORDS = [
    b"nan",
    b"inf",
    b"-",
    b"1e400",
    b"1e-400",
    b":",
    b"0:1",
    b"2147483647:1",
    b"400000000:2",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
]
WORDS += [
    b"#",
    b"\x00",
    b"\n",
    b",",
    b";",
    b"qid:1",
    b'"',
    b"9" * 30,
    b"0x10",
    b"1_0",
    b"\xc3\x28",
    b"SV",
    b"w",
    b"one_class",
    b"nu_svr",
    b"ONECLASS_SVM",
    b"rho 1",
    b"{",
    b"]",
]
VALUES: list[Any] = [None, True, False, "", "x", "\ud800", "\x1b[31m", [], {}, [[]], {"a": 1}, "nan", 10**30, -(10**30)]
VALUES += [
    {"$float": "nan"},
    {"$float": "inf"},
    {"$float": "-inf"},
    {"$float": 1},
    {"$mapping": [[1, 2]]},
    {"$object": "OCAS", "fields": {}},
]
VALUES += [*INTEGERS, *(number for number in NUMBERS if abs(number) < 1e400 or number == 0.0)]


def mutant(example: Example, others: list[Example], rng: Random) -> bytes:
    """A damaged version of a file; `others` are examples of the same format, for parts of them."""
    raw = example.raw
    inside = _INSIDE.get(example.form, _damaged_bytes)
    compress = COMPRESSORS.get(example.ending[example.ending.rfind(".") :] if example.ending else "", bytes)
    if rng.random() < 0.25:
        return _damaged_bytes(compress(raw), [other.raw for other in others], rng)
    return compress(inside(raw, [other.raw for other in others], rng))


# --- bytes and words ----------------------------------------------------------------------------------------------


def _damaged_bytes(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    for _ in range(rng.choice([1, 1, 2, 4])):
        raw = rng.choice(_BYTES)(raw, others, rng)
    return raw


def _flip(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    if not raw:
        return raw
    changed = bytearray(raw)
    changed[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_length(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    """An integer of 1, 2, 4 or 8 bytes, in either order, as lengths are."""
    size = rng.choice([1, 2, 4, 8])
    number = rng.choice(INTEGERS) % 256**size
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + number.to_bytes(size, rng.choice(["little", "big"])) + raw[at + size :]


def _cut(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    return raw[: rng.randrange(len(raw) + 1)]


def _range(raw: bytes, rng: Random) -> tuple[int, int]:
    begin = rng.randrange(len(raw) + 1)
    return begin, min(len(raw), begin + rng.choice([1, 4, 16, 64, 1024]))


def _drop(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    begin, end = _range(raw, rng)
    return raw[:begin] + raw[end:]


def _repeat(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    begin, end = _range(raw, rng)
    return raw[:end] + raw[begin:end] * rng.choice([1, 2, 50]) + raw[end:]


def _insert(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + rng.randbytes(rng.choice([1, 4, 64])) + raw[at:]


def _splice(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    other = rng.choice(others)
    return raw[: rng.randrange(len(raw) + 1)] + other[rng.randrange(len(other) + 1) :]


_BYTES: list[Callable[[bytes, list[bytes], Random], bytes]] = [
    _flip,
    _flip,
    _set_length,
    _cut,
    _drop,
    _repeat,
    _insert,
    _splice,
]


def _damaged_text(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    """Words and lines that are missing, repeated, changed or foreign."""
    if rng.random() < 0.3:
        return _damaged_bytes(raw, others, rng)
    lines = raw.split(b"\n")
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        words = lines[at].replace(b",", b" ,").split(b" ")
        k = rng.randrange(len(words))
        match rng.randrange(6):
            case 0:
                del lines[at]
                lines = lines or [b""]
            case 1:
                lines.insert(rng.randrange(len(lines) + 1), lines[at])
            case 2:
                lines[at] = b" ".join(words[:k] + words[k + 1 :])
            case 3:
                lines[at] = b" ".join([*words[:k], rng.choice(WORDS), *words[k:]])
            case 4:
                lines[at] = b" ".join([*words[:k], str(rng.choice(INTEGERS + NUMBERS)).encode(), *words[k + 1 :]])
            case _:
                lines[at] = _damaged_bytes(lines[at], others, rng)
    return b"\n".join(lines)


# --- model files --------------------------------------------------------------------------------------------------


def _damaged_model(raw: bytes, others: list[bytes], rng: Random) -> bytes:
    """A file whose checksum is right, so that what it says is looked at."""
    if rng.random() < 0.1:
        return _damaged_bytes(raw, others, rng)
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header["__metadata__"]["model"] = json.loads(header["__metadata__"]["model"])
    for _ in range(rng.choice([1, 1, 2])):
        match rng.randrange(10):
            case 0:
                header = _damaged_tree(header, rng)
            case 1 | 2 | 3:
                data = _damaged_array(header, data, rng)
            case _:
                header["__metadata__"]["model"] = _damaged_tree(header["__metadata__"]["model"], rng)
        if not _is_whole(header):
            break
    return _sealed(header, data)


def _is_whole(header: Any) -> bool:
    return (
        isinstance(header, dict) and isinstance(header.get("__metadata__"), dict) and "model" in header["__metadata__"]
    )


def _damaged_tree(tree: Any, rng: Random) -> Any:
    """A copy of a tree of JSON in which something is different somewhere."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    if not keys or rng.random() < 0.05:
        return rng.choice([*VALUES, [tree], {"a": tree}, str(tree)])
    copy = tree.copy()
    key = rng.choice(keys)
    chance = rng.random()
    if chance < 0.06:
        del copy[key]
    elif chance < 0.09 and isinstance(copy, list):
        copy.insert(key, copy[key])
    elif chance < 0.12:
        copy[key] = copy[rng.choice(keys)]
    elif chance < 0.14 and isinstance(copy, dict):
        copy[rng.choice(["new", "$float", "state", "coef_"])] = rng.choice(VALUES)
    else:
        copy[key] = _damaged_tree(copy[key], rng)
    return copy


def _damaged_array(header: dict, data: bytes, rng: Random) -> bytes:
    """Some entry of an array is something else."""
    places = []
    for entry in header.values():
        match entry:
            case {"dtype": str(code), "data_offsets": [int(begin), int(end)]} if 0 <= begin < end <= len(data):
                places.append((code, begin, end))
    if not places:
        return data
    code, begin, end = rng.choice(places)
    size = max(int("".join(filter(str.isdigit, code)) or 8) // 8, 1)
    count = max((end - begin) // size, 1)
    for _ in range(rng.choice([1, 1, count])):
        at = begin + size * rng.randrange(count)
        if size == 8 and rng.random() < 0.7 and code.startswith("F"):
            entry = struct.pack("<d", rng.choice(NUMBERS))
        else:
            entry = (rng.choice(INTEGERS) % 256**size).to_bytes(size, "little")
        data = data[:at] + entry + data[at + size :]
    return data


def _sealed(header: Any, data: bytes) -> bytes:
    if _is_whole(header):
        metadata = dict(header["__metadata__"])
        metadata["model"] = json.dumps(metadata["model"])
        crc = zlib.crc32(metadata["model"].encode())
        for name in sorted(header.keys() - {"__metadata__"}):
            entry = header[name]
            match entry:
                case {"data_offsets": [int(begin), int(end)]}:
                    crc = zlib.crc32(data[begin:end], crc)
        if "crc32" in metadata:
            metadata["crc32"] = f"{crc:08x}"
        header = header | {"__metadata__": metadata}
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + data


_INSIDE = {
    "model": _damaged_model,
    "liblinear": _damaged_text,
    "libsvm": _damaged_text,
    "svmlight": _damaged_text,
    "csv": _damaged_text,
}
