"""`sabir inline`, and `sabir convert --standard-only`."""

import sabir

QUICK = """<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
main (float[N] x) => (float[N] y) { t = com.microsoft.QuickGelu <alpha = 0.5> (x)  y = Relu (t) }"""
UNKNOWN = QUICK.replace("QuickGelu", "Foo")


def test_the_command(cli, fails, write, tmp_path):
    model = write(QUICK)
    out = tmp_path / "out.onnx"
    code, printed, err = cli("inline", model, "--domain", "com.microsoft", "-o", out)
    assert (code, err) == (0, "")
    assert "converted to opset 18" in printed
    assert "com.microsoft.QuickGelu:1" in printed
    assert {n.domain for n in sabir.load(out).graph} == {""}

    portable = tmp_path / "portable.onnx"
    assert cli("convert", model, portable, "--standard-only", "--opset", "21").code == 0
    assert sabir.load(portable).opsets == {"": 21}

    assert "is it 'QuickGelu'?" in fails("inline", model, "--op", "QuickGello", "-o", out)
    unknown = write(UNKNOWN, "unknown.onnxtxt")
    missing = tmp_path / "missing.onnx"
    assert "com.microsoft.Foo" in fails("inline", unknown, "--domain", "com.microsoft", "-o", missing, code=1)
    assert not missing.exists()
