"""Which linalg ops become one kernel: each kernel a private function, equal ones once."""
