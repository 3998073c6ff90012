//! One small input for each finding, in `testdata/damaged/<id>/`, and what `verify` says of it.
//!
//! * [`fixture`]: what an input is made of; the table of all and the tests over it are in `fixtures`;
//! * `batches`, `segments`, `indexes`, `files`, `producers`: the inputs by what they damage.

mod batches;
mod files;
mod fixture;
mod fixtures;
mod indexes;
mod producers;
mod segments;
