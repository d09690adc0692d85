"""The operators that onnxruntime adds to the standard, by its minor release that first has them.

Source: each release from 1.0 to 1.32 on PyPI, asked to load a node of each operator. None was removed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# minor release: operators of com.microsoft, of com.microsoft.nchwc, and of the domain of the standard
_FIRST: tuple[tuple[int, str, str, str], ...] = (
    (
        0,
        (
            "Attention AttnLSTM CDist ConvTransposeWithDynamicPads CropAndResize DequantizeLinear "
            "EmbedLayerNormalization ExpandDims FusedConv FusedGemm GatherND Gelu MatMulInteger16 "
            "MaxpoolWithMask MurmurHash3 Pad QuantizeLinear Range ReduceSumInteger SampleOp "
            "SkipLayerNormalization Tokenizer Unique WordConvEmbedding"
        ),
        ("AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput"),
        (
            "Affine Crop DisentangledAttention_TRT DynamicSlice EfficientNMS_TRT GRUUnit "
            "GivenTensorFill ImageScaler LayerNormalization MeanVarianceNormalization "
            "MemcpyFromHost MemcpyToHost MultilevelCropAndResize_TRT ParametricSoftplus "
            "PyramidROIAlign_TRT Scale ScaledTanh SimplifiedLayerNormalization ThresholdedRelu"
        ),
    ),
    (
        1,
        "BiasGelu FastGelu",
        "",
        "",
    ),
    (
        2,
        "MulInteger QLinearAdd QLinearAveragePool QLinearMul QLinearReduceMean",
        "",
        "",
    ),
    (
        3,
        "ComplexMul ComplexMulConj Inverse Irfft QAttention Rfft TransposeMatMul",
        "Upsample",
        "",
    ),
    (
        4,
        "DynamicQuantizeMatMul MatMulIntegerToFloat QLinearLeakyRelu",
        "",
        "",
    ),
    (
        5,
        "QLinearSigmoid Trilu",
        "",
        "",
    ),
    (
        6,
        (
            "BiasSoftmax DynamicQuantizeLSTM FusedMatMul LongformerAttention QLinearConv "
            "QLinearGlobalAveragePool"
        ),
        "",
        "",
    ),
    (
        7,
        "NhwcMaxPool",
        "",
        "",
    ),
    (
        8,
        "BiasDropout IsAllFinite QLinearConcat TorchEmbedding",
        "",
        "",
    ),
    (
        9,
        "GridSample NGramRepeatBlock QEmbedLayerNormalization QGemm SparseToDenseMatMul",
        "",
        "",
    ),
    (
        10,
        "BifurcationDetector DecoderAttention",
        "",
        "",
    ),
    (
        11,
        "BeamSearch NhwcConv",
        "",
        "",
    ),
    (
        12,
        "BitmaskBiasDropout BitmaskDropout Snpe",
        "",
        "",
    ),
    (
        13,
        (
            "DequantizeBFP DequantizeWithOrder GemmFastGelu GreedySearch QLinearSoftmax "
            "QOrderedAttention QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention "
            "QOrderedMatMul QuantizeBFP QuantizeWithOrder"
        ),
        "",
        "",
    ),
    (
        14,
        (
            "BiasSplitGelu GatedRelativePositionBias GroupNorm MultiHeadAttention QLinearWhere "
            "QuickGelu RelativePositionBias RemovePadding RestorePadding Sampling "
            "SkipSimplifiedLayerNormalization"
        ),
        "",
        "",
    ),
    (
        15,
        (
            "BiasAdd DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention "
            "FusedMatMulActivation NhwcFusedConv PackedAttention"
        ),
        "",
        "",
    ),
    (
        16,
        (
            "GroupQueryAttention MatMulBnb4 MatMulFpQ4 MatMulNBits PackedMultiHeadAttention "
            "RotaryEmbedding SkipGroupNorm"
        ),
        "",
        "",
    ),
    (
        17,
        "DynamicTimeWarping EPContext GemmFloat8 MoE UnfoldTensor WhisperBeamSearch",
        "",
        "",
    ),
    (
        18,
        "GemmaRotaryEmbedding QMoE SparseAttention",
        "",
        "",
    ),
    (
        20,
        "GatherBlockQuantized",
        "",
        "",
    ),
    (
        23,
        "PagedAttention",
        "",
        "",
    ),
    (
        25,
        "CausalConvWithState LinearAttention",
        "",
        "",
    ),
    (
        27,
        "MatMulNBitsMlp MatMulNBitsQkv",
        "",
        "",
    ),
    (
        29,
        (
            "GatedAdd GatedRMSNorm LinearAttentionGate MRotaryEmbedding "
            "MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight"
        ),
        "",
        "",
    ),
    (
        30,
        "EngramGate GatedDeltaNet NGramHashMapping VarlenCausalConvWithState",
        "",
        "",
    ),
    (
        31,
        (
            "BranchwiseRMSNorm DynamicSparseAttention HyperConnectionPostMix HyperConnectionPreMix "
            "PackedSparseAttentionIndexer ScaledSiLU SparseAttentionIndexer SparsePagedAttention "
            "VarlenNGramHashMapping"
        ),
        "",
        "",
    ),
    (
        32,
        (
            "ConvStateReplay GatedDeltaNetStateReplay GatherPacked HyperConnectionLowRankMix Mamba2Verify "
            "MatMulNBitsQLoRA MatMulPacked MoEGroupRouter MoEPacked PackedSparseAttentionIndexerMerge "
            "RMSNormRotary RouterGateUpProj SpeculativePrefixCommit SwiGLU"
        ),
        "",
        "",
    ),
)
_DOMAINS = ("com.microsoft", "com.microsoft.nchwc", "")

FIRST_MINOR: Mapping[tuple[str, str], int] = MappingProxyType({
    (domain, name): minor
    for minor, *listed in _FIRST
    for domain, names in zip(_DOMAINS, listed, strict=True)
    for name in names.split()
})
"""The minor release of onnxruntime 1 that first has an operator, by domain and name."""
