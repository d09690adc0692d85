"""Tensors without an element that have very many rows, images or steps: there is nothing to do, very many times."""

from __future__ import annotations

from hostile.small import LEAST, ints, text

MANY = 2**40
WITH_ONE = {
    "Softmax": "y = Softmax (e)", "LpNormalization": "y = LpNormalization (e)", "Flatten": "y = Flatten (e)",
    "Hardmax": "y = Hardmax (e)", "Transpose": "y = Transpose (e)", "Det": "y = Det (e)", "Unique": "y = Unique (e)",
    "ReduceLogSumExp": "y = ReduceLogSumExp (e)", "ReduceSum": "a = Constant <value_ints = [0]> () y = ReduceSum (e, a)",
    "ArgMax": "y = ArgMax <axis = -1> (e)", "ArgMin": "y = ArgMin <axis = 0> (e)", "NonZero": "y = NonZero (e)",
    "CumSum": "z = Constant <value_int = -1> () y = CumSum (e, z)", "Unique by rows": "y = Unique <axis = 0> (e)",
    "Unique by columns": "y, i, j, k = Unique <axis = -1> (e)", "EyeLike": "y = EyeLike (e)", "Trilu": "y = Trilu (e)",
    "SplitToSequence": "q = SplitToSequence <axis = 0> (e) y = SequenceLength (q)",
    "SplitToSequence of columns": "q = SplitToSequence <axis = -1, keepdims = 0> (e) y = SequenceLength (q)",
    "TopK": "k = Constant <value_ints = [0]> () y, i = TopK <axis = 0> (e, k)",
    "Multinomial": "y = Multinomial <sample_size = 3> (e)", "MatMul": "f = Transpose (e) y = MatMul (e, f)",
    "MatMul of the transpose": "f = Transpose (e) y = MatMul (f, e)", "Tile": "s = Shape (e) y = Tile (e, s)",
    "GatherND": "i = Cast <to = 7> (e) y = GatherND (e, i)",
    "GatherElements": "i = Cast <to = 7> (e) y = GatherElements (e, i)",
    "ScatterElements": 'i = Cast <to = 7> (e) y = ScatterElements <reduction = "add"> (e, i, e)',
    "ScatterND": "i = Cast <to = 7> (e) y = ScatterND (e, i, e)", "Expand": "s = Shape (e) y = Expand (e, s)",
    "Compress": "c = Constant <value = bool[1] {1}> () y = Compress <axis = 0> (e, c)",
    "OneHot": "d = Constant <value_int = 3> () v = Constant <value_floats = [0.0, 1.0]> () y = OneHot (e, d, v)",
    "ReverseSequence": "l = Constant <value_ints = [1]> () y = ReverseSequence <batch_axis = 0, time_axis = 1> (e, l)",
    "Cast to texts": "y = Cast <to = 8> (e)", "StringSplit": "s = Cast <to = 8> (e) y, z = StringSplit (s)",
    "RegexFullMatch": 's = Cast <to = 8> (e) y = RegexFullMatch <pattern = "a"> (s)', "DFT": "y = DFT (e)",
    "StringNormalizer": 's = Cast <to = 8> (e) y = StringNormalizer <case_change_action = "LOWER"> (s)',
    "TfIdfVectorizer": "s = Cast <to = 7> (e) y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, "
    'mode = "TF", ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]> (s)',
    "Einsum": 'y = Einsum <equation = "...a->a..."> (e)', "LayerNormalization": "y = LayerNormalization <axis = 0> (e, e)",
    "DequantizeLinear": "q = Cast <to = 3> (e) s = Constant <value_float = 1.0> () y = DequantizeLinear (q, s)",
    "DynamicQuantizeLinear": "y, a, b = DynamicQuantizeLinear (e)",
    "GroupNormalization": "s = Constant <value_floats = [1.0]> () y = GroupNormalization <num_groups = 1> (e, s, s)",
    "Scan": "y = Scan <num_scan_inputs = 1, body = b (float[] i) => (float[] o) { o = Relu (i) }> (e)",
    "Scan of columns": "y = Scan <num_scan_inputs = 1, scan_input_axes = [-1], body = b (float[] i) => (float[] o) { o = Relu (i) }> (e)",
    "a tree": 'y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], '
    'nodes_modes = ["LEAF"], nodes_values = [0.0], nodes_truenodeids = [0], nodes_falsenodeids = [0], target_treeids = [0], '
    "target_nodeids = [0], target_ids = [0], target_weights = [1.0]> (e)",
    "SVMRegressor": "y = ai.onnx.ml.SVMRegressor <coefficients = [1.0], rho = [0.0], n_supports = 1, support_vectors = [1.0], kernel_params = [1.0, 0.0, 3.0]> (e)",
    "ZipMap": "y = ai.onnx.ml.ZipMap <classlabels_int64s = [1]> (e)", "Normalizer": "y = ai.onnx.ml.Normalizer (e)",
    "LinearClassifier": "y, p = ai.onnx.ml.LinearClassifier <coefficients = [1.0], classlabels_ints = [1]> (e)",
    "ArrayFeatureExtractor": "i = Constant <value_ints = [0]> () y = ai.onnx.ml.ArrayFeatureExtractor (e, i)",
}  # fmt: skip
for name, call in WITH_ONE.items():
    for shape in ((0, MANY), (MANY, 0), (1, 0, MANY, 1)):
        told = " by ".join("2^40" if d == MANY else str(d) for d in shape)
        text(f"{ints('s0', *shape)} e = ConstantOfShape (s0) {call}", name=f"{name} of {told}")


def shaped(name: str, *shape: int) -> str:
    """A tensor of this shape, the first one's size or another's being 0."""
    return f"{ints(f'{name}s', *shape)} {name} = ConstantOfShape ({name}s) "


WITH_MORE = {
    "LSTM": shaped("e", MANY, 0, 1) + "w = Constant <value = float[1,4,1] {1,1,1,1}> () y, h, c = LSTM <hidden_size = 1> (e, w, w)",
    "GRU": shaped("e", MANY, 0, 1) + "w = Constant <value = float[1,3,1] {1,1,1}> () y, h = GRU <hidden_size = 1> (e, w, w)",
    "RNN": shaped("e", 0, MANY, 1) + "w = Constant <value = float[1,1,1] {1}> () y, h = RNN <hidden_size = 1> (e, w, w)",
    "Conv": shaped("e", 0, 1, MANY) + shaped("w", 1, 1, 2) + "y = Conv (e, w)",
    "Conv of no channels": shaped("e", 1, 0, MANY) + shaped("w", 1, 0, 2) + "y = Conv (e, w)",
    "ConvTranspose": shaped("e", 0, 1, MANY) + shaped("w", 1, 1, 2) + "y = ConvTranspose (e, w)",
    "MaxPool": shaped("e", 0, 1, MANY) + "y, i = MaxPool <kernel_shape = [2]> (e)",
    "MaxPool of images": shaped("e", MANY, 0, 3) + "y, i = MaxPool <kernel_shape = [2]> (e)",
    "AveragePool": shaped("e", 0, 1, MANY) + "y = AveragePool <kernel_shape = [2]> (e)",
    "LRN": shaped("e", 0, MANY, 2) + "y = LRN <size = 3> (e)",
    "LRN of images": shaped("e", MANY, 0, 2) + "y = LRN <size = 3> (e)",
    "NonMaxSuppression of classes": shaped("e", 1, 0, 4) + shaped("f", 1, MANY, 0) + ints("m", 5) + "y = NonMaxSuppression (e, f, m)",
    "NonMaxSuppression of images": shaped("e", MANY, 0, 4) + shaped("f", MANY, 1, 0) + ints("m", 5) + "y = NonMaxSuppression (e, f, m)",
    "GridSample": shaped("e", 0, 1, 2, MANY) + shaped("f", 0, MANY, 3, 2) + "y = GridSample (e, f)",
    "DeformConv": shaped("e", 0, 1, 2, MANY) + shaped("w", 1, 1, 1, 1) + shaped("f", 0, 2, 2, MANY) + "y = DeformConv (e, w, f)",
    "Col2Im": shaped("e", 0, 1, MANY) + ints("s", MANY) + ints("b", 1) + "y = Col2Im (e, s, b)",
    "MaxUnpool": shaped("e", 0, 1, MANY) + "i = Cast <to = 7> (e) y = MaxUnpool <kernel_shape = [1]> (e, i)",
    "Attention": shaped("e", 0, 1, MANY, 4) + "y = Attention (e, e, e)",
    "Attention of heads": shaped("e", 1, MANY, 0, 4) + "y = Attention (e, e, e)",
    "Attention of queries": shaped("e", 1, 1, MANY, 0) + "y = Attention (e, e, e)",
    "AffineGrid": shaped("e", 0, 2, 3) + ints("s", 0, 1, MANY, 3) + "y = AffineGrid (e, s)",
    "SpaceToDepth": shaped("e", 0, MANY, 2, 2) + "y = SpaceToDepth <blocksize = 2> (e)",
    "BatchNormalization": shaped("e", 0, MANY) + shaped("f", MANY, 0) + "y = BatchNormalization (e, f, f, f, f)",
    "RotaryEmbedding": shaped("e", 0, 1, MANY, 2) + shaped("f", 0, MANY, 1) + "y = RotaryEmbedding (e, f, f)",
    "Slice": shaped("e", 0, MANY) + ints("b", -1, -1) + ints("f", LEAST, LEAST) + ints("a", 0, 1) + "y = Slice (e, b, f, a, b)",
    "Pad": shaped("e", 0, 0) + ints("p", 2**62, 0, 0, 0) + "y = Pad (e, p)",
}  # fmt: skip
for name, body in WITH_MORE.items():
    text(body, opset=23, name=f"{name} of nothing, 2^40 times")
