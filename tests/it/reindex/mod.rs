//! `reindex` against what real brokers' recovery wrote, and against the model of that recovery.

mod damaged;
mod divided;
mod rebuilt;
mod recorded;
