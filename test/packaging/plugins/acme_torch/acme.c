#include <stdint.h>

typedef struct {
  void *data;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor; /* of dlpack.h */

int acme_double(const DLTensor *inputs, int32_t n_inputs, DLTensor *outputs, int32_t n_outputs) {
  if (n_inputs != 1 || n_outputs != 1 || inputs->dtype.code != 2 || inputs->dtype.bits != 32) return 1;
  int64_t count = 1;
  for (int i = 0; i < inputs->ndim; i++) count *= inputs->shape[i];
  const float *x = inputs->data;
  float *y = outputs->data;
  for (int64_t i = 0; i < count; i++) y[i] = x[i] + x[i];
  return 0;
}
