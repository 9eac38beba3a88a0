// RUN: relax-opt %s --verify-diagnostics --relax-update-vdevice="from=cuda:0 to=cuda"
// RUN: relax-opt %s --verify-diagnostics --relax-update-vdevice="from=cuda to=cuda:0"

// expected-error@+1 {{expected a device such as 'cuda:0', got 'cuda'}}
module attributes {relax.vdevices = ["cpu:0"]} {
}
