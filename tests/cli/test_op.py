"""`sabir op`: pages by name, version and opset; the list of an opset."""

import pytest

from sabir.opsets import STANDARD


def rows(cli, *options):
    code, out, err = cli("op", *options)
    assert (code, err) == (0, "")
    return {tuple(line.split()[:2]): line.split()[2:] for line in out.splitlines()}


@pytest.mark.parametrize(
    ("arguments", "heading"),
    [
        (["Softmax"], "Domain `ai.onnx`, version 13 "),
        (["Softmax", "--opset", "28"], "Domain `ai.onnx`, version 13 "),
        (["Softmax", "--opset", "12"], "Domain `ai.onnx`, version 11 "),
        (["ai.onnx.Relu"], "Domain `ai.onnx`, version 14 "),
        (["ai.onnx.Relu:6"], "Domain `ai.onnx`, version 6 "),
        (["Relu:6"], "Domain `ai.onnx`, version 6 "),
        (["Relu:6", "--domain", "ai.onnx"], "Domain `ai.onnx`, version 6 "),
        (["Relu", "--domain", ""], "Domain `ai.onnx`, version 14 "),
        (["ai.onnx.Relu", "--domain", ""], "Domain `ai.onnx`, version 14 "),
        (["ai.onnx.ml.TreeEnsemble:5"], "Domain `ai.onnx.ml`, version 5."),
        (["ai.onnx.ml.TreeEnsembleRegressor", "--opset", "4"], "Domain `ai.onnx.ml`, version 3 "),
        (["ai.onnx.preview.training.Adam:1"], "Domain `ai.onnx.preview.training`, version 1."),
        (["TreeEnsemble", "--domain", "ai.onnx.ml"], "Domain `ai.onnx.ml`, version 5."),
    ],
)
def test_a_page(cli, arguments, heading):
    code, out, err = cli("op", *arguments)
    assert (code, err) == (0, "")
    assert heading in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["Softmax", "--opset", "999"], "there is no opset 999 of ai.onnx; the newest opset is 28"),
        (["Gelu", "--opset", "19"], "Gelu came with opset 20; opset 19 has no Gelu"),
        (["TreeEnsemble", "--opset", "4"], "TreeEnsemble came with opset 5; opset 4 has no TreeEnsemble"),
        (["TreeEnsemble", "--opset", "6"], "there is no opset 6 of ai.onnx.ml; the newest opset is 5"),
        (["Softmaxx"], "there is no operator 'Softmaxx'; is it 'Softmax'?"),
        (["ai.onnx.softmax"], "there is no operator 'softmax' in ai.onnx; is it 'Softmax'?"),
        (["Xyzzy"], "there is no operator 'Xyzzy'; `sabir op` lists all"),
        (["Relu:7"], "ai.onnx.Relu has the versions 1, 6, 13, 14, not 7; opset 7 has version 6"),
        (["Relu:99"], "ai.onnx.Relu has the versions 1, 6, 13, 14, not 99"),
        (["Gelu:1"], "ai.onnx.Gelu has the versions 20, not 1"),
        (["ai.onnx.TreeEnsemble"], "ai.onnx has no TreeEnsemble; ai.onnx.ml has one"),
        (["TreeEnsemble", "--domain", "ai.onnx"], "ai.onnx has no TreeEnsemble; ai.onnx.ml has one"),
        (
            ["ai.onnx.Relu", "--domain", "ai.onnx.ml"],
            "ai.onnx.Relu is in the domain ai.onnx, not in ai.onnx.ml",
        ),
        (["Relu:6", "--opset", "13"], "Relu:6 already states the version; state no opset beside it"),
        (["com.acme.FastConv:3"], "there is no domain 'com.acme'; the domains are ai.onnx, ai.onnx.contrib,"),
        (["ai.onx.Relu"], "there is no domain 'ai.onx'; is it 'ai.onnx'?"),
        (["Relu", "--domain", "ai.onx"], "there is no domain 'ai.onx'; is it 'ai.onnx'?"),
        (["--domain", "ai.onx"], "there is no domain 'ai.onx'; is it 'ai.onnx'?"),
        (
            ["--opset", "29"],
            "there is no opset 29; the newest opset is 28 of ai.onnx, 1 of ai.onnx.contrib, 5 of",
        ),
        (
            ["--opset", "6", "--domain", "ai.onnx.ml"],
            "there is no opset 6; the newest opset is 5 of ai.onnx.ml",
        ),
        (["Relu:"], "'Relu:' names no operator; write Relu, ai.onnx.Relu or ai.onnx.Relu:6"),
        (["Relu:x"], "'Relu:x' names no operator"),
        ([".Relu"], "'.Relu' names no operator"),
        ([""], "'' names no operator"),
    ],
)
def test_what_cannot_be_shown_is_named_as_in_the_arguments(fails, arguments, expected):
    message = fails("op", *arguments)
    assert message.startswith(expected)
    assert "import" not in message
    assert "model" not in message


def test_the_inventory_of_an_opset(cli):
    found = rows(cli, "--opset", "13")
    assert {domain for _, domain in found} == {"ai.onnx"}
    assert found["Softmax", "ai.onnx"][0] == "13"
    assert found["Relu", "ai.onnx"][0] == "13"
    assert found["Scatter", "ai.onnx"][:2] == ["11", "(deprecated)"]
    assert ("Gelu", "ai.onnx") not in found
    for (name, _), (since, *_) in found.items():
        assert STANDARD.find("", name).find(13).since == int(since)
    assert len(found) == sum(o.find(13) is not None for o in STANDARD if not o.domain)


def test_the_inventory_has_every_domain_with_an_opset_of_the_number(cli):
    assert {d for _, d in rows(cli, "--opset", "5")} == {"ai.onnx", "ai.onnx.ml"}
    first = rows(cli, "--opset", "1")
    standard = {"ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"}
    assert {d for _, d in first} == standard | {"ai.onnx.contrib", "com.microsoft", "com.microsoft.nchwc"}
    ml = rows(cli, "--opset", "5", "--domain", "ai.onnx.ml")
    assert {d for _, d in ml} == {"ai.onnx.ml"}
    assert ml["TreeEnsembleRegressor", "ai.onnx.ml"][:2] == ["5", "(deprecated)"]


def test_the_list_of_all_marks_deprecated_versions(cli):
    out = cli("op").out
    assert "9, 11 (deprecated)" in out
    assert len(rows(cli)) == len(list(STANDARD))
