// RUN: relax-opt %s --verify-diagnostics --relax-update-vdevice --split-input-file
// RUN: relax-opt %s --verify-diagnostics --relax-update-vdevice=to=cpu:0 --split-input-file
// RUN: relax-opt %s --verify-diagnostics --relax-update-vdevice=from=cuda:0 --split-input-file
// RUN: relax-opt %s --verify-diagnostics --relax-update-vdevice="from=cuda:0 index=0 to=cpu:0" --split-input-file

// expected-error@+1 {{expected option 'to' and one of 'from' and 'index'}}
module attributes {relax.vdevices = ["cpu:0"]} {
}
