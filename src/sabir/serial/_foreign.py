"""Extensions of files that are mistaken for ONNX models: what each file is, and the way to an ONNX model."""

from __future__ import annotations

_COMPRESSED = "a compressed file; decompress it first, and pass the model in it"
_DATA = "and no model; it is data of an input:"
_PYTORCH = (
    "a file of PyTorch: weights, a checkpoint or a program; load it in PyTorch, and export the model with "
    "`torch.onnx.export(model, inputs, 'model.onnx')`"
)
_PICKLE = (
    "a Python pickle, which Sabir never reads; load it with the library that wrote it, and export the model: "
    "`torch.onnx.export` for PyTorch, `skl2onnx.to_onnx` for scikit-learn"
)

FOREIGN: dict[str, str] = {
    suffix: text
    for suffixes, text in (
        (
            ".ort",
            "onnxruntime's own format, which only onnxruntime reads; use the ONNX model it was made from",
        ),
        (".safetensors", "a format of tensors without a model; `sabir.serial.load_safetensors` reads them"),
        (".pt .pth .pt2 .ckpt", _PYTORCH),
        (".pkl .pickle .joblib", _PICKLE),
        (".keras .h5 .hdf5", "a Keras model; convert it with `python -m tf2onnx.convert --keras FILE`"),
        (".tflite", "a TensorFlow Lite model; convert it with `python -m tf2onnx.convert --tflite FILE`"),
        (".mlmodel .mlpackage", "a Core ML model; export it to ONNX from the library that trained it"),
        (".gguf", "the weights of a language model for llama.cpp; export the original model to ONNX"),
        (".engine .plan .trt", "an engine of TensorRT; use the ONNX model it was made from"),
        (".pdmodel", "a Paddle model; convert it with `paddle2onnx`"),
        (".xml", "XML, as the models of OpenVINO are; use the ONNX model it was made from"),
        (".gz .bz2 .xz .zst .zip .7z .tar .tgz", _COMPRESSED),
        (".npy", f"an array of NumPy, {_DATA} `sabir run MODEL --input NAME=FILE`"),
        (".npz", f"an archive of NumPy arrays, {_DATA} `sabir run MODEL --input FILE`"),
        (".png .jpg .jpeg .bmp .gif .webp", f"a picture, {_DATA} `sabir run MODEL --input NAME=FILE`"),
    )
    for suffix in suffixes.split()
}
