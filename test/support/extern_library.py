"""A library of C functions that compiled code calls, as another package has one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import relaxir as rx
from support.c_compiler import c_compiler

__all__ = ["extern_library", "scaling"]

_SOURCE = r"""
#include <stdint.h>
#include <string.h>

typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset;
} DLTensor;

static int64_t count(const DLTensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
  return n;
}

/* y = x * factor, in f32 */
int acme_scale(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out, double factor) {
  if (n_in != 1 || n_out != 1 || in->dtype.code != 2 || in->dtype.bits != 32 || count(in) != count(out)) return 1;
  if (in->strides || in->byte_offset || in->device.device_type != 1) return 2;
  for (int64_t i = 0; i < count(in); i++) ((float *)out->data)[i] = ((const float *)in->data)[i] * (float)factor;
  return 0;
}

/* all bytes of the first tensor, the number of its elements, and what DLPack says of it */
int acme_copy(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out) {
  if (n_out != 3) return 1;
  memcpy(out[0].data, in->data, count(in) * in->dtype.bits / 8);
  *(int64_t *)out[1].data = count(in);
  for (int i = 0; i < 2; i++) ((int32_t *)out[2].data)[i] = i ? in->dtype.bits : in->dtype.code;
  return 0;
}

/* y = a + b * k[0] + number, of which mode "minus" changes the sign */
int acme_mix(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out, int64_t number, int64_t twice, const char *mode) {
  if (n_in != 3) return 1;
  float sign = strcmp(mode, "minus") ? 1.0f : -1.0f;
  const float *a = in[0].data, *b = in[1].data;
  int8_t k = *(const int8_t *)in[2].data;
  for (int64_t i = 0; i < count(out); i++)
    ((float *)out->data)[i] = sign * (a[i] + b[i] * k + (float)(twice ? 2 * number : number));
  return 0;
}

/* out = x * factor, of the inputs out and x */
int acme_fill(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out, double factor) {
  return n_in == 2 ? acme_scale(in + 1, 1, out, n_out, factor) : 1;
}

/* of x and out: what out was, and x */
int acme_write(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out, double scale) {
  if (n_in != 2 || n_out != 2 || scale != 2.0) return 1;
  memcpy(out[0].data, in[1].data, count(in + 1) * sizeof(float));
  memcpy(out[1].data, in[0].data, count(in) * sizeof(float));
  return 0;
}

/* both inputs as they are; an error where two of the four buffers overlap */
int acme_apart(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out) {
  const DLTensor *all[4] = {in, in + 1, out, out + 1};
  for (int i = 2; i < 4; i++)
    for (int j = 0; j < i; j++) {
      const float *a = all[i]->data, *b = all[j]->data;
      if (a < b + count(all[j]) && b < a + count(all[i])) return 1;
    }
  for (int i = 0; i < 2; i++) memcpy(out[i].data, in[i].data, count(out + i) * sizeof(float));
  return 0;
}

/* an error where the first element is negative */
int acme_root(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out) {
  float x = *(const float *)in->data;
  for (int64_t i = 0; i < count(out); i++) ((float *)out->data)[i] = x;
  return x < 0 ? 7 : 0;
}

/* an error where the first element is more than 100 */
int acme_small(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out) {
  memcpy(out->data, in->data, count(in) * sizeof(float));
  return *(const float *)in->data > 100;
}

/* first, first + 1, ...; an error where there are inputs */
int acme_iota(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out, int64_t first) {
  for (int64_t i = 0; i < count(out); i++) ((int32_t *)out->data)[i] = (int32_t)(first + i);
  return n_in;
}

/* the same, whatever the inputs are */
int acme_count(const DLTensor *in, int32_t n_in, DLTensor *out, int32_t n_out, int64_t first) {
  return acme_iota(in, 0, out, n_out, first);
}
"""


def extern_library(folder: Path, name: str = "libacme.so", change: str = "") -> Path:
    """Compiles the library into a folder.

    Args:
        folder: where.
        name: of the file.
        change: what :func:`acme_scale` adds to its factor.
    """
    source, path = folder / f"{name}.c", folder / name
    source.write_text(_SOURCE.replace("(float)factor", f"(float)(factor + {change})") if change else _SOURCE)
    subprocess.run([c_compiler(), "-shared", "-fPIC", "-O1", str(source), "-o", str(path)], check=True)
    return path


def scaling(library: Path | str, symbol: str = "acme_scale") -> rx.Module:
    """``x`` and what a function makes of it, added."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 4))
        (y,) = b.call_extern(symbol, [x], [(("n", 4), "f32")], library=library, arguments=[2.5])
        b.output(b.add(y, x))
    return b.build()
