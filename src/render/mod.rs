//! Layer 4: reports and plans to bytes. Decides nothing and writes only to the `Write` it is given.

pub mod units;
