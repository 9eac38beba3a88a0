// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-update-vdevice="index=1 to=cpu:7"

// expected-error@+1 {{expected option 'index' to be of a device in relax.vdevices, got 1 of 1 devices}}
module attributes {relax.vdevices = ["cpu:0"]} {
}

// -----

// expected-error@+1 {{expected option 'index' to be of a device in relax.vdevices, got 1 of no list}}
module {
}

// -----

// expected-error@+1 {{expected a list of strings for relax.vdevices, got 3 : i64}}
module attributes {relax.vdevices = 3 : i64} {
}

// -----

// The list would have another device in this place, and a second run would replace that.
// expected-error@+1 {{expected option 'from' where two devices become one, got 'index' of 'cuda:0'}}
module attributes {relax.vdevices = ["cpu:7", "cuda:0", "cuda:1"]} {
}
