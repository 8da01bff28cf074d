"""A fault that only a fuzzer which follows what is covered can find: to see that the harness would."""


def fault(data: bytes) -> None:
    if data[:1] == b"{" and data[1:2] == b"}" and data[2:3] == b"!" and data[3:4] == b"?":
        raise AssertionError("the planted fault")
