"""Instructions in turns: what may move past what."""

from sabir.compilation.backends.cpu.emit.interleaving import interleaved


def test_parts_take_turns_and_keep_their_order():
    first = ["  %t1 = fadd %t0, %t0", "  %t2 = fmul %t1, %t1", "  store %t2, %t8"]
    second = ["  %t3 = fadd %t0, %t0", "  store %t3, %t9"]
    assert interleaved([first, second]) == [first[0], second[0], first[1], second[1], first[2]]


def test_what_an_earlier_part_computes_comes_before_its_use():
    first = ["  %t1 = fadd %t0, %t0", "  %t2 = fmul %t1, %t1"]
    second = ["  %t3 = fsub %t2, %t1", "  store %t3, %t9"]
    assert interleaved([first, second]) == [*first, *second]


def test_branches_keep_their_place():
    first = ["  br i1 %t0, label %l1, label %l2", "l1:", "  store i64 1, ptr %t7", "  br label %l2", "l2:"]
    assert interleaved([first, ["  store i64 2, ptr %t8"]]) == [*first, "  store i64 2, ptr %t8"]
