// Flags that answer and exit.
// RUN: relax-opt --version | filecheck %s --check-prefix=VERSION
// RUN: relax-opt --help | filecheck %s --check-prefix=HELP
// RUN: relax-opt -h | filecheck %s --check-prefix=HELP
// RUN: relax-opt --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: relax-opt --list-passes | filecheck %s --check-prefix=PASSES
// RUN: relax-opt --export-irdl | filecheck %s --check-prefix=IRDL

// VERSION: relax-opt (relaxir) {{[0-9.]+}}, torch-mlir 2026{{.*}}
// HELP: usage: relax-opt [flags] [file]
// HELP: --pass-pipeline=<pipeline>
// HELP: --<pass>[=<options>]
// HELP: --relax-convert-layout {{ *}}Rewrites convolutions
// HELP-NEXT: layout=<a string> {{.*}}``NHWC`` or ``NCHW``. (default: NHWC)
// DIALECTS: Available Dialects: {{.*}}arith, {{.*}}func, {{.*}}relax, {{.*}}scf
// PASSES: --relax-
// PASSES: --canonicalize
// PASSES: --cse
// IRDL: irdl.dialect @relax
// IRDL: irdl.operation @matmul
