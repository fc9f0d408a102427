"""ONNX Runtime beside the product's own embedding engine, on the bundled model.

The product has no such engine: docs/performance.md says why. What decided it is measured here, and
needs what the product does not: `pip install onnxruntime`, and `pip install onnx onnxscript` to
make the files.

    python -m evals.onnx_engine make FOLDER           # quantised files of the bundled model
    python -m evals.onnx_engine speed FILE            # processor time beside ours
    python -m evals.onnx_engine speed FILE --dtype float32
    python -m evals.retrieval --onnx FILE             # how well it finds

What a processor with less would do: build processor.c as its first lines say, then
`PROCESSOR=avx2` or `PROCESSOR=avx512` with LD_PRELOAD before the second and third command.
"""
