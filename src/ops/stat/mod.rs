//! The numbers that people monitor, per partition and topic, from the files alone.

mod distinct;
mod distribution;

pub use distinct::Distinct;
pub use distribution::{Distribution, Quantiles};
