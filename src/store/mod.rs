//! Layer 2: the only module that may create, write, rename, sync or remove.
